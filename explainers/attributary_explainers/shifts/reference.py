"""The reference importance, its error, and the least change to tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.special import chdtri, stdtrit

from ..core.shifts import HIGH, LOW, MEAN, SCALE, SLACK
from ..snapshots import Stored
from ..typing import Array, Ints

BATCHES = 10
"""Long batches that the dependence of rows shows in: fewer say too little, shorter ones miss slow dependence."""
_OFF = 0.01
"""Probability that the slack, over all features and explainers, is less than what the reference is off."""
_LEAST_SLACK = 0.01
_PRECISE = 0.05
"""Of the total: with a slack of so much, a change of twice as much, a tenth, is told in finite time."""
_LEAST_RATIO = 0.7
_USUAL, _USUAL_SPREADS = 6.0, 4.0
_QUANTILE = 0.975
_UNDER = 0.05
"""Probability that the spread of a block is taken for less than it is."""
_SHORTEST = 4
_FEWEST_PERIODS = 3
_CHANCE = 0.001
_FINER = 8
_LARGEST_CORRELATION = 0.95


@dataclass(frozen=True)
class Reference(Stored):
    """The importance per feature over many observations; see `estimate`."""

    table: Array
    """Shape (5, features): see `core.shifts`."""
    errors: Array
    """Shape (features,): standard errors of the means."""
    degrees_of_freedom: int
    n: int
    """Observations."""
    period: float | None
    """Of the season, in observations; None where there is none."""
    settled: bool
    """Whether its parts differ no more than noise does: no trend, no season or regime longer than a part."""

    @property
    def total(self) -> float:
        """The sum of all absolute importances."""
        return float(np.abs(self.table[MEAN]).sum())

    @property
    def precise(self) -> bool:
        """Whether the slack of every feature is at most a twentieth of the total."""
        return bool((self.table[SLACK] <= _PRECISE * self.total).all())

    @property
    def half_widths(self) -> Array:
        """Half the widths of the 95 % intervals of the means, shape (features,)."""
        return self.errors * float(stdtrit(self.degrees_of_freedom, _QUANTILE))

    def widened(self, n_new: int) -> Self:
        """Return the reference with new features, whose importance was 0."""
        new = np.zeros((5, n_new))
        new[[SLACK, SCALE]] = _LEAST_SLACK * self.total
        new[LOW], new[HIGH] = -np.inf, np.inf
        return replace(self, table=np.hstack([self.table, new]), errors=np.concatenate([self.errors, np.zeros(n_new)]))

    def kept(self, columns: Ints) -> Self:
        """Return the reference of these columns."""
        return replace(self, table=np.ascontiguousarray(self.table[:, columns]), errors=self.errors[columns])


def estimate(rows: Array, block: int, n_explainers: int = 1) -> Reference | None:
    """Return the reference of these rows; None without any importance.

    The mean is over all rows, or, with a season, over the last ones that are a whole number of periods. The variance
    of a row, its dependence on others included, is the largest one that batches of 1, 2, 4, ... rows give, with at
    least ten batches. With a season, the error of the mean comes from about ten batches of whole periods, as the season
    itself is no error. The slack is a number of standard errors, at least 1 % of the total: by the t distribution, the
    probability that even one feature of one explainer has a reference further off is at most 1 in 100. The parts are
    unsettled where the squared differences of consecutive batches are less than 0.7 times those from the mean; noise
    gives 2. Features that vary by less than 1 % of the total are not judged.

    Parameters
    ----------
    rows
        Shape (rows, features), at least 20 rows: mean increments, oldest first.
    block
        Valid range >= 1. Observations in a row.
    n_explainers
        Valid range >= 1. Explainers that share the promise.
    """
    low, high = usual(rows)
    rows = np.clip(rows, low, high)
    n = len(rows)
    period = find_period(rows)
    largest = upper = np.zeros(rows.shape[1])
    length = 1
    while n // length >= BATCHES:
        batches = _batches(rows, float(length))
        freedom = len(batches) - 1
        variance = batches.var(axis=0, ddof=1) * length
        largest = np.maximum(largest, variance)
        upper = np.maximum(upper, variance * freedom / float(chdtri(freedom, 1.0 - _UNDER)))
        length *= 2
    used, squares = rows, largest / n
    if period is not None:
        batches = _batches(rows, period * max(int(n / period) // BATCHES, 1))
        used = rows[n - round(int(n / period) * period) :]
        squares = batches.var(axis=0, ddof=1) / len(batches)
    means = used.mean(axis=0)
    total = np.abs(means).sum()
    if total == 0.0:
        return None
    errors = np.sqrt(squares)
    freedom = len(batches) - 1
    slack = np.maximum(_LEAST_SLACK * total, errors * stdtrit(freedom, 1.0 - _OFF / (len(means) * n_explainers)))
    # A feature without spread, as one that was never there, still needs some blocks that agree.
    scale = np.maximum(np.sqrt(upper), slack)
    # Of a feature that hardly varied, more is usual than it showed: else no shift of it could be seen.
    low, high = np.minimum(low, means - _USUAL_SPREADS * scale), np.maximum(high, means + _USUAL_SPREADS * scale)
    return Reference(
        table=np.stack([means, slack, scale, low, high]),
        errors=errors,
        degrees_of_freedom=freedom,
        n=len(used) * block,
        period=None if period is None else period * block,
        settled=_settled(batches, _LEAST_SLACK * total),
    )


def usual(rows: Array) -> tuple[Array, Array]:
    """Return the bounds that rows are clipped to, shape (features,) each.

    They are six mean absolute deviations from the median, 4.8 standard deviations of a normal distribution. Where
    importance comes from a few absurd observations, neither the reference nor what is compared with it depends on
    how many of them there were.
    """
    median = np.median(rows, axis=0)
    usual = _USUAL * np.abs(rows - median).mean(axis=0)
    return median - usual, median + usual


def _batches(rows: Array, length: float) -> Array:
    """Return the means of the last batches of `length` rows, oldest first."""
    n = len(rows)
    bounds = [n - round(i * length) for i in range(int(n / length), -1, -1)]
    return np.stack([rows[start:end].mean(axis=0) for start, end in pairwise(bounds)])


def _settled(batches: Array, negligible: float) -> bool:
    apart = ((batches - batches.mean(axis=0)) ** 2).sum(axis=0)
    steps = (np.diff(batches, axis=0) ** 2).sum(axis=0)
    return bool(((steps >= _LEAST_RATIO * apart) | (apart <= len(batches) * negligible**2)).all())


def find_period(rows: Array) -> float | None:
    """Return the strongest season's period in rows; None if all is noise.

    What the value before predicts is subtracted from each feature's values, as slow noise would otherwise look like a
    long season. Then the share of the strongest frequency in a feature's variance is judged by R. A. Fisher's test
    (1929): among m frequencies of noise it exceeds g with a probability of at most m (1 - g)^(m - 1), which may be
    1 in 1000 over all features.

    Parameters
    ----------
    rows
        Shape (rows, features). Periods from 4 rows to a third of all are found.

    Examples
    --------
    >>> t = np.arange(80.0)
    >>> noise = np.random.default_rng(1).normal(size=(80, 2))
    >>> round(find_period(noise + np.sin(2 * np.pi * t / 16)[:, None]))
    16
    >>> find_period(noise)
    """
    centred = rows - rows.mean(axis=0)
    before, now = centred[:-1], centred[1:]
    squares = (before**2).sum(axis=0)
    varied = squares > 0.0
    if not varied.any():
        return None
    before, now = before[:, varied], now[:, varied]
    predicted = np.clip((before * now).sum(axis=0) / squares[varied], 0.0, _LARGEST_CORRELATION)
    left = now - predicted * before
    n = len(left)
    m = (n - 1) // 2
    power = np.abs(np.fft.rfft(left - left.mean(axis=0), axis=0)[1 : m + 1]) ** 2
    total = power.sum(axis=0)
    power = power[:, total > 0.0] / total[total > 0.0]
    if not power.size:
        return None
    chance = power.shape[1] * m * (1.0 - power.max(axis=0)) ** (m - 1)
    if chance.min() > _CHANCE:
        return None
    found = centred[:, varied][:, total > 0.0][:, [int(chance.argmin())]]
    return _refined(found)


def _refined(values: Array) -> float | None:
    """Return the period at the spectrum's peak; None if out of range."""
    n = len(values)
    spectrum = np.abs(np.fft.rfft(values[:, 0], n=_FINER * n))
    frequencies = np.arange(len(spectrum)) / (_FINER * n)
    inside = (frequencies >= _FEWEST_PERIODS / n) & (frequencies <= 1.0 / _SHORTEST)
    best = int(np.argmax(np.where(inside, spectrum, -1.0)))
    if spectrum[best] < max(spectrum[best - 1], spectrum[best + 1]):
        return None  # the strongest is longer than what can be seen here, or shorter
    return float(1.0 / frequencies[best])
