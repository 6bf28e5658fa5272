"""Attribute observers of the trees: bounded, exact, and wary of chance.

River's own do not fit streams without an end: those for regression keep every distinct value that a leaf has
seen, those for nominal features walk a set of strings in an order that changes with the process, and a Hoeffding
tree splits on pure noise as soon as its bound falls below the tie threshold. A leaf that is split by chance has
half the observations to draw from and is no closer to the condition.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Self

from river import stats
from river.tree.splitter.base import Splitter
from river.tree.utils import BranchFactory

MAX_BINS = 32
"""The number of thresholds that a leaf weighs per numeric feature: quantiles are met to about 1/32."""

MIN_CHILD = 5
"""The number of observations that each side of a two-way split must have, as River's regression trees ask."""

DELTA = 1e-6
"""Probability of a split by chance, per test: one leaf, one attempt, one threshold."""

_EVIDENCE = -math.log(DELTA)


class Counts(dict[Any, float]):
    """Sums up the weights of each category of a nominal target."""

    def add(self, y: Any, w: float) -> None:
        """Count an observation."""
        self[y] = self.get(y, 0.0) + w

    def merge(self, other: Counts) -> None:
        """Take in the observations of another summary."""
        for y, w in other.items():
            self[y] = self.get(y, 0.0) + w

    @property
    def n(self) -> float:
        """The weight of all observations."""
        return math.fsum(self.values())

    @property
    def impurity(self) -> float:
        """The entropy in nats, times n."""
        n = self.n
        return -math.fsum(w * math.log(w / n) for w in self.values() if w > 0.0)

    def evidence(self, gain: float, n_children: int) -> tuple[float, int]:
        """Return a split's likelihood ratio statistic and degrees of freedom."""
        return 2.0 * gain, (len(self) - 1) * (n_children - 1)

    def merit(self, gain: float) -> float:
        """Return the information gain in bits, for River's Hoeffding bound."""
        return gain / (self.n * math.log(2.0))

    def as_river(self) -> dict[Any, float]:
        """Return the summary of its target that a River leaf keeps."""
        return dict(self)


class Moments:
    """Sums up weight, mean and squared deviations of a numeric target."""

    __slots__ = ("impurity", "mean", "n")

    def __init__(self) -> None:
        self.n = self.mean = self.impurity = 0.0

    def add(self, y: float, w: float) -> None:
        """Count an observation."""
        self.n += w
        difference = y - self.mean
        self.mean += difference * (w / self.n)
        self.impurity += w * difference * (y - self.mean)

    def merge(self, other: Moments) -> None:
        """Add another summary's observations (Chan, Golub and LeVeque 1983)."""
        n = self.n + other.n
        if n > 0.0:
            difference = other.mean - self.mean
            self.mean += difference * (other.n / n)
            self.impurity += other.impurity + difference * difference * (self.n * other.n / n)
            self.n = n

    def evidence(self, gain: float, n_children: int) -> tuple[float, int]:
        """Return a split's likelihood ratio statistic and degrees of freedom."""
        left = self.impurity - gain
        return (self.n * math.log(self.impurity / left) if left > 0.0 else math.inf), n_children - 1

    def merit(self, gain: float) -> float:
        """Return the reduction of variance; River's trees compare its ratios."""
        return gain / self.n

    def as_river(self) -> stats.Var:
        """Return the summary of its target that a River leaf keeps."""
        variance = self.impurity / (self.n - 1.0) if self.n > 1.0 else 0.0
        return stats.Var._from_state(self.n, self.mean, variance, ddof=1)


def _total(parts: Iterable[Any], empty: Any) -> Any:
    for part in parts:
        empty.merge(part)
    return empty


def surplus(before: Any, children: Sequence[Any]) -> tuple[float, float]:
    """Return how far a split's evidence exceeds chance, and its purity gain.

    A likelihood ratio statistic that is chi-squared with k degrees of freedom passes
    k + 2 sqrt(k e) + 2 e, e = -log DELTA, with probability below DELTA (Laurent and Massart 2000, Lemma 1).
    There is no split where the first value is not positive, or is NaN because values overflow.
    """
    gain = before.impurity - sum(child.impurity for child in children)  # math.fsum raises where this is infinite
    if not gain > 0.0:
        return -math.inf, 0.0
    statistic, freedom = before.evidence(gain, len(children))
    return statistic - freedom - 2.0 * math.sqrt(freedom * _EVIDENCE) - 2.0 * _EVIDENCE, gain


class _Observer(Splitter):
    def __init__(self, numeric_target: bool) -> None:
        super().__init__()
        self.numeric_target = numeric_target

    def clone(self, new_params: Any = None, include_attributes: bool = False) -> Self:
        """Return a new observer, without River's slow detour through `inspect`."""
        return type(self)(self.numeric_target)

    @property
    def is_target_class(self) -> bool:
        """Whether the observer belongs into a classification tree."""
        return not self.numeric_target

    def cond_proba(self, att_val: Any, target_val: Any) -> float:
        """Refuse, as nobody asks the trees for a prediction."""
        raise NotImplementedError

    def _empty(self) -> Any:
        return Moments() if self.numeric_target else Counts()


class BinnedObserver(_Observer):
    """Keeps target statistics of a number, in `MAX_BINS` bins at most.

    A bin holds the observations from its lowest to its highest value and those bounds. A value between two bins
    becomes a bin of its own, and where that is one too many, the two neighbours with the smallest weight together
    become one. So every bin's upper bound is a threshold at which the statistics of both sides are exact, few
    distinct values keep a bin each, and many fill bins of about equal weight, also when they wander.
    """

    def __init__(self, numeric_target: bool) -> None:
        super().__init__(numeric_target)
        self._lowest: list[float] = []
        self._highest: list[float] = []
        self._weights: list[float] = []
        self._bins: list[Any] = []

    @property
    def n(self) -> float:
        """The weight of the observations that had the feature."""
        return math.fsum(self._weights)

    def update(self, att_val: float, target_val: Any, w: float) -> None:
        """Count an observation."""
        i = bisect_left(self._highest, att_val)
        if i == len(self._highest) or att_val < self._lowest[i]:
            self._lowest.insert(i, att_val)
            self._highest.insert(i, att_val)
            self._weights.insert(i, 0.0)
            self._bins.insert(i, self._empty())
        self._weights[i] += w
        self._bins[i].add(target_val, w)
        if len(self._bins) > MAX_BINS:
            pairs = [a + b for a, b in zip(self._weights, self._weights[1:], strict=False)]
            k = pairs.index(min(pairs))
            self._highest[k] = self._highest.pop(k + 1)
            self._weights[k] += self._weights.pop(k + 1)
            self._bins[k].merge(self._bins.pop(k + 1))
            del self._lowest[k + 1]

    def best_evaluated_split_suggestion(
        self, criterion: Any, pre_split_dist: Any, att_idx: Any, binary_only: bool
    ) -> BranchFactory:
        """Return the best threshold, or River's null split if none beats chance."""
        before = _total(self._bins, self._empty())
        # Sums from either end: a difference of large sums would lose the small ones.
        above = [self._empty()]
        for part in reversed(self._bins[1:]):
            above.append(_total((above[-1], part), self._empty()))
        best, most, best_gain, below = None, 0.0, 0.0, self._empty()
        for i, part in enumerate(self._bins[:-1]):
            below.merge(part)
            children = (below, above[len(self._bins) - 1 - i])
            if min(child.n for child in children) < MIN_CHILD:
                continue
            found, gain = surplus(before, children)
            if found > most:
                best, most, best_gain = i, found, gain
        if best is None:
            return BranchFactory()
        children = (_total(self._bins[: best + 1], self._empty()), _total(self._bins[best + 1 :], self._empty()))
        return BranchFactory(
            before.merit(best_gain), att_idx, self._highest[best], [child.as_river() for child in children]
        )


class NominalObserver(_Observer):
    """Observer of a category: suggests splits by all or by a single value."""

    def __init__(self, numeric_target: bool) -> None:
        super().__init__(numeric_target)
        self._parts: dict[Any, Any] = {}

    @property
    def n(self) -> float:
        """The weight of the observations that had the feature."""
        return math.fsum(part.n for part in self._parts.values())

    @property
    def is_numeric(self) -> bool:
        """Always False; River asks."""
        return False

    def update(self, att_val: Any, target_val: Any, w: float) -> None:
        """Count an observation."""
        part = self._parts.get(att_val)
        if part is None:
            part = self._parts[att_val] = self._empty()
        part.add(target_val, w)

    def best_evaluated_split_suggestion(
        self, criterion: Any, pre_split_dist: Any, att_idx: Any, binary_only: bool
    ) -> BranchFactory:
        """Return the best split, or River's null split if none beats chance."""
        categories = sorted(self._parts)
        before = _total(self._parts.values(), self._empty())
        best, most = BranchFactory(), 0.0
        candidates: list[tuple[Any, list[Any]]] = []
        if len(categories) > 1 and not binary_only:
            candidates.append((categories, [self._parts[category] for category in categories]))
        if len(categories) > 2 or binary_only:
            for category in categories:
                rest = _total((self._parts[c] for c in categories if c != category), self._empty())
                if min(rest.n, self._parts[category].n) >= MIN_CHILD:
                    candidates.append((category, [self._parts[category], rest]))
        for split_info, children in candidates:
            found, gain = surplus(before, children)
            if found > most:
                most = found
                best = BranchFactory(
                    before.merit(gain),
                    att_idx,
                    split_info,
                    [child.as_river() for child in children],
                    numerical_feature=False,
                    multiway_split=split_info is categories,
                )
        return best
