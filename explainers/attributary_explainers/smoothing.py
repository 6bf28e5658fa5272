"""Exponential smoothing with exact weights: means, variances and standard errors of a stream."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .typing import Importance, Prediction, Probabilities, Snapshot
from .validation import check_number


class Weights:
    """Weights of the exponential recursion s_t = (1 - alpha) s_{t-1} + alpha v_t, s_0 = 0.

    After n steps they sum to 1 - (1 - alpha)^n (iPFI Theorem 2). Dividing by that sum gives an exact weighted
    mean from the first step on; `rate` is the step that such a mean takes.

    Parameters
    ----------
    alpha
        Valid range (0, 1]. Larger forgets faster; 2 / (N + 1) corresponds to a window of N observations.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = check_number("alpha", alpha, above=0.0, maximum=1.0)
        self.n = 0
        self.total = 0.0
        """Sum of the weights, 1 - (1 - alpha)^n, by its own recursion: exact where 1 - alpha rounds to 1."""
        self.squares = 1.0
        """Sum of the squared normalised weights: one over the effective sample size. 1 until the second value."""

    def step(self) -> float:
        """Count one more value; return its share alpha / (1 - (1 - alpha)^n) in the normalised mean."""
        self.n += 1
        self.total += self.alpha * (1.0 - self.total)
        rate = min(self.alpha / self.total, 1.0)
        self.squares = (1.0 - rate) ** 2 * self.squares + rate * rate if self.n > 1 else 1.0
        return rate

    def snapshot(self) -> Snapshot:
        """Plain data to restore from."""
        return {"alpha": self.alpha, "n": self.n, "total": self.total, "squares": self.squares}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Weights:
        """The weights that the snapshot was taken of."""
        weights = cls(snapshot["alpha"])
        weights.n, weights.total, weights.squares = snapshot["n"], snapshot["total"], snapshot["squares"]
        return weights


class SmoothedImportance:
    """Exponentially weighted mean and variance of importance increments, one per feature.

    All features share their weights, so that sums over features are kept: the iSAGE efficiency identity
    holds for the mean whenever it holds for each increment. A feature that an observation lacks has the
    increment 0 there: removing what is absent changes nothing. A feature first seen late has the increment 0
    before.

    Parameters
    ----------
    alpha
        Valid range (0, 1]; see `Weights`.

    Examples
    --------
    >>> smoothed = SmoothedImportance(alpha=0.5)
    >>> smoothed.update({"age": 1.0, "salary": 3.0})
    >>> smoothed.update({"age": 4.0, "salary": 3.0})
    >>> smoothed.mean()
    {'age': 3.0, 'salary': 3.0}
    >>> smoothed.raw_mean()
    {'age': 2.25, 'salary': 2.25}
    """

    def __init__(self, alpha: float) -> None:
        self.weights = Weights(alpha)
        self._index: dict[Any, int] = {}
        self._mean: npt.NDArray[np.float64] = np.zeros(0)
        self._variance: npt.NDArray[np.float64] = np.zeros(0)

    def update(self, increments: Mapping[Any, float]) -> None:
        """Add the increments of one observation; features known but not named get the increment 0."""
        for name in increments:
            if name not in self._index:
                self._add(name)
        values = np.zeros(len(self._index))
        for name, value in increments.items():
            values[self._index[name]] = value
        # West's update with normalised weights: exact, and without the cancellation of E[v^2] - E[v]^2.
        rate = self.weights.step()
        difference = values - self._mean
        step = rate * difference
        self._mean = self._mean + step
        self._variance = (1.0 - rate) * (self._variance + difference * step)

    def _add(self, name: Any) -> None:
        self._index[name] = len(self._index)
        self._mean = np.append(self._mean, 0.0)
        self._variance = np.append(self._variance, 0.0)

    def mean(self) -> Importance:
        """The weighted mean, with weights that sum to 1 (bias-corrected)."""
        return dict(zip(self._index, self._mean.tolist(), strict=True))

    def raw_mean(self) -> Importance:
        """The recursion from 0 as the papers print it: `mean()` times 1 - (1 - alpha)^n."""
        return dict(zip(self._index, (self._mean * self.weights.total).tolist(), strict=True))

    def std_error(self) -> Importance:
        """Standard error of `mean()`: sqrt(weighted variance / (1 - q) * q), q the sum of squared weights.

        NaN before the second observation. Increments are taken as uncorrelated over time.
        """
        if self.weights.n < 2:
            return dict.fromkeys(self._index, math.nan)
        q = self.weights.squares
        # With alpha = 1 only the last value counts: its spread cannot be known.
        scale = q / (1.0 - q) if q < 1.0 else math.nan
        return dict(zip(self._index, np.sqrt(self._variance * scale).tolist(), strict=True))

    def snapshot(self) -> Snapshot:
        """Plain data to restore from."""
        return {
            "weights": self.weights.snapshot(),
            "names": list(self._index),
            "mean": self._mean.tolist(),
            "variance": self._variance.tolist(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> SmoothedImportance:
        """The means that the snapshot was taken of."""
        smoothed = cls(snapshot["weights"]["alpha"])
        smoothed.weights = Weights.from_snapshot(snapshot["weights"])
        smoothed._index = {name: i for i, name in enumerate(snapshot["names"])}
        smoothed._mean = np.array(snapshot["mean"], dtype=np.float64)
        smoothed._variance = np.array(snapshot["variance"], dtype=np.float64)
        return smoothed


class SmoothedMean:
    """Exponentially weighted mean of one number; None before the first.

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

    def update(self, value: float) -> float:
        """Add one value and return the mean that includes it."""
        self._value += self.weights.step() * (value - self._value)
        return self._value

    def snapshot(self) -> Snapshot:
        """Plain data to restore from."""
        return {"weights": self.weights.snapshot(), "value": float(self._value)}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> SmoothedMean:
        """The mean that the snapshot was taken of."""
        mean = cls(snapshot["weights"]["alpha"])
        mean.weights = Weights.from_snapshot(snapshot["weights"])
        mean._value = snapshot["value"]
        return mean


class SmoothedPrediction:
    """Exponentially weighted mean prediction, a number or a dict of probabilities.

    Starts at the first prediction, never at 0 (iSAGE Definition 3); a class first predicted late had the
    probability 0 before.
    """

    def __init__(self, alpha: float) -> None:
        self.weights = Weights(alpha)
        self._value: Probabilities | float | None = None

    def update(self, prediction: Probabilities | float) -> Probabilities | float:
        """Add one prediction and return the mean that includes it (the caller must not change it)."""
        rate = self.weights.step()
        if isinstance(prediction, dict):
            mean: Probabilities = self._value if isinstance(self._value, dict) else {}
            self._value = {
                label: mean.get(label, 0.0) + rate * (prediction.get(label, 0.0) - mean.get(label, 0.0))
                for label in dict.fromkeys((*mean, *prediction))
            }
        else:
            number = self._value if isinstance(self._value, float) else 0.0
            self._value = number + rate * (prediction - number)
        return self._value

    def snapshot(self) -> Snapshot:
        """Plain data to restore from."""
        value: list[tuple[Any, float]] | float | None
        if isinstance(self._value, dict):
            value = [(label, float(p)) for label, p in self._value.items()]
        else:
            value = None if self._value is None else float(self._value)
        return {"weights": self.weights.snapshot(), "value": value}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> SmoothedPrediction:
        """The mean that the snapshot was taken of."""
        mean = cls(snapshot["weights"]["alpha"])
        mean.weights = Weights.from_snapshot(snapshot["weights"])
        value = snapshot["value"]
        mean._value = dict(map(tuple, value)) if isinstance(value, list) else value
        return mean


def mean_prediction(predictions: list[Prediction]) -> Probabilities | float | None:
    """Plain mean of predictions of one kind, class by class; None when any of them is missing."""
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
