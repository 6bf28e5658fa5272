"""Weighted counts of a classifier's predictions, for River's metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from river import metrics

from ..ordering import sort_key
from ..predictions import most_probable
from ..snapshots import Stored
from ..typing import Array, Probabilities
from .names import METRICS, At, at_of, reads_of

FADED = 2.0**-40
"""What weighs less than this part of the last observation is forgotten."""
MAX_CELLS = 2500
"""Pairs of labels at most: of more, the lighter half counts as pairs of `OTHERS`."""
OTHERS = "__other__", "__another__"
"""Labels that stand for rare ones: the first for the label, and for the prediction where it was right."""
MAX_GROUPS = 64
"""Thresholds of `roc_auc` at most, less one: what asking for its value costs grows with them."""
_CONFUSION: Any = metrics.ConfusionMatrix
MAX_BINS = 400
"""Pairs of label and bin at most: of more, three neighbouring bins become one."""
_FINEST = 1 / 288
_LEAST = math.exp(-40.0)
_FARTHEST = math.asinh(40.0)


class ClassCounts(Stored):
    """Weighted counts of labels with predicted labels and probabilities.

    River's metrics of classes read nothing but counts of equal observations, so they are given these when their value
    is asked for: nothing relies on their insides, and an observation costs two additions.

    Probabilities are counted in bins of equal width in asinh(logit p): `roc_auc` takes the scores in one bin for equal.
    The width is 1/288, and triples whenever there are more than `MAX_BINS` bins: a model whose predictions are nearly
    the same is resolved as well as a sure one. For precision and recall at a threshold it is counted which side of it
    the probabilities of both classes are on. With more than two classes, probabilities are not counted.

    Parameters
    ----------
    names
        The metrics of classes that are to be known, without `cross_entropy`.
    positive
        The positive one of two classes; None: the greater one.
    """

    _unstored = ("_labels",)

    def __init__(self, names: Sequence[str], positive: Any = None) -> None:
        self.names = tuple(names)
        self.positive = positive
        of_scores = [at_of(name) for name in names if reads_of(name) == "two probabilities"]
        self.thresholds = sorted({at.number for at in of_scores if at is not None and not at.is_rate})
        self.scores = any(at is None or at.is_rate for at in of_scores)
        self._sides: dict[tuple[float, Any, bool, bool], float] = {}
        """By threshold, label, and whether its probability and that of the other class reach the threshold."""
        self._pairs: dict[tuple[Any, Any], float] = {}
        self._bins: dict[tuple[Any, int], float] = {}
        self._width = _FINEST
        self._labels: set[Any] = set()

    def update(self, y: Any, prediction: Probabilities, weight: float) -> None:
        """Count an observation by its weight."""
        pair = y, most_probable(prediction)
        counted = self._pairs.get(pair)
        if counted is None:
            self._add(pair, weight)
        else:
            self._pairs[pair] = counted + weight
        if len(self._labels) > 2:
            self._bins.clear()  # they would be of some of the observations only
            self._sides.clear()
            return
        if self.scores:
            self._count_score(y, prediction, weight)
        for threshold in self.thresholds:
            other = sum(p for label, p in prediction.items() if label != y)
            side = threshold, _plain(y), bool(prediction.get(y, 0.0) >= threshold), bool(other >= threshold)
            self._sides[side] = self._sides.get(side, 0.0) + weight

    def _add(self, pair: tuple[Any, Any], weight: float) -> None:
        """Count a pair of labels that is new."""
        self._pairs[_plain(pair[0]), _plain(pair[1])] = weight
        self._labels.update(pair)
        if len(self._pairs) > MAX_CELLS:
            self._pairs = _pooled(self._pairs)

    def _count_score(self, y: Any, prediction: Probabilities, weight: float) -> None:
        p = prediction.get(y, 0.0)
        certain = _FARTHEST if p > 0.5 else -_FARTHEST
        score = math.asinh(math.log(p / (1.0 - p))) if _LEAST < p < 1.0 else certain
        place = y, round(score / self._width)
        known = self._bins.get(place)
        if known is None:
            self._bins[_plain(y), place[1]] = weight
            if len(self._bins) > MAX_BINS:
                self._widen()
        else:
            self._bins[place] = known + weight

    def _widen(self) -> None:
        merged: dict[tuple[Any, int], float] = {}
        for (y, place), weight in self._bins.items():
            wider = y, round(place / 3)  # three bins and their mirror images: two would not be symmetric
            merged[wider] = merged.get(wider, 0.0) + weight
        self._bins, self._width = merged, 3.0 * self._width

    def scale(self, factor: float) -> None:
        """Multiply all weights, and forget faded weights."""
        self._pairs = {pair: w * factor for pair, w in self._pairs.items() if w * factor >= FADED}
        self._bins = {place: w * factor for place, w in self._bins.items() if w * factor >= FADED}
        self._sides = {side: w * factor for side, w in self._sides.items() if w * factor >= FADED}
        self._complete()

    def _complete(self) -> None:
        self._labels = {label for pair in self._pairs for label in pair}

    def value(self, weight: float) -> dict[str, float | None]:
        """Return the metrics; None where undefined.

        Metrics of two classes are undefined where there are not two.

        Parameters
        ----------
        weight
            The weight of the last observation.
        """
        pairs = {pair: w / weight for pair, w in self._pairs.items() if w >= FADED * weight}
        # By their numbers in order: the sums are the same in every process, and of two labels the last one is True.
        number = {label: i for i, label in enumerate(sorted({a for pair in pairs for a in pair}, key=self._order))}
        has_positive = self.positive is None or self.positive in number
        matrix = _CONFUSION()
        for (y, label), w in pairs.items():
            matrix.update(number[y], number[label], w)
        found: dict[str, float | None] = {}
        for name in self.names:
            reads = reads_of(name)
            if reads != "label" and not has_positive:
                found[name] = None
            elif reads == "two probabilities":
                found[name] = self._of_scores(name, {label: bool(i) for label, i in number.items()}, weight)
            else:
                is_defined = len(number) == 2 if reads == "two labels" else bool(pairs)
                found[name] = METRICS[name].make(cm=matrix).get() if is_defined else None
        return found

    def _order(self, label: Any) -> tuple[Any, ...]:
        """Return a sort key that puts a named positive class last."""
        return self.positive is not None and bool(label == self.positive), sort_key(label)

    def _of_scores(self, name: str, positive: dict[Any, bool], weight: float) -> float | None:
        """Return a metric of probabilities; None without two seen classes."""
        if len(positive) != 2:
            return None
        at = at_of(name)
        if at is not None and not at.is_rate:
            placed = [
                (int(own if positive[y] else other), y, w)
                for (threshold, y, own, other), w in self._sides.items()
                if threshold == at.number and y in positive
            ]
        else:  # the bin of the greater label's probability: that of the other one is its mirror image
            placed = [(place if positive[y] else -place, y, w) for (y, place), w in self._bins.items() if y in positive]
        rows = [(place, positive[y], w / weight) for place, y, w in placed if w >= FADED * weight]
        if len({y for _, y, _ in rows}) < 2:
            return None
        places, seen = _by_place(rows)
        if at is None:
            return _roc_auc(_grouped(seen)) if name == "roc_auc" else _average_precision(seen)
        return _at(at, _highest(seen.sum(axis=0), at.number) if at.is_rate else places, seen)


def _pooled(weights: dict[tuple[Any, Any], float]) -> dict[tuple[Any, Any], float]:
    """Return the pairs with the lighter half pooled into right and wrong."""
    other, another = OTHERS
    median = sorted(weights.values())[len(weights) // 2]
    kept = {pair: weight for pair, weight in weights.items() if weight > median}
    for (y, label), weight in weights.items():
        if weight <= median:
            pool = other, other if y == label else another
            kept[pool] = kept.get(pool, 0.0) + weight
    return kept


def _by_place(rows: list[tuple[int, bool, float]]) -> tuple[Array, Array]:
    """Return places in their order, and weights by class and place.

    Row 0 of the weights, shape (2, places), has the negatives, row 1 the positives.
    """
    column = {place: i for i, place in enumerate(sorted({place for place, _, _ in rows}))}
    seen = np.zeros((2, len(column)))
    for place, is_positive, weight in rows:
        seen[int(is_positive), column[place]] += weight
    return np.array(list(column), dtype=np.float64), seen


def _roc_auc(seen: Array) -> float:
    """Return River's ROC AUC with a threshold between all groups."""
    above = np.cumsum(seen[:, ::-1], axis=1)[:, ::-1].tolist()
    metric = METRICS["roc_auc"].make(n_thresholds=seen.shape[1] + 1)
    # What its `update` does with a score above the first i groups, for all observations of each class at once.
    for i, matrix in enumerate(metric.cms):
        for is_positive in (False, True):
            of_class = [*above[is_positive], 0.0]
            matrix.update(is_positive, True, of_class[i])
            matrix.update(is_positive, False, of_class[0] - of_class[i])
    return float(metric.get())


def _average_precision(seen: Array) -> float:
    """Return the mean precision at the scores of the positives."""
    negative, positive = np.cumsum(seen[:, ::-1], axis=1)
    return float(np.average(positive / (negative + positive), weights=seen[1, ::-1]))


def _highest(weights: Array, rate: float) -> Array:
    """Return the part of each place within the highest share `rate`."""
    above = np.cumsum(weights[::-1])[::-1] - weights
    part: Array = np.clip((rate * weights.sum() - above) / weights, 0.0, 1.0)
    return part


def _at(at: At, part: Array, seen: Array) -> float:
    """Return River's metric for a given positive part of each place.

    The part counts as predicted to be positive.
    """
    matrix = _CONFUSION()
    for is_positive in (False, True):
        of_class = seen[int(is_positive)]
        matrix.update(is_positive, True, float(of_class @ part))
        matrix.update(is_positive, False, float(of_class @ (1.0 - part)))
    return float(METRICS[at.metric].make(cm=matrix).get())


def _grouped(seen: Array) -> Array:
    """Return weights by class and group of bins; shape (2, groups).

    Each class counts for one half, and no group has much more than its part of both together: scores of a rare class
    are then told apart as well as those of the other.
    """
    if seen.shape[1] <= MAX_GROUPS:
        return seen
    part = (seen / seen.sum(axis=1, keepdims=True)).sum(axis=0) / 2.0
    group = ((np.cumsum(part) - part / 2.0) * MAX_GROUPS).astype(np.int64)
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    return np.add.reduceat(seen, begins, axis=1)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
