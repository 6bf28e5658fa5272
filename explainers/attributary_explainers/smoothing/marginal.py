"""The mean prediction, for a model without features, with its errors."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from ..core.rows import Rows
from ..core.smoothing import MEAN
from ..typing import Array, Prediction, Probabilities, Snapshot
from ..validation import LARGEST
from .importance import SmoothedImportance
from .means import memory_of

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
