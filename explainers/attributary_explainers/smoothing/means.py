"""Exact exponential smoothing of numbers and of predictions."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from ..core.smoothing import Weights
from ..typing import Prediction, Probabilities, Snapshot

_FADED = 1e-12
_SHORTEST_MEMORY = 1000
_LONGEST_MEMORY = 2.0**62
"""No stream has so many observations; an alpha below 1e-307 would ask for more than a float can hold."""


def memory_of(alpha: float) -> int:
    """Return after how many observations without it a name is forgotten.

    Its weight has then faded below 1e-12, and at least 1000 observations have passed: a stream of ever new names has
    bounded state.
    """
    faded = math.log(_FADED) / math.log1p(-alpha) if alpha < 1.0 else 0.0
    return max(_SHORTEST_MEMORY, math.ceil(min(faded, _LONGEST_MEMORY)))


class SmoothedMean:
    """Exponentially weighted mean of a number; None before the first.

    Examples
    --------
    >>> loss = SmoothedMean(alpha=0.5)
    >>> loss.update(1.0), loss.update(4.0)
    (1.0, 3.0)
    """

    def __init__(self, alpha: float) -> None:
        self.weights = Weights(alpha)
        self._value = 0.0

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self._value if self.weights.n else None

    def update(self, value: float, times: int = 1) -> float:
        """Add a value with the weight of `times`; return the new mean."""
        self._value += self.weights.step(times) * (value - self._value)
        return self._value

    def share(self, weights: Weights) -> None:
        """Use another mean's equal weights; from then on `follow` adds values."""
        self.weights = weights

    def follow(self, value: float, rate: float) -> None:
        """Add a value by its share in the mean that owns the shared weights."""
        self._value += rate * (value - self._value)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"weights": self.weights.snapshot(), "value": float(self._value)}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> SmoothedMean:
        """Return the mean that the snapshot was taken of."""
        mean = cls.__new__(cls)
        mean.weights, mean._value = Weights.from_snapshot(snapshot["weights"]), snapshot["value"]
        return mean


Mark: TypeAlias = tuple[int, float, float, Any]
"""Where a `SmoothedPrediction` was: the numbers of its weights, and its value."""


class SmoothedPrediction:
    """Exponentially weighted mean prediction: a number or probabilities.

    Starts at the first prediction, never at 0 (iSAGE Definition 3); a class first predicted late had the probability 0
    before. With more than a hundred classes, those that are no longer predicted are dropped once their mean probability
    has faded below 1e-12: a stream of ever new labels has bounded state.
    """

    def __init__(self, alpha: float) -> None:
        self.weights = Weights(alpha)
        self._value: Probabilities | float | None = None

    def mark(self) -> Mark:
        """Return where the mean is now, for `go_back`."""
        weights = self.weights
        return weights.n, weights.total, weights.squares, self._value  # which `update` replaces, never changes

    def go_back(self, mark: Mark) -> None:
        """Forget everything since the mark."""
        weights = self.weights
        weights.n, weights.total, weights.squares, self._value = mark

    def update(self, prediction: Probabilities | float, times: int = 1) -> Probabilities | float:
        """Add a prediction, weighted by `times`; return the mean, read-only."""
        rate = self.weights.step(times)
        if isinstance(prediction, dict):
            mean: Probabilities = self._value if isinstance(self._value, dict) else {}
            if mean.keys() == prediction.keys():
                self._value = {label: p + rate * (prediction[label] - p) for label, p in mean.items()}
            else:
                pairs = {label: (mean.get(label, 0.0), prediction.get(label, 0.0)) for label in (*mean, *prediction)}
                self._value = {label: before + rate * (now - before) for label, (before, now) in pairs.items()}
            if len(self._value) > 100:
                self._value = {k: p for k, p in self._value.items() if p >= _FADED or k in prediction}
        else:
            number = self._value if isinstance(self._value, float) else 0.0
            self._value = number + rate * (prediction - number)
        return self._value

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        value: list[tuple[Any, float]] | float | None
        if isinstance(self._value, dict):
            value = [(label, float(p)) for label, p in self._value.items()]
        else:
            value = None if self._value is None else float(self._value)
        return {"weights": self.weights.snapshot(), "value": value}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> SmoothedPrediction:
        """Return the mean that the snapshot was taken of."""
        mean = cls.__new__(cls)
        mean.weights = Weights.from_snapshot(snapshot["weights"])
        value = snapshot["value"]
        mean._value = dict(map(tuple, value)) if isinstance(value, list) else value
        return mean


def mean_prediction(predictions: list[Prediction]) -> Probabilities | float | None:
    """Return the mean of predictions of the same kind; None if any is missing."""
    first = predictions[0]
    if len(predictions) == 1 or first is None:
        return first
    share = 1.0 / len(predictions)
    if isinstance(first, dict):
        total: Probabilities = {}
        for prediction in predictions:
            if not isinstance(prediction, dict):
                return None
            for label, p in prediction.items():
                total[label] = total.get(label, 0.0) + p
        return {label: p * share for label, p in total.items()}
    number = 0.0
    for prediction in predictions:
        if not isinstance(prediction, (float, int)):
            return None
        number += prediction
    return number * share
