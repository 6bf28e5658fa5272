"""Long-run variance of block means, from at most 64 batches of them whose length doubles."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from ..typing import Array, Snapshot

_MOST, _FEWEST = 64, 10


class Batches:
    """Sums of consecutive blocks, by signal: `size` blocks each."""

    def __init__(self, n_signals: int) -> None:
        self.size = 1
        self._open: Array = np.zeros(n_signals)
        self._n_open = 0
        self._sums: list[Array] = []

    def add(self, means: Array) -> None:
        """Take in the means of one block, shape (signals,)."""
        self._open = self._open + means
        self._n_open += 1
        if self._n_open < self.size:
            return
        self._sums.append(self._open)
        self._open, self._n_open = np.zeros(len(means)), 0
        if len(self._sums) == _MOST:
            self._sums = [a + b for a, b in zip(self._sums[::2], self._sums[1::2], strict=True)]
            self.size *= 2

    def means(self) -> Array:
        """Return the mean of each full batch, shape (batches, signals)."""
        return np.array(self._sums).reshape(len(self._sums), len(self._open)) / self.size

    def variance(self, n_blocks: int, at_least: Array, *, gate: float = 1.5) -> Array:
        """Return the variance of a mean of many blocks, times their number.

        It is by signal. The first `n_blocks` count. `at_least` is the variance of single blocks, shape (signals,); a
        larger one, of batches, pairs, fours ... of them, counts where it exceeds this by `gate` of its own standard
        errors, of ten batches or more.
        """
        sums, size, best = np.array(self._sums[: n_blocks // self.size]), self.size, at_least
        while len(sums) >= _FEWEST:
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

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "size": self.size,
            "n_open": self._n_open,
            "open": self._open.tobytes(),
            "sums": np.array(self._sums, dtype=np.float64).tobytes(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the batches that the snapshot was taken of."""
        opened = np.frombuffer(snapshot["open"], dtype=np.float64).copy()
        batches = cls(len(opened))
        batches._open, batches._n_open, batches.size = opened, snapshot["n_open"], snapshot["size"]
        batches._sums = list(np.frombuffer(snapshot["sums"], dtype=np.float64).reshape(-1, len(opened)).copy())
        return batches
