"""Tests of whether a signal's mean has moved, over doubling windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..snapshots import Stored
from ..typing import Array
from .guard import least_rise

N_SCALES = 11
_NEVER = 1e6
_BLOCKS, _SQUARES, _CUBES, _FOURTHS, _ROWS2, _ROWS3 = range(6)
"""Rows of a sum: of block means and of their powers, of the observations' squares and of their cubes, by signal."""
_MOST_BATCHES, _FEWEST_BATCHES = 64, 10
_SURE = 1.5
"""So many of its standard errors skewness or kurtosis of block means have to be beyond what is expected."""


@dataclass(frozen=True, slots=True)
class Sums(Stored):
    """The number of blocks so far, and their sums of shape (6, signals)."""

    n: int
    of: Array

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.n + other.n, self.of + other.of)

    def __sub__(self, earlier: Sums) -> Sums:
        return Sums(self.n - earlier.n, self.of - earlier.of)


@dataclass(frozen=True, slots=True)
class Passed:
    """A passed test: `signal` moved by `z` standard errors since `start`."""

    signal: int
    start: Sums
    z: float


@dataclass(frozen=True, slots=True)
class Look:
    """A window compared with all blocks before it, signal by signal."""

    before: Array
    difference: Array
    error: Array

    @property
    def z(self) -> Array:
        """Differences over their errors; 0 where there is no error."""
        return np.divide(self.difference, self.error, out=np.zeros_like(self.error), where=self.error > 0.0)


class Batches(Stored):
    """Sums consecutive blocks, by signal: `size` blocks each.

    At most 64 batches, whose length doubles, say what the long-run variance of block means is.
    """

    def __init__(self, n_signals: int) -> None:
        self.size = 1
        self._open: Array = np.zeros(n_signals)
        self._n_open = 0
        self._sums: list[Array] = []

    def add(self, means: Array) -> None:
        """Take in the means of a block, shape (signals,)."""
        self._open = self._open + means
        self._n_open += 1
        if self._n_open < self.size:
            return
        self._sums.append(self._open)
        self._open, self._n_open = np.zeros(len(means)), 0
        if len(self._sums) == _MOST_BATCHES:
            self._sums = [a + b for a, b in zip(self._sums[::2], self._sums[1::2], strict=True)]
            self.size *= 2

    def means(self) -> Array:
        """Return the mean of each full batch, shape (batches, signals)."""
        return np.array(self._sums).reshape(len(self._sums), len(self._open)) / self.size

    def variance(self, n_blocks: int, at_least: Array, *, gate: float = 1.5) -> Array:
        """Return the variance of a mean of many blocks, times their number.

        There is one for each signal, over the first `n_blocks`. `at_least` is the variance of single blocks, shape
        (signals,). The variance of batches, or of pairs, fours ... of batches, counts instead where it exceeds this by
        `gate` of its own standard errors and there are ten of them or more.
        """
        sums, size, best = np.array(self._sums[: n_blocks // self.size]), self.size, at_least
        while len(sums) >= _FEWEST_BATCHES:
            found = sums.var(axis=0, ddof=1) / size
            beyond = found > at_least * (1.0 + gate * math.sqrt(2.0 / (len(sums) - 1)))
            best = np.where(beyond & (found > best), found, best)
            even = len(sums) // 2 * 2
            sums, size = sums[0:even:2] + sums[1:even:2], size * 2
        return best

    def forget_after(self, n_blocks: int) -> None:
        """Drop all batches that reach beyond the first so many blocks."""
        del self._sums[n_blocks // self.size :]
        self._open, self._n_open = np.zeros(len(self._open)), 0


class Ladder(Stored):
    """Compares the last 1, 2, 4 ... 1024 blocks with all before them.

    It does so for each of some signals. At block t the window of 2^j blocks is tested where 2^(j-2) divides t, so that
    windows overlap by three quarters:

        z = (mean of window - mean before) / sqrt(v (1 / blocks of window + 1 / blocks before))
        passed where z > z_j + g (z_j^2 - 1) / 6 + k (z_j^3 - 3 z_j) / 24 + (z_j^3 + z_j) / (4 (blocks before - 1))

    v is the variance of a block, or the long-run variance of `Batches` where that is larger. z_j is the quantile of the
    normal distribution at which all tests of scale j together pass once in 11 times `once_in` observations; the second
    and third terms are for skewness and kurtosis of means of so many observations, the last is Student's.

    **Promise.** The expected number of tests passed in N observations where nothing moves is at most the sum over all
    scales of (tests of the scale) x (level of the scale), N / `once_in`, however the tests depend on each other and
    however large N is. It needs each test's tail to be right, hence the three corrections.

    Parameters
    ----------
    once_in, both_ways
        Per signal: observations in which one false test is allowed in each direction, infinite for a signal that is
        never tested; and whether a fall is reported, too.
    block, n_least
        Observations in a block; least number of blocks before a window.
    """

    def __init__(self, once_in: Sequence[float], both_ways: Sequence[bool], block: int, n_least: int) -> None:
        self.block, self.n_least = block, n_least
        self._once_in, self._both_ways = np.array(once_in, dtype=np.float64), np.array(both_ways, dtype=bool)
        steps = np.array([max(1, 2**j // 4) for j in range(N_SCALES)])
        level = block * steps[:, None] / self._once_in[None, :] / N_SCALES
        self._z = np.where(np.isinf(self._once_in), _NEVER, -ndtri(np.clip(level, 1e-300, 0.2)))
        self._steps = steps.tolist()
        self.now = Sums(0, np.zeros((6, len(self._once_in))))
        self._old: list[list[Sums]] = [[self.now] for _ in self._steps]
        self.batches = Batches(len(self._once_in))

    def step(self, means: Array, squares: Array, cubes: Array) -> list[Passed]:
        """Take in a block; return the tests that are passed.

        The arguments are means of the signals, of their squares and of their cubes, each of shape (signals,).
        """
        second = means * means
        powers = np.array([means, second, second * means, second * second, squares, cubes])
        self.now = now = self.now + Sums(1, powers)
        self.batches.add(means)
        asked: list[tuple[int, Sums]] = []
        for j, step in enumerate(self._steps):
            if now.n % step:
                break
            old, n_steps = self._old[j], 2**j // step
            if len(old) >= n_steps and (start := old[-n_steps]).n >= self.n_least and now.n - start.n <= start.n:
                asked.append((j, start))
            old.append(now)
            del old[: -n_steps - 1]
        return self._tests(asked) if asked else []

    def _tests(self, asked: list[tuple[int, Sums]]) -> list[Passed]:
        """Return the passed tests: for each signal, that of the shortest window."""
        scales = [j for j, _ in asked]
        of = np.array([start.of[:_CUBES] for _, start in asked])
        n = np.array([[start.n] for _, start in asked], dtype=np.float64)
        length = self.now.n - n
        mean = of[:, _BLOCKS] / n
        variance = (of[:, _SQUARES] - n * mean * mean) / (n - 1.0)
        difference = (self.now.of[_BLOCKS] - of[:, _BLOCKS]) / length - mean
        reach = self._z[scales] ** 2 * variance * (1.0 / length + 1.0 / n)
        far = (difference * difference >= reach) & (variance > 0.0)
        if not far.any():
            return []
        passed: dict[int, Passed] = {}
        for (j, start), differences, variances, beyond in zip(asked, difference, variance, far, strict=True):
            beyond &= self._both_ways | (differences > 0.0)
            if beyond.any():
                for one in self._passed(j, start, differences, np.maximum(variances, 0.0), beyond):
                    passed.setdefault(one.signal, one)
        return list(passed.values())

    def _passed(self, j: int, start: Sums, difference: Array, variance: Array, beyond: Array) -> list[Passed]:
        n, length = start.n, self.now.n - start.n
        needed = self._needed(self._z[j], start, length, np.sign(difference))
        error = np.sqrt(self.batches.variance(n, variance) * (1.0 / length + 1.0 / n))
        return [
            Passed(int(i), start, float(difference[i] / error[i]))
            for i in np.flatnonzero(beyond)
            if abs(difference[i]) >= needed[i] * error[i]
        ]

    def _needed(self, z: Array, before: Sums, length: int, side: Array) -> Array:
        """Return z corrected for non-normal means (Cornish and Fisher, 1938)."""
        n = before.n
        mean, _, skewness, kurtosis = _moments(*(before.of[_BLOCKS : _FOURTHS + 1] / n))
        _, _, of_rows, _ = _moments(mean, before.of[_ROWS2] / n, before.of[_ROWS3] / n, np.zeros_like(mean))
        # Of independent observations. Where they depend on each other, block means have a longer tail than that.
        expected = side * of_rows / math.sqrt(self.block)
        beyond = side * skewness - expected
        skewed = np.maximum(np.where(beyond > _SURE * math.sqrt(6.0 / n), side * skewness, expected), 0.0)
        tailed = np.where(kurtosis > _SURE * math.sqrt(24.0 / n), kurtosis, 0.0) / length
        skewed = skewed / math.sqrt(length)
        fit = skewed * (z * z - 1.0) / 6.0 + tailed * (z**3 - 3.0 * z) / 24.0
        return np.asarray(z + fit + (z**3 + z) / (4.0 * (n - 1)))

    def look(self, start: Sums) -> Look:
        """Compare the data since `start` with all before."""
        return self._compare(start, self.now - start)

    def compare(self, window: Sums) -> Look:
        """Compare sums of other blocks with all that has come."""
        return self._compare(self.now, window)

    def _compare(self, before: Sums, window: Sums) -> Look:
        n, length = before.n, window.n
        if n < 2 or length < 1:
            nothing = np.zeros(window.of.shape[1])
            return Look(nothing, nothing, nothing)
        mean = before.of[_BLOCKS] / n
        variance = np.maximum((before.of[_SQUARES] - n * mean * mean) / (n - 1), 0.0)
        variance = self.batches.variance(n, variance, gate=0.0)
        return Look(mean, window.of[_BLOCKS] / length - mean, np.sqrt(variance * (1.0 / length + 1.0 / n)))

    def least_rise(self, signal: int, n_blocks: int) -> tuple[float, int, float]:
        """Return a signal's mean, a block count, and the least visible mean.

        The count is near `n_blocks`; the last is the least mean that so many blocks show. By the normal law, without
        its corrections.
        """
        j, n = min(n_blocks.bit_length() - 1, N_SCALES - 1), max(self.now.n, 2)
        mean = self.now.of[_BLOCKS] / n
        variance = np.maximum((self.now.of[_SQUARES] - n * mean * mean) / (n - 1), 0.0)
        variance = self.batches.variance(n, variance)
        least = least_rise(float(mean[signal]), float(variance[signal]), 2**j, n, float(self._z[j, signal]))
        return float(mean[signal]), 2**j, least

    def latest(self, n_blocks: int) -> Sums | None:
        """Return the sums before the latest `n_blocks` or more; None if unknown."""
        j = min(max(n_blocks - 1, 0).bit_length(), N_SCALES - 1)
        return next((sums for sums in reversed(self._old[j]) if self.now.n - sums.n >= n_blocks), None)

    def continued(self, start: Sums, n_least: int) -> Ladder:
        """Return a ladder of the data since `start`, in batches of a block each."""
        ladder = Ladder(self._once_in.tolist(), self._both_ways.tolist(), self.block, n_least)
        ladder.now = now = self.now - start
        for old in ladder._old:
            old.append(now)
        for _ in range(now.n):
            ladder.batches.add(now.of[_BLOCKS] / now.n)
        return ladder

    def go_back_to(self, start: Sums) -> None:
        """Forget all that came after `start`."""
        self.now = start
        self.batches.forget_after(start.n)
        self._old = [[start] for _ in self._steps]


def _moments(first: Array, second: Array, third: Array, fourth: Array) -> tuple[Array, Array, Array, Array]:
    """Return mean, variance, skewness and excess kurtosis.

    The arguments are the means of the first four powers. Without spread, all but the mean are 0.
    """
    variance = second - first**2
    has = variance > 1e-12 * np.maximum(second, 1e-300)
    spread = np.where(has, variance, 1.0)
    skewness = (third - 3.0 * first * second + 2.0 * first**3) / spread**1.5
    kurtosis = (fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4) / spread**2 - 3.0
    return first, np.where(has, variance, 0.0), np.where(has, skewness, 0.0), np.where(has, kurtosis, 0.0)
