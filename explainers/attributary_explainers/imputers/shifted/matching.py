"""The kernel of matching: stored rows are chosen where what is known says the same of what is absent."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled

LEAST_DISTANCE = 0.01
"""Squared distances below this, in residual variances, are none."""


@compiled
def choose(distances: Any, first: int, last: int, u: Any, begin: int, end: int, nearest: int, chosen: Any) -> None:
    """Choose candidates first … last - 1 with weights exp(-D / 2 h), h the smallest distance D but for `nearest` - 1.

    Writes chosen[begin … end - 1]; one uniform number for each.
    """
    n = last - first
    least = np.full(nearest, np.inf)
    for c in range(first, last):
        if distances[c] < least[nearest - 1]:
            at = nearest - 1
            while at > 0 and distances[c] < least[at - 1]:
                least[at] = least[at - 1]
                at -= 1
            least[at] = distances[c]
    near = least[min(nearest, n) - 1]
    width = 2.0 * max(near, LEAST_DISTANCE)
    sums = np.empty(n)
    total = 0.0
    for c in range(n):
        e = distances[first + c] / width
        if e < 20.0:
            total += np.exp(-e)
        sums[c] = total
    for r in range(begin, end):
        chosen[r] = first + min(np.searchsorted(sums, u[r] * total, side="right"), n - 1)
