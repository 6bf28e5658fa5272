"""Kernels of regression trees: the numbers that leaves and trees give, and their median."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled

_UNIT = 2.0**-53


@compiled
def store_numbers(records: Any, modes: Any, base: Any, linear: Any) -> None:
    """Store what has been read from leaves: slot, 0 and mean of each, or slot, 1, intercept and weights."""
    d = linear.shape[1]
    i = 0
    while i < records.shape[0]:
        s = int(records[i])
        modes[s] = int(records[i + 1])
        base[s] = records[i + 2]
        i += 3
        if modes[s] == 1:
            for j in range(d):
                linear[s, j] = records[i + j]
            i += d


@compiled
def estimate(
    X: Any, nodes: Any, ends: Any, extras: Any, extra_at: Any, modes: Any, base: Any, linear: Any, V: Any
) -> bool:
    """Write the number that each tree gives for each row into `V`, shape (rows, trees).

    Returns False where River may give another one: a linear leaf adds up in another order than River, which takes that
    of the row, and where much cancels, that shows.
    """
    T, R = ends.shape
    for t in range(T):
        for r in range(R):
            i = t * R + r
            total = 0.0
            n = 1 + extra_at[i + 1] - extra_at[i]
            for q in range(n):
                s = nodes[ends[t, r] if q == n - 1 else extras[extra_at[i] + q], 2]
                v = base[s]
                if modes[s] == 1:
                    v = 0.0
                    size = 0.0
                    for j in range(X.shape[1]):
                        term = linear[s, j] * X[r, j]
                        v += term
                        size += abs(term)
                    v += base[s]
                    size += abs(base[s])
                    if size * (X.shape[1] + 1) * 2.0 * _UNIT > 1e-12 * max(1.0, abs(v)) or size == np.inf:
                        return False
                total += v
            V[r, t] = total / n
    return True


@compiled
def middle(V: Any, out: Any) -> None:
    """Write the median of each row of `V` into `out`, shape (rows, 1), as numpy has it: NaN where one is NaN."""
    R, T = V.shape
    ordered = np.empty(T)
    for r in range(R):
        nothing = False
        for t in range(T):
            v = V[r, t]
            nothing |= v != v
            i = t
            while i > 0 and ordered[i - 1] > v:
                ordered[i] = ordered[i - 1]
                i -= 1
            ordered[i] = v
        half = T // 2
        if nothing:
            out[r, 0] = np.nan
        elif T % 2:
            out[r, 0] = ordered[half]
        else:
            out[r, 0] = (ordered[half - 1] + ordered[half]) / 2.0
