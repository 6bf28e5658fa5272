"""The kernel of matching: stored rows are chosen where what is known says the same of what is absent."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiled import compiled
from ..moments import tell

LEAST_DISTANCE = 0.01
"""Squared distances below this, in residual variances, are none."""
NEAREST = 3
"""The bandwidth of a walk's matching is the distance of this nearest candidate."""
LEAST_VARIANCE = 0.01
"""What is left of a column's variance counts at least as this share of it when distances are measured."""


@compiled
def candidates(ages: Any, u: Any, split: int, last: int) -> Any:
    """Return `last` slots, the first `split` of the older half of all.

    They are drawn with replacement, which is quick; a row that is there twice has twice the weight of the one that it
    displaced.
    """
    n_older, slots = len(ages) // 2 if split > 0 else 0, np.empty(last, np.int64)
    for c in range(last):
        first, n = (0, n_older) if c < split else (n_older, len(ages) - n_older)
        slots[c] = ages[first + min(int(u[c] * n), n - 1)]
    return slots


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


@compiled
def choose_along(
    U: Any, innovations: Any, order: Any, stops: Any, ends: Any, split: int, half: int, strong: Any, u: Any, m: int,
    chosen: Any,
) -> None:  # fmt: skip
    """Choose candidates for each coalition that an order grows through, m for each: see `walks.walk`.

    Parameters
    ----------
    U
        See `moments.factor`.
    innovations
        Shape (columns, candidates + 1): of the candidates and, last, of the observation.
    u
        Shape (draws,): one uniform number for each.
    chosen
        Shape (coalitions * draws,), written.
    """
    n, last, d = len(U), innovations.shape[1] - 1, len(order)
    left, variance = np.zeros(n), np.zeros(n)  # what is not known so far leaves of the variance, and all of it
    for k in range(n):
        for i in range(k, n):
            variance[i] += U[k, i] * U[k, i]
    left[:] = variance
    # What is known so far says of each column: so much more of the observation than of a candidate.
    apart, distances, steps = np.zeros((n, last)), np.empty(last), np.empty((n, last))
    done = 0
    for s in range(len(stops)):
        own = chosen[s * m : (s + 1) * m]
        matched = False
        if last > m:
            for p in range(stops[s]):
                for q in range(stops[s], d):
                    matched = matched or strong[order[p], order[q]]
        if not matched:
            for r in range(m):
                own[r] = r if r < half else split + r - half
            continue
        known = ends[stops[s] - 1]
        for t in range(done, known):
            for r in range(last):
                steps[t, r] = innovations[t, last] - innovations[t, r]
        for i in range(known, n):
            for t in range(done, known):
                left[i] -= U[t, i] * U[t, i]
            tell(U, done, known, i, steps, 0, last, apart[i])
        done = known
        distances[:] = 0.0
        for i in range(known, n):
            if variance[i] > 0.0:
                weight, of_column = 1.0 / (max(left[i], LEAST_VARIANCE * variance[i]) * (n - known)), apart[i]
                for r in range(last):
                    distances[r] += weight * of_column[r] * of_column[r]
        if half > 0:
            choose(distances, 0, split, u, 0, half, NEAREST, own)
        choose(distances, split, last, u, half, m, NEAREST, own)
