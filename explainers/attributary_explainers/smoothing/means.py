"""Exponentially weighted means of numbers and of predictions."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from ..core.rows import Rows
from ..core.smoothing import MEAN, Weights
from ..typing import Array, Prediction, Probabilities, Snapshot
from ..validation import LARGEST
from .importance import FADED, SmoothedImportance, memory_of


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
                self._value = {k: p for k, p in self._value.items() if p >= FADED or k in prediction}
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


_SLOWER = 2.0
"""How many times longer a prediction counts than it takes to count: see `LaggedReservoir`."""
_OF_GAP, _OF_WINDOW, _OF_SEEN = 0.1, 0.02, 0.02
"""Predictions enter the mean together, as their own mean: so many, as a share of the gap, of 1 / alpha and of all."""


Beside: TypeAlias = tuple[tuple[Any, ...], Array, Array]
"""The classes of a mean prediction, the mean and its standard errors."""


class MarginalPrediction:
    """Smoothed mean prediction: a number, or each class's probability.

    iSAGE's mean (Definition 3) includes the prediction for the observation that is explained, so that on its own it
    predicts a little too well, and each feature gets about -1.5 alpha Var(h) / d too much. With a gap it is the mean of
    the predictions that are as old as what may be drawn, smoothed twice as `LaggedReservoir` chooses what is stored:
    with alpha .001 it follows a season of 1440 observations by .025 of its size, where a mean smoothed once follows by
    .22, and is as often the opposite of what is to be predicted. What its own noise adds to a loss is known by its
    standard errors. Starts at the first prediction, never at 0; a class first predicted late had the
    probability 0 before.

    Parameters
    ----------
    alpha
        Valid range (0, 1].
    gap
        Valid range >= 0; observations. 0: the mean includes the prediction that it is asked beside.
    """

    def __init__(self, alpha: float, gap: int) -> None:
        self.gap = gap
        self._most = max(1, int(min(_OF_GAP * gap, _OF_WINDOW / alpha)))
        self.mean = SmoothedImportance(alpha, slower=_SLOWER, memory=-(-memory_of(alpha) // self._most))
        """Of the predictions that have entered."""
        self._waiting = Rows()
        """Predictions that have not entered; a number is that of the class None."""
        self._n_seen = 0
        self._settled = max(2 * gap, math.ceil(self._most / _OF_SEEN) + 1)
        """So many predictions from which on as many enter together as ever will, and as many wait."""
        self._known: Beside | None = None
        """What `beside` has made of the mean; None until it is asked again."""

    def store(self, prediction: Prediction) -> None:
        """Take in an explained observation's prediction; nothing if it is None."""
        if prediction is None or not _is_fit(prediction):
            return
        n_seen = self._n_seen = self._n_seen + 1
        self._waiting.append(prediction if isinstance(prediction, dict) else {None: prediction})
        n, behind = self._most, max(0, self.gap - 1)
        if n_seen < self._settled:
            n, behind = min(n, max(1, int(_OF_SEEN * n_seen))), min(behind, n_seen // 2)
        if len(self._waiting) >= n + behind:
            self._known = None
            self.mean.update_arrays(*_mean_columns(self._waiting, n), n)
            self._waiting.drop_first(n)

    def beside(self, prediction: Prediction) -> Beside:
        """Return the classes, the mean and its errors, shape (classes,) each.

        Parameters
        ----------
        prediction
            The model's for the observation. It is the mean where there is none yet.
        """
        if self.mean.weights.n == 0:
            names, values = _columns(prediction)
            return names, values, np.zeros(len(values))
        if self._known is None:
            means, errors = self.mean.twice_smoothed() if self.gap else (self.mean.moments[MEAN].copy(), np.zeros(0))
            self._known = tuple(self.mean.names), means, errors
        if self.gap:
            return self._known
        names, values = _columns(prediction)
        rate = self.mean.weights.copy().step()
        known = dict(zip(self._known[0], self._known[1].tolist(), strict=True))
        now = dict(zip(names, values.tolist(), strict=True))
        names = tuple(dict.fromkeys((*known, *now)))
        before = np.array([known.get(name, 0.0) for name in names])
        means = before + rate * (np.array([now.get(name, 0.0) for name in names]) - before)
        return names, means, np.zeros(len(names))

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"mean": self.mean.snapshot(), "waiting": self._waiting.snapshot(), "n_seen": self._n_seen}

    def restore(self, state: Snapshot) -> None:
        """Take the state of a mean with equal parameters."""
        self.mean = SmoothedImportance.from_snapshot(state["mean"])
        self._waiting = Rows.from_snapshot(state["waiting"])
        self._n_seen, self._known = state["n_seen"], None


def prediction_of(names: tuple[Any, ...], values: Array) -> Probabilities | float:
    """Return a prediction from its columns."""
    if names == (None,):
        return float(values[0])
    return dict(zip(names, values.tolist(), strict=True))


def _columns(prediction: Prediction) -> tuple[tuple[Any, ...], Array]:
    if isinstance(prediction, dict):
        return tuple(prediction), np.fromiter(prediction.values(), dtype=np.float64, count=len(prediction))
    return (None,), np.array([prediction], dtype=np.float64)


def _mean_columns(predictions: Rows, n: int) -> tuple[tuple[Any, ...], Array]:
    """Return the first n predictions' classes, and the mean, summed in order."""
    found: tuple[tuple[Any, ...], Array] | None = predictions.means(0, n)
    if found is not None:  # as nearly always
        return found
    total: dict[Any, float] = {}
    for prediction in predictions[:n]:
        for name, value in prediction.items():
            total[name] = total.get(name, 0.0) + value
    return tuple(total), np.fromiter(total.values(), dtype=np.float64, count=len(total)) / n


def _is_fit(prediction: Probabilities | float) -> bool:
    for value in prediction.values() if isinstance(prediction, dict) else (prediction,):
        if not abs(value) < LARGEST:  # NaN, too
            return False
    return True
