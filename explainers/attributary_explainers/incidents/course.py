"""Mean in blocks, for comparing before and after any moment."""

from __future__ import annotations

import math
from collections import deque

from ..snapshots import Stored

_BLOCKS_PER_WINDOW = 10
_KEPT = 64


class Course(Stored):
    """The course of a mean: its last 64 blocks of a tenth of a window.

    Parameters
    ----------
    window
        Observations.
    """

    def __init__(self, window: int) -> None:
        self._size = max(1, window // _BLOCKS_PER_WINDOW)
        self._n, self._sum = 0, 0.0
        self._blocks: deque[tuple[int, float]] = deque(maxlen=_KEPT)
        """Number of the last observation of each, and its mean."""

    def add(self, number: int, value: float) -> bool:
        """Take in the value of an observation; return whether a block is full."""
        if not math.isfinite(value):
            return False
        self._n += 1
        self._sum += float(value)
        if self._n < self._size:
            return False
        self._blocks.append((number, self._sum / self._n))
        self._n, self._sum = 0, 0.0
        return True

    def ago(self, n: int, number: int) -> int:
        """Return the observation that came `n` values ago.

        Not every observation has a value.

        Parameters
        ----------
        number
            The present observation, whose value is the last one that was added.
        """
        if n <= self._n or not self._blocks:
            first = self._blocks[-1][0] if self._blocks else 0
            return number - n if not self._n else number - round(n * (number - first) / self._n)
        n -= self._n
        ends = [last for last, _ in self._blocks]
        whole, rest = divmod(n, self._size)
        if whole >= len(ends) - 1:
            return max(1, ends[0] - (n - (len(ends) - 1) * self._size))
        end, before = ends[-1 - whole], ends[-2 - whole]
        return end - round(rest * (end - before) / self._size)

    def before(self, number: int) -> tuple[float, float] | None:
        """Return mean and standard error of the two windows before an observation."""
        return _mean([mean for last, mean in self._blocks if last < number][-2 * _BLOCKS_PER_WINDOW :])

    def after(self, number: int) -> tuple[float, float] | None:
        """Return mean and standard error of the window after an observation."""
        return _mean([mean for last, mean in self._blocks if last - self._size + 1 >= number][:_BLOCKS_PER_WINDOW])

    def now(self, windows_ago: int = 0) -> tuple[float, float] | None:
        """Return mean and standard error of the latest or an earlier window."""
        means = [mean for _, mean in self._blocks]
        end = len(means) - windows_ago * _BLOCKS_PER_WINDOW
        return _mean(means[max(0, end - _BLOCKS_PER_WINDOW) : max(0, end)])


def _mean(means: list[float]) -> tuple[float, float] | None:
    n = len(means)
    if n < 3:
        return None
    mean = sum(means) / n
    return mean, math.sqrt(sum((one - mean) ** 2 for one in means) / (n - 1) / n)
