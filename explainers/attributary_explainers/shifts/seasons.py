"""Finds the period of a season in the rows of a reference."""

from __future__ import annotations

import numpy as np

from ..typing import Array

_SHORTEST = 4
_FEWEST_PERIODS = 3
_CHANCE = 0.001
_FINER = 8
_LARGEST_CORRELATION = 0.95


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
