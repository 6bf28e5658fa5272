"""Estimates since when a loss has another mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...typing import Array

_WITHIN = 7.0
"""Fall of twice the log likelihood inside the interval: the 95 % quantile at a jump, which is no chi-squared of 1."""


@dataclass(frozen=True)
class Onset:
    """Says since which observation something holds.

    `low` and `high` are the bounds of a 95 % interval; `low` is None where it may have begun before the observations
    that are known.
    """

    observation: int
    low: int | None
    high: int

    def after(self, n: int) -> Onset:
        """Return the same with numbers that count `n` earlier observations, too."""
        return Onset(self.observation + n, None if self.low is None else self.low + n, self.high + n)


def onset_of(values: Sequence[float] | Array, numbers: Sequence[int], until: int | None = None) -> Onset | None:
    """Return since when values have another mean; None if unknown.

    It is the best split in two. The split with the largest likelihood of normal values with one spread and a jump of
    the mean; the interval holds every split whose log likelihood is near the largest.

    Parameters
    ----------
    values, numbers
        In the order of the stream, with the numbers of their observations.
    until
        Observation by which it has begun, because it has been noticed there. What changes slowly goes on after it, and
        the best split of all might come later.

    Examples
    --------
    >>> onset_of([0.0, 0.1] * 20 + [1.0, 0.9] * 20, range(101, 181)).observation
    141
    """
    v = np.asarray(values, dtype=np.float64)
    n = len(v)
    known = n if until is None else int(np.searchsorted(np.asarray(numbers), until, side="right"))
    k = np.arange(2, min(n - 1, known))
    if not len(k):
        return None
    sums = np.cumsum(v)
    before, after = sums[k - 1] / k, (sums[-1] - sums[k - 1]) / (n - k)
    explained = k * (n - k) / n * (after - before) ** 2
    best = int(np.argmax(explained))
    # Where a split leaves nothing, rounding may leave less.
    noise = max((float(((v - v.mean()) ** 2).sum()) - float(explained[best])) / n, 0.0)
    near = np.flatnonzero(explained >= explained[best] - _WITHIN * noise)
    low, high = int(k[near[0]]), int(k[near[-1]])
    return Onset(int(numbers[int(k[best])]), None if low == 2 else int(numbers[low]), int(numbers[high]))
