"""Comparison of a window's reliability tables with earlier tables.

A table has the shape (3, bins): rows, sum of predicted probabilities, positives; bins are by predicted probability. How
many of a bin's positives lie in the window, given how many there are in all, has a known law, whatever the calibration
of that bin is: Fisher's noncentral hypergeometric law. So no variance is estimated, and the base rate may be anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..snapshots import Stored
from ..typing import Array

ROWS, EXPECTED, SEEN = range(3)
"""Rows of a table."""
DIRECTIONS = ("slope", "slope and up", "slope and down", "up", "down")
"""What is looked for: predictions go too far, positives are more or less frequent, and what lies between."""
SHARES: Array = np.array([0.3, 0.2, 0.2, 0.15, 0.15])
"""Of the promise, by direction."""
_NONE = 1e-300
_ROUNDS = 40
_FURTHEST = 40.0
"""Log odds ratios beyond it count as this."""


def logit(p: Array) -> Array:
    """Return log odds."""
    return np.asarray(np.log(p) - np.log1p(-p))


def mean_logit(table: Array) -> Array:
    """Return the logit of each bin's mean prediction; 0 for an empty bin.

    The shape is (..., bins).
    """
    return logit((table[..., EXPECTED, :] + 1e-12) / (table[..., ROWS, :] + 2e-12))


def positives_in_window(log_odds: Array, n_window: Array, positives: Array, n: Array) -> tuple[Array, Array]:
    """Return mean and variance of the window's positives in each bin.

    The mean solves mu (n - n_window - positives + mu) = e^log_odds (positives - mu) (n_window - mu) (Cornfield, 1956).

    Parameters
    ----------
    log_odds
        Of a positive in the window, over one before it.
    n_window, positives, n
        Rows of the window; positives, and rows, of window and before together.
    """
    odds = np.exp(np.clip(log_odds, -_FURTHEST, _FURTHEST))
    both, more = positives + n_window, odds - 1.0
    b = n + more * both
    root = np.sqrt(np.maximum(b * b - 4.0 * more * odds * positives * n_window, 0.0))
    mu = 2.0 * odds * positives * n_window / np.maximum(b + root, _NONE)
    if (b < 0.0).any():
        mu = np.where(b < 0.0, (b - root) / np.where(b < 0.0, 2.0 * more, 1.0), mu)
    mu = np.minimum(np.maximum(mu, np.maximum(0.0, both - n)), np.minimum(positives, n_window))
    cells = mu, positives - mu, n_window - mu, n - both + mu
    inverse = cells[0] * cells[1] * (cells[2] + cells[3]) + cells[2] * cells[3] * (cells[0] + cells[1])
    return mu, cells[0] * cells[1] * cells[2] * cells[3] / np.maximum(inverse, _NONE)


def _entropy(mu: Array, n_window: Array, positives: Array, n: Array) -> Array:
    """Return the sum of x log x over the four cells.

    Its derivative by mu is the log odds ratio.
    """
    cells = np.maximum([mu, positives - mu, n_window - mu, n - n_window - positives + mu], _NONE)
    return np.asarray((cells * np.log(cells)).sum(axis=0))


@dataclass(frozen=True)
class Comparison:
    """A window's table and that of before it, both of shape (..., 3, bins).

    Attributes
    ----------
    centre
        Logit of the mean prediction of before, by bin.
    offset
        Log odds ratio that comes of where in a bin the window's predictions lie.
    mean, variance
        Of the window's positives, if the model is as it was.
    """

    n_window: Array
    positives: Array
    n: Array
    seen: Array
    centre: Array
    offset: Array
    mean: Array
    variance: Array

    @classmethod
    def of(cls, window: Array, before: Array, slope: float = 1.0) -> Self:
        """Compare two tables; `slope` is that of before's recalibration."""
        n_window = window[..., ROWS, :]
        positives = window[..., SEEN, :] + before[..., SEEN, :]
        n = n_window + before[..., ROWS, :]
        centre = mean_logit(before)
        offset = slope * (mean_logit(window) - centre)
        mean, variance = positives_in_window(offset, n_window, positives, n)
        return cls(n_window, positives, n, window[..., SEEN, :], centre, offset, mean, variance)

    def __getitem__(self, index: int) -> Comparison:
        return Comparison(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def directions(self) -> Array:
        """Return the bins' weights in each of `DIRECTIONS`, shape (5, ..., bins).

        The slope is at right angles to the level, and of variance 1.
        """
        one = np.ones_like(self.centre)
        share = self.variance / np.maximum(self.variance.sum(axis=-1, keepdims=True), _NONE)
        slope = (share * self.centre).sum(axis=-1, keepdims=True) - self.centre
        slope /= np.sqrt((share * slope * slope).sum(axis=-1, keepdims=True)) + 1e-12
        return np.array([slope, slope + one, slope - one, one, -one])

    def z(self, direction: Array) -> Array:
        """Return standard errors by which the window is off, shape (...)."""
        error = np.sqrt((direction**2 * self.variance).sum(axis=-1))
        return np.asarray((direction * (self.seen - self.mean)).sum(axis=-1) / np.maximum(error, 1e-150))

    def error(self, direction: Array) -> float:
        """Return the standard error of `moved`."""
        return 1.0 / math.sqrt(max(float((direction**2 * self.variance).sum()), _NONE))

    def moved(self, direction: Array) -> float:
        """Return the log odds ratio, to first order, by which the window is off."""
        return float((direction * (self.seen - self.mean)).sum() / max((direction**2 * self.variance).sum(), _NONE))

    def strength(self, direction: Array) -> float:
        """Return -log P(as far in this direction), for a single comparison.

        Chernoff's bound at the saddlepoint, with the factor of Bahadur and Rao (1960) for a lattice.
        """
        seen, tilt = float((direction * self.seen).sum()), 0.0
        span = float(np.abs(direction[self.variance > 0.0]).max(initial=0.0))
        if span == 0.0:
            return 0.0
        for _ in range(_ROUNDS):
            exponent, mean, variance = self._rate(tilt, direction, seen)
            step = (seen - mean) / max(variance, 1e-12)
            further = min(max(tilt + min(max(step, -1.5 / span), 1.5 / span), 0.0), 30.0 / span)
            if abs(further - tilt) * span < 1e-6:
                break
            tilt = further
        width = -math.expm1(-tilt * span) / span * math.sqrt(max(variance, 0.0))
        return exponent + max(0.0, math.log(math.sqrt(2.0 * math.pi) * width)) if width > 0.0 else exponent

    def _rate(self, tilt: float, direction: Array, seen: float) -> tuple[float, float, float]:
        """Return tilt * seen - K(tilt), and the first two derivatives of K.

        K is the cumulant generating function.
        """
        tilted = self.offset + tilt * direction
        mean, variance = positives_in_window(tilted, self.n_window, self.positives, self.n)
        sizes = self.n_window, self.positives, self.n
        cumulant = tilted * mean - self.offset * self.mean - _entropy(mean, *sizes) + _entropy(self.mean, *sizes)
        return (
            tilt * seen - float(cumulant.sum()),
            float((direction * mean).sum()),
            float((direction**2 * variance).sum()),
        )


@dataclass(frozen=True)
class Recalibration(Stored):
    """Most likely recalibration of probabilities: slope and level.

    The most likely slope and level of P(y = 1) = sigmoid(slope (logit p - centre) + level), with the prior N(1, 1) of
    the slope. `theta` holds slope and level, `covariance` is theirs.
    """

    theta: Array
    covariance: Array
    centre: float

    @classmethod
    def of(cls, table: Array) -> Self:
        """Fit it to a table, by Newton's method."""
        n, seen, x = table[ROWS], table[SEEN], mean_logit(table)
        weights = n / (2.0 + np.exp(x) + np.exp(-x))
        centre = float((weights * x).sum() / max(weights.sum(), _NONE))
        design, theta = np.array([x - centre, np.ones_like(x)]), np.array([1.0, centre])
        start = theta
        for _ in range(12):
            q = 1.0 / (1.0 + np.exp(-np.clip(theta @ design, -30.0, 30.0)))
            bend = (n * q * (1.0 - q) * design) @ design.T + np.eye(2)
            step = np.linalg.solve(bend, design @ (seen - n * q) - (theta - start))
            theta = theta + np.clip(step, -0.5, 0.5)
        return cls(theta, np.linalg.inv(bend), centre)

    def design(self, table: Array) -> Array:
        """Return each bin's distance from the centre, and 1; shape (2, bins)."""
        x = mean_logit(table)
        return np.array([x - self.centre, np.ones_like(x)])


@dataclass(frozen=True, slots=True)
class Level:
    """How far the level of the window is off.

    `is_all` says that nothing else has moved. `shift` is the log odds ratio, `z` its standard errors, `z_slope` those
    of the slope once the level is fitted; `expected` the positives that before's recalibration expects in the window.
    """

    is_all: bool
    z: float
    z_slope: float
    shift: float
    expected: float


def level_of(window: Array, before: Array, slope: float = 1.0) -> Level:
    """Fit the level of a window, and judge whether it is all that has moved.

    The slope counts where it is 2, and a sixth of the level's z; the level counts from 3 on, or where the slope is less
    than half of it. Where predictions moved and the share of positives did not, what the model reads has changed, and
    not the base rate.
    """
    compared = Comparison.of(window, before, slope)
    z = float(compared.z(np.ones_like(compared.centre)))
    shift, mean, variance = 0.0, compared.mean, compared.variance
    for _ in range(20):
        shift += min(max(float((compared.seen - mean).sum()) / max(float(variance.sum()), 1e-9), -1.0), 1.0)
        mean, variance = positives_in_window(compared.offset + shift, compared.n_window, compared.positives, compared.n)
    centre = float((variance * compared.centre).sum()) / max(float(variance.sum()), 1e-12)
    away = centre - compared.centre
    error = math.sqrt(max(float((away**2 * variance).sum()), 1e-12))
    steeper = float((away * (compared.seen - mean)).sum()) / error
    fit = Recalibration.of(before)
    q = 1.0 / (1.0 + np.exp(-np.clip(fit.theta @ fit.design(window), -_FURTHEST, _FURTHEST)))
    expected = float((window[ROWS] * q).sum())
    (n, predicted, seen), (n_before, predicted_before, seen_before) = window.sum(axis=1), before.sum(axis=1)
    off = (seen - predicted) / n - (seen_before - predicted_before) / n_before
    came = seen / n - seen_before / n_before
    have_inputs_moved = came * np.sign(off) < 0.5 * abs(off)
    is_worse = steeper >= max(2.0, abs(z) / 6.0) or abs(z) < min(3.0, 2.0 * steeper) or have_inputs_moved
    return Level(not is_worse, z, steeper, shift, expected)
