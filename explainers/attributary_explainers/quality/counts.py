"""Weighted counts of a classifier's predictions, for River's metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from river import metrics

from ..ordering import sort_key
from ..predictions import most_probable
from ..typing import Probabilities, Snapshot
from .names import METRICS

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


class ClassCounts:
    """Weighted counts of labels with predicted labels and probabilities.

    River's metrics of classes read nothing but counts of equal observations, so they are given these when their value
    is asked for: nothing relies on their insides, and an observation costs two additions.

    Probabilities are counted in bins of equal width in asinh(logit p): `roc_auc` takes the scores in one bin for equal.
    The width is 1/288, and triples whenever there are more than `MAX_BINS` bins: a model whose predictions are nearly
    the same is resolved as well as a sure one. With more than two classes, probabilities are not counted.
    """

    def __init__(self, *, scores: bool) -> None:
        self.scores = scores
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
        if self.scores and len(self._labels) <= 2:
            self._count_score(y, prediction, weight)
        elif self._bins:
            self._bins.clear()  # they would be of some of the observations only

    def _add(self, pair: tuple[Any, Any], weight: float) -> None:
        """Count a pair of labels that is new."""
        self._pairs[_plain(pair[0]), _plain(pair[1])] = weight
        self._labels.update(pair)
        if len(self._pairs) > MAX_CELLS:
            self._pairs = _pooled(self._pairs)

    def _count_score(self, y: Any, prediction: Probabilities, weight: float) -> None:
        p = prediction.get(y)
        if p is None:  # of two classes, the model may name one
            p = 1.0 - sum(prediction.values())
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
        """Multiply all weights, and forget what has faded."""
        self._pairs = {pair: w * factor for pair, w in self._pairs.items() if w * factor >= FADED}
        self._bins = {place: w * factor for place, w in self._bins.items() if w * factor >= FADED}
        self._labels = {label for pair in self._pairs for label in pair}

    def value(self, names: Iterable[str], weight: float) -> dict[str, float | None]:
        """Return the class metrics among `names`; None where undefined.

        Metrics of two classes are undefined where there are not two.

        Parameters
        ----------
        weight
            The weight of the last observation.
        """
        pairs = {pair: w / weight for pair, w in self._pairs.items() if w >= FADED * weight}
        # By their numbers in order: the sums are the same in every process, and of two labels the greater one is True.
        number = {label: i for i, label in enumerate(sorted({a for pair in pairs for a in pair}, key=sort_key))}
        matrix = _CONFUSION()
        for (y, label), w in pairs.items():
            matrix.update(number[y], number[label], w)
        found: dict[str, float | None] = {}
        for name in names:
            metric = METRICS[name]
            if metric.reads == "label":
                found[name] = metric.make(cm=matrix).get() if pairs else None
            elif metric.reads == "two labels":
                found[name] = metric.make(cm=matrix).get() if len(number) == 2 else None
            elif metric.reads == "two probabilities":
                found[name] = self._auc({label: bool(i) for label, i in number.items()}, weight)
        return found

    def _auc(self, positive: dict[Any, bool], weight: float) -> float | None:
        """Return River's ROC AUC over the bins; None without two seen classes."""
        if len(positive) != 2:
            return None
        rows = [
            # The bin of the greater label's probability: that of the other one is its mirror image.
            (place if positive[y] else -place, positive[y], w / weight)
            for (y, place), w in self._bins.items()
            if y in positive and w >= FADED * weight
        ]
        if len({y for _, y, _ in rows}) < 2:
            return None
        seen = _grouped(rows)
        above = np.cumsum(seen[:, ::-1], axis=1)[:, ::-1].tolist()
        metric = METRICS["roc_auc"].make(n_thresholds=seen.shape[1] + 1)
        # What its `update` does with a score above the first i groups, for all observations of each class at once.
        for i, matrix in enumerate(metric.cms):
            for is_positive in (False, True):
                of_class = [*above[is_positive], 0.0]
                matrix.update(is_positive, True, of_class[i])
                matrix.update(is_positive, False, of_class[0] - of_class[i])
        return float(metric.get())

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "pairs": [[*pair, weight] for pair, weight in self._pairs.items()],
            "width": self._width,
            "bins": [list(self._bins), list(self._bins.values())],
        }

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._pairs = {(y, label): weight for y, label, weight in state["pairs"]}
        self._bins = dict(zip(*state["bins"], strict=True))
        self._width = state["width"]
        self._labels = {label for pair in self._pairs for label in pair}


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


def _grouped(rows: list[tuple[int, bool, float]]) -> npt.NDArray[np.float64]:
    """Return weights by class and group of bins; shape (2, groups).

    Row 0 has the negatives, row 1 the positives. Each class counts for one half, and no group has much more than its
    part of both together: scores of a rare class are then told apart as well as those of the other.
    """
    column = {place: i for i, place in enumerate(sorted({place for place, _, _ in rows}))}
    seen = np.zeros((2, len(column)))
    for place, is_positive, weight in rows:
        seen[int(is_positive), column[place]] += weight
    if len(column) <= MAX_GROUPS:
        return seen
    part = (seen / seen.sum(axis=1, keepdims=True)).sum(axis=0) / 2.0
    group = ((np.cumsum(part) - part / 2.0) * MAX_GROUPS).astype(np.int64)
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    return np.add.reduceat(seen, begins, axis=1)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
