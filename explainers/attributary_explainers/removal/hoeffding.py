"""Hoeffding trees whose leaves give draws (iSAGE Algorithms 3 and 4)."""

from __future__ import annotations

import enum
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, Final, Self, TypeAlias

from river import drift, stats, tree
from river.tree.nodes.hatc_nodes import AdaLeafClassifier
from river.tree.nodes.hatr_nodes import AdaLeafRegMean
from river.tree.nodes.htc_nodes import LeafNaiveBayesAdaptive
from river.tree.nodes.leaf import HTLeaf
from river.tree.splitter.base import Splitter
from river.tree.utils import BranchFactory

from ..missing import is_missing

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


Code: TypeAlias = float | int
"""A value as trees read it: a float of a numeric feature, the number of a category of a nominal one."""

OTHER = -1
"""The number that all categories share that have no number of their own."""


def says_nothing(value: Any) -> bool:
    """Return whether a value is missing, or is no category for lack of a hash."""
    return is_missing(value) or not isinstance(value, Hashable)


def is_number(value: Any) -> bool:
    """Return whether a first value makes its feature numeric; no bool does."""
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


class Numeric:
    """Encodes numbers as floats; anything else, and infinity, has no code."""

    def learn(self, value: Any, now: int) -> float | None:
        """Return the code of an observed value, or None."""
        return self.code(value)

    def code(self, value: Any) -> float | None:
        """Return the code of a value, or None."""
        if not isinstance(value, (Real, Decimal)):
            return None
        try:
            number = float(value)
        except (OverflowError, ValueError):  # as above
            return None
        return number if math.isfinite(number) else None


class Nominal:
    """Numbers categories from 0 to `max_categories` - 1, by first arrival.

    River's trees sort what they split on, and can sort numbers, but not categories of mixed types. And numbers are
    bounded: once all are in use, a new category takes the number of the one not seen for longest, if that was more
    than `forget_after` observations ago; otherwise it shares `OTHER` with all further ones. Categories are told apart
    as a dict does: 1, 1.0 and True are one.

    Parameters
    ----------
    max_categories
        Valid range >= 1. Larger tells more categories apart and costs memory in every tree.
    forget_after
        Valid range >= 1, in observations. Larger keeps the number of a rare category for longer.

    Examples
    --------
    >>> colours = Nominal(max_categories=2, forget_after=100)
    >>> [colours.learn(value, now) for now, value in enumerate(["red", "blue", "green", "red"])]
    [0, 1, -1, 0]
    >>> colours.learn("green", now=150)  # nothing else was seen since 3
    1
    """

    def __init__(self, max_categories: int, forget_after: int) -> None:
        self.max_categories = max_categories
        self.forget_after = forget_after
        # Category to its number and when it was last seen; the one not seen for longest comes first.
        self._numbers: dict[Any, tuple[int, int]] = {}

    def learn(self, value: Any, now: int) -> int | None:
        """Return a category's number, new if any is left; None for missing.

        `OTHER` where no number is left.
        """
        if says_nothing(value):
            return None
        known = self._numbers.pop(value, None)
        if known is not None:
            number = known[0]
        elif len(self._numbers) < self.max_categories:
            number = len(self._numbers)
        else:
            oldest = next(iter(self._numbers))
            number, last_seen = self._numbers[oldest]
            if now - last_seen <= self.forget_after:
                return OTHER
            del self._numbers[oldest]
        self._numbers[value] = (number, now)
        return number

    def code(self, value: Any) -> int | None:
        """Return a category's number, `OTHER` if it has none, None if missing."""
        return None if says_nothing(value) else self._numbers.get(value, (OTHER, 0))[0]


class Empty(enum.Enum):
    """The type of `EMPTY`; an enumeration, so that a copy is the same object."""

    EMPTY = "EMPTY"

    def __repr__(self) -> str:
        return self.value


EMPTY: Final = Empty.EMPTY
"""The result of a draw where nothing is stored, as every value, None too, could be somebody's category."""


class RecentRows:
    """Keeps the encoded rows of the last `size` observations, by number."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._rows: list[tuple[int, dict[Any, Code]]] = []

    def add(self, number: int, row: dict[Any, Code]) -> None:
        """Keep the row of an observation, uncopied; numbers run from 1, no gaps."""
        if len(self._rows) < self.size:
            self._rows.append((number, row))
        else:
            self._rows[(number - 1) % self.size] = (number, row)

    def get(self, number: int) -> dict[Any, Code] | None:
        """Return the row of an observation, None once it is too long ago."""
        kept, row = self._rows[(number - 1) % self.size]
        return row if kept == number else None


class _Leaf(HTLeaf):
    """Keeps a geometric reservoir of target values, with observation numbers."""

    counts: None = None  # where a branch has its children's counts

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]  # as River's leaves are
        self.values: list[Any] = []
        self.numbers: list[int] = []
        self._ordered: list[Any] | None = None
        self._inherited = self.total_weight

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ordered": None}  # values again, in another order

    def keep(self, value: Any, number: int, slot: Callable[[int], int], size: int) -> None:
        """Store a value; if full, in a drawn slot (iSAGE Algorithm 2)."""
        self._ordered = None
        if len(self.values) < size:
            self.values.append(value)
            self.numbers.append(number)
        else:
            k = slot(size)
            self.values[k], self.numbers[k] = value, number

    @property
    def ordered(self) -> list[Any]:
        """The values, sorted if possible, so that near numbers draw near values."""
        if self._ordered is None:
            try:
                self._ordered = sorted(self.values)
            except TypeError:  # categories of mixed types
                self._ordered = list(self.values)
        return self._ordered

    def best_split_suggestions(self, criterion: Any, tree: Any) -> list[BranchFactory]:
        """Return the splits with evidence and the null split; [] without evidence.

        River takes the null split for infinitely bad, so that a leaf with one feature always splits; and it stops
        learning in a leaf for good where no feature can be split. If some observations lacked a feature, its merit is
        multiplied by the share that had it (Quinlan, C4.5).
        """
        learnt = self.total_weight - self._inherited
        found = []
        for feature, observer in self.splitters.items():
            suggestion = observer.best_evaluated_split_suggestion(criterion, self.stats, feature, tree.binary_split)
            if suggestion.feature is not None:
                suggestion.merit *= min(observer.n / learnt, 1.0)
                found.append(suggestion)
        return [BranchFactory(0.0), *found] if found else []


class _NoBayes(LeafNaiveBayesAdaptive):
    def learn_one(self, x: Any, y: Any, *, w: float = 1.0, tree: Any = None) -> None:
        # River compares naive Bayes with the majority class at every observation, whichever is asked for.
        HTLeaf.learn_one(self, x, y, w=w, tree=tree)  # type: ignore[no-untyped-call]


class ClassifierLeaf(_Leaf, AdaLeafClassifier, _NoBayes):
    """A leaf of a nominal feature's tree."""

    new_nominal_splitter = staticmethod(partial(NominalObserver, numeric_target=False))

    def prediction(self, x: Any, *, tree: Any = None) -> Any:
        """The weight of each category."""
        return self.stats  # only its largest is looked at: River's copies the counts to normalise them


class RegressorLeaf(_Leaf, AdaLeafRegMean):
    """A leaf of a numeric feature's tree."""

    new_nominal_splitter = staticmethod(partial(NominalObserver, numeric_target=True))


TIE = 0.1
"""Hoeffding bound below which the better of two splits is taken though they are nearly equal. Twice River's: every
split that is weighed here has evidence of its own, so that the choice only orders good ones."""

ROWS_PER_LEAF_SIZE = 20
"""The number of observations kept to move stored values with, and of visits that halve a split's counts.

In leaf sizes.
"""


class RelativeADWIN(drift.ADWIN):
    """Detects drift by ADWIN over absolute errors relative to their mean.

    Each error counts as its share of four times the mean so far, at most 1. ADWIN's bound is for numbers in [0, 1]: fed
    with raw errors, as River's tree does, it never alarms for a feature in thousandths and has lost its guarantee for
    one in thousands.
    """

    def _reset(self) -> None:
        super()._reset()  # type: ignore[no-untyped-call]  # River's drift detectors and leaves are untyped
        self._n = 0
        self._mean = 0.0

    def update(self, x: float) -> None:
        """Take in an absolute error."""
        self._n += 1
        self._mean += (x - self._mean) / self._n
        share = min(x / (4.0 * self._mean), 1.0) if self._mean > 0.0 else 0.0
        super().update(share)  # type: ignore[no-untyped-call]


class SamplingTree:
    """Makes River's trees, of both kinds, keep values in leaves and draw them.

    Values are kept in the leaves of alternate trees too, so that these have something to draw from when they
    take over, but are never drawn from there. When a leaf splits, its values move to the children by the split,
    as far as their observations are still in `recent`.
    """

    # Of River's tree.
    _root: Any
    _rng: Any
    drift_detector: Any
    splitter: Any
    # Of each kind: its leaves, and what these know of the target at first.
    leaf: Any
    no_stats: Any

    def __init__(self, leaf_size: int, max_leaves: int, recent: RecentRows, **settings: Any) -> None:
        # Without bootstrap weights, so that counts are of observations.
        super().__init__(**{"delta": DELTA, "tau": TIE, "bootstrap_sampling": False, **settings})
        self.leaf_size = leaf_size
        self.max_leaves = max_leaves
        self.recent = recent
        self._counted: list[Any] = []

    def learn(self, row: dict[Any, Code], y: Code) -> None:
        """Learn to tell the target from the other features."""
        try:
            self.learn_one(row, y)  # type: ignore[attr-defined]
        except ZeroDivisionError:
            # River's z-test of a subtree against its alternate, where neither has erred by different amounts.
            for node in self._nodes():
                alternate = getattr(node, "_alternate_tree", None)
                if alternate is not None and not (node._error_tracker.get() or alternate._error_tracker.get()):
                    node._alternate_tree = None
            self.learn_one(row, y)  # type: ignore[attr-defined]

    def keep(self, row: dict[Any, Code], value: Any, number: int) -> None:
        """Store the target's value in the row's leaf, and count the way there.

        Where the row lacks the feature of a split it leads to no leaf. River's tree has learnt it on the commonest
        way; stored there, it would mix values of every condition into one.
        """
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            while node.counts is not None:
                if node._alternate_tree is not None:
                    waiting.append(node._alternate_tree)
                child = _way(node, row)
                if child is None:
                    break
                if not any(node is counted for counted in self._counted):
                    self._count(node, child)
                node = node.children[child]
            else:
                node.keep(value, number, self._slot, self.leaf_size)
        self._counted.clear()

    def _slot(self, size: int) -> int:
        return int(self._rng.random() * size)

    def _count(self, branch: Any, child: int) -> None:
        counts = branch.counts
        counts.extend([0.0] * (len(branch.children) - len(counts)))  # a category that the split had not seen
        counts[child] += 1.0
        # Without an end to their memory the shares of the children would be those of the stream's first years.
        if counts[child] > ROWS_PER_LEAF_SIZE * self.leaf_size:
            counts[:] = [0.5 * count for count in counts]

    def sample(self, code: Callable[[Any], Code | None], numbers: Sequence[float]) -> list[Any]:
        """Walk to a leaf and draw a value, for each number (iSAGE Algorithm 4).

        Parameters
        ----------
        code
            Feature to its code; None for one that the draw must not depend on, or that the observation lacks.
        numbers
            Valid range [0, 1) each; one number chooses both the way and the value.
        """
        return _drawn(self._root, code, numbers)

    def leaves(self, code: Callable[[Any], Code | None]) -> Iterator[tuple[Any, float]]:
        """Yield each leaf that `sample` can reach, by u, with its probability."""
        waiting = [(self._root, 1.0)]
        while waiting:
            node, probability = waiting.pop()
            if node.counts is None:
                yield node, probability
                continue
            known = code(node.feature)
            child = None if known is None else _way(node, {node.feature: known})
            if child is not None:
                waiting.append((node.children[child], probability))
            else:
                total = sum(node.counts)
                # strict=False: a child that no value has been kept in has no count yet.
                shares = [(c, probability * n / total) for c, n in zip(node.children, node.counts, strict=False) if n]
                waiting.extend(reversed(shares))

    def forget(self, features: Collection[Any]) -> bool:
        """Forget features that are gone; return False if the tree splits on any."""
        for node in self._nodes():
            if node.counts is not None:
                if node.feature in features:
                    return False
            elif node.splitters is not None:
                for feature in features:
                    node.splitters.pop(feature, None)
        return True

    def _nodes(self) -> Iterator[Any]:
        waiting = [] if self._root is None else [self._root]
        while waiting:
            node = waiting.pop()
            yield node
            if node.counts is not None:
                waiting.extend(node.children)
                if node._alternate_tree is not None:
                    waiting.append(node._alternate_tree)

    def _new_leaf(self, initial_stats: Any = None, parent: Any = None, is_active: bool = True) -> Any:
        depth, known = 0 if parent is None else parent.depth + 1, initial_stats or self.no_stats()
        return self.leaf(known, depth, self.splitter, drift_detector=self.drift_detector.clone(), rng=self._rng)

    def _attempt_to_split(self, leaf: Any, parent: Any, parent_branch: Any, **kwargs: Any) -> None:
        """Split as River does, below `max_leaves`, and move the stored values.

        The leaf may be an alternate: River then puts the new split in place of the subtree that it is alternate to.
        """

        def place() -> Any:
            return self._root if parent is None else parent.children[parent_branch]

        before = place()
        if self._root.n_leaves - before.n_leaves + 1 >= self.max_leaves:
            return
        super()._attempt_to_split(leaf, parent, parent_branch, **kwargs)  # type: ignore[misc]
        branch = place()
        if branch is before:
            return
        # Of the observations since the leaf was made, the one that is being learnt included.
        branch.counts = [float(child.total_weight) for child in branch.children]
        self._counted.append(branch)
        for value, number in zip(leaf.values, leaf.numbers, strict=True):
            row = self.recent.get(number)
            child = None if row is None else _way(branch, row)
            if child is not None:
                branch.children[child].keep(value, number, self._slot, self.leaf_size)


class NominalTree(SamplingTree, tree.HoeffdingAdaptiveTreeClassifier):
    """Predicts the category of a nominal feature."""

    leaf, no_stats = ClassifierLeaf, dict

    def __init__(self, *args: Any, **settings: Any) -> None:
        # Every split has passed a test, also one that cuts off the rarest category.
        super().__init__(
            *args,
            leaf_prediction="mc",
            splitter=BinnedObserver(numeric_target=False),
            min_branch_fraction=0.0,
            max_share_to_split=1.0,
            **settings,
        )


class NumericTree(SamplingTree, tree.HoeffdingAdaptiveTreeRegressor):
    """Predicts the value of a numeric feature."""

    leaf, no_stats = RegressorLeaf, stats.Var

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(
            *args,
            leaf_prediction="mean",
            splitter=BinnedObserver(numeric_target=True),
            drift_detector=RelativeADWIN(),  # type: ignore[no-untyped-call]
            **settings,
        )


def _way(branch: Any, row: dict[Any, Code]) -> int | None:
    """Return the child that a row goes to; None where the split cannot tell."""
    try:
        return branch.branch_no(row)  # type: ignore[no-any-return]
    except KeyError:
        return None


def _drawn(node: Any, code: Callable[[Any], Code | None], numbers: Sequence[float]) -> list[Any]:
    """Return a value from below a node for each of the numbers."""
    while (counts := node.counts) is not None:
        known = code(node.feature)
        child = None if known is None else _way(node, {node.feature: known})
        if child is None:
            ways = [_share(counts, u) for u in numbers]
            return [_drawn(node.children[child], code, (u,))[0] for child, u in ways]
        node = node.children[child]
    values = node.ordered
    n = len(values)
    return [values[min(int(u * n), n - 1)] if n else EMPTY for u in numbers]


def _share(counts: list[float], u: float) -> tuple[int, float]:
    """Return the child whose share of [0, 1) holds `u`, and u's place in it."""
    u *= sum(counts)
    for child, count in enumerate(counts):
        if u < count:
            return child, u / count
        u -= count
    return max(child for child, count in enumerate(counts) if count), 1.0  # by rounding
