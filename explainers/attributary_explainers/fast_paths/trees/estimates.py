"""Kernels of regression trees: the numbers that leaves and trees give, and their median."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled
from .leaves.storing import store_numbers
from .routes import COUNTS, FINE, LISTED, OTHERWISE, compare, in_order, put_back, route

_UNIT = 2.0**-53


@compiled
def regress(
    X: Any,
    order: Any,
    news: Any,
    trees: Any,
    nodes: Any,
    thresholds: Any,
    targets: Any,
    listed: Any,
    extras: Any,
    modes: Any,
    base: Any,
    linear: Any,
    V: Any,
) -> int:
    """Write the number that each tree gives for each row into `V`, shape (rows, trees).

    Parameters
    ----------
    order
        Shape (rows,) or (0,): the rows by number, in an order in which each is much like the one before, the first row
        first. Empty where they are in such an order. It changes nothing of what is written.
    news
        Whether numbers are wanted at all, and the news of leaves (see `store_numbers`).

    Returns
    -------
    `FINE`; `LISTED` where nothing is to be used but `listed`; `OTHERWISE` where River may give another number: a linear
    leaf adds up in another order than River, which takes that of the row, and where much cancels, that shows.
    """
    R, T = V.shape
    into, has_order = V, T > 1 and len(order) == R  # of one tree, it costs what it saves
    if has_order:
        X, V = in_order(X, order), np.empty((R, T))
    store_numbers(news, modes, base, linear)
    wanted = news[0] > 0.0
    listed[COUNTS, :5] = 0
    rows = np.empty((7, R + 1), np.int64)
    differs, previous, ends, ways, extra_at = rows[0], rows[1], rows[2], rows[3], rows[4]
    compare(X, differs, previous)
    for t in range(T):
        wanted &= route(
            t,
            X,
            trees,
            nodes,
            thresholds,
            targets,
            listed,
            differs,
            previous,
            ends,
            ways,
            extras,
            extra_at,
            rows[5:],
        )
        if wanted and not estimate(t, X, nodes, ends, extras, extra_at, modes, base, linear, V):
            return OTHERWISE
    if has_order:
        put_back(V, order, into)
    return FINE if wanted else LISTED


@compiled
def estimate(
    t: int,
    X: Any,
    nodes: Any,
    ends: Any,
    extras: Any,
    extra_at: Any,
    modes: Any,
    base: Any,
    linear: Any,
    V: Any,
) -> bool:
    """Write the number that tree `t` gives for each row; return False where River may give another one."""
    for r in range(X.shape[0]):
        total = 0.0
        n = 1 + extra_at[r + 1] - extra_at[r]
        for q in range(n):
            s = nodes[ends[r] if q == n - 1 else extras[extra_at[r] + q], 2]
            v = base[s]
            if modes[s] == 1:
                v = 0.0
                size = 0.0
                for j in range(X.shape[1]):
                    term = linear[s, j] * X[r, j]
                    if X[r, j] != X[r, j]:
                        continue
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
