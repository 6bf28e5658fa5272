"""Kernels of classification trees: what leaves say of rows, and how trees vote."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...compiled import compiled

SHARES, BAYES, NOTHING = range(3)
"""What a leaf says: fixed numbers, naive Bayes, or nothing, where River raises an error."""

ABSENT, VOTES, SILENT = range(3)
"""States of a class at a leaf: absent, with weight, or without weight, which naive Bayes gives a vote of 0.0."""

HALF_LOG_TAU = 0.5 * math.log(math.tau)


@compiled
def distribution(
    s: int, X: Any, r: int, modes: Any, columns: Any, base: Any, states: Any, gauss: Any, rows: Any, tables: Any, p: Any
) -> bool:
    """Write what leaf `s` says of row `r` into `p`, shape (classes,); return False where River does otherwise."""
    C = p.shape[0]
    if modes[s, 0] != BAYES:
        for c in range(C):
            p[c] = base[s, c]
        return modes[s, 0] == SHARES  # type: ignore[no-any-return]
    n_features = modes[s, 1]
    nominal = tables.shape[1] > 0
    largest = -np.inf
    for c in range(C):
        state = states[s, c]
        if state == ABSENT:
            continue
        v = base[s, c]
        if state == VOTES:
            for f in range(n_features):
                value = X[r, columns[s, f]]
                divisor = gauss[s, c, f, 1]
                if divisor != 0.0:
                    d = value - gauss[s, c, f, 0]
                    term = d * d / divisor - HALF_LOG_TAU - gauss[s, c, f, 2]
                    if term > -np.inf:
                        v += term
                    elif d * d == np.inf:
                        return False
                elif nominal:
                    row = rows[s, c, f]
                    if row >= 0 and value < tables.shape[1]:
                        v += tables[row, int(value)]
        p[c] = v
        if v > largest:
            largest = v
    total = 0.0
    for c in range(C):
        if states[s, c] != ABSENT:
            total += math.exp(p[c] - largest) if p[c] != largest else 1.0
    total = largest + math.log(total)
    for c in range(C):
        p[c] = math.exp(p[c] - total) if states[s, c] != ABSENT else 0.0
    return True


@compiled
def scaled(p: Any, error: float, into: Any) -> None:
    """Add a leaf's distribution, divided by its sum and its squared error."""
    C = p.shape[0]
    total = 0.0
    for c in range(C):
        total += p[c]
    divisor = total * error * error
    factor = 1.0 if divisor == 0.0 or divisor != divisor else 1.0 / divisor
    for c in range(C):
        into[c] += p[c] * factor


@compiled
def vote(
    X: Any,
    nodes: Any,
    ends: Any,
    extras: Any,
    extra_at: Any,
    adaptive: Any,
    weights: Any,
    normalise: bool,
    modes: Any,
    columns: Any,
    base: Any,
    states: Any,
    errors: Any,
    gauss: Any,
    rows: Any,
    tables: Any,
    P: Any,
) -> bool:
    """Sum up the trees' votes in `P`, shape (rows, classes), in their order; return False where River does otherwise.

    Parameters
    ----------
    adaptive
        By tree, whether it weighs its leaves, alternate ones included, by their errors.
    """
    T, R = ends.shape
    C = P.shape[1]
    p = np.empty(C)
    first = np.empty(C)
    other = np.empty(C)
    shared = np.empty(C)
    for r in range(R):
        for c in range(C):
            P[r, c] = 0.0
    for t in range(T):
        w = weights[t]
        k0 = ends[t, 0]
        s0 = nodes[k0, 2]
        if not distribution(s0, X, 0, modes, columns, base, states, gauss, rows, tables, first):
            return False
        n_read = modes[s0, 1] if modes[s0, 0] == BAYES else 0
        for r in range(R):
            k = ends[t, r]
            # A row that differs from the first one only where its leaf does not look gets the same numbers.
            same = k == k0
            if same:
                for f in range(n_read):
                    j = columns[s0, f]
                    if X[r, j] != X[0, j]:
                        same = False
                        break
            s = nodes[k, 2]
            if not adaptive[t]:
                if same:
                    for c in range(C):
                        P[r, c] += first[c] * w
                elif modes[s, 0] == SHARES:
                    for c in range(C):
                        P[r, c] += base[s, c] * w
                elif distribution(s, X, r, modes, columns, base, states, gauss, rows, tables, p):
                    for c in range(C):
                        P[r, c] += p[c] * w
                else:
                    return False
                continue
            if same:
                for c in range(C):
                    p[c] = first[c]
            elif not distribution(s, X, r, modes, columns, base, states, gauss, rows, tables, p):
                return False
            for c in range(C):
                shared[c] = 0.0
            i = t * R + r
            for q in range(extra_at[i], extra_at[i + 1]):
                a = nodes[extras[q], 2]
                if not distribution(a, X, r, modes, columns, base, states, gauss, rows, tables, other):
                    return False
                scaled(other, errors[a], shared)
            scaled(p, errors[s], shared)
            total = 0.0
            for c in range(C):
                total += shared[c]
            factor = 1.0 / total if total != 0.0 and total == total else 1.0
            for c in range(C):
                P[r, c] += shared[c] * factor * w
    if normalise:
        for r in range(R):
            total = 0.0
            for c in range(C):
                total += P[r, c]
            if total > 0.0:
                for c in range(C):
                    P[r, c] /= total
    return True


@compiled
def store_classes(
    records: Any,
    n_heads: int,
    n_moved: int,
    C: int,
    modes: Any,
    base: Any,
    states: Any,
    errors: Any,
    gauss: Any,
    rows: Any,
    tables: Any,
) -> None:
    """Store what has been read from leaves.

    Parameters
    ----------
    records
        Three parts. The first has, for each leaf, its slot, mode, number of features, total weight, error and the
        weights of the classes, NaN for one that it has not seen. The second has, for each class that learnt at a leaf
        with naive Bayes, slot, class and number of features, then weight, sum of squares and mean of each. The third
        has, for each nominal feature of these, slot, class, feature, row of `tables`, total and length, then so many
        codes and so many weights.
    """
    heads = records[:n_heads]
    moved = records[n_heads : n_heads + n_moved]
    counts = records[n_heads + n_moved :]
    for i in range(0, heads.shape[0], 5 + C):
        s = int(heads[i])
        mode = int(heads[i + 1])
        modes[s, 0] = mode
        modes[s, 1] = int(heads[i + 2])
        total = heads[i + 3]
        errors[s] = heads[i + 4]
        for c in range(C):
            w = heads[i + 5 + c]
            states[s, c] = ABSENT if w != w else (VOTES if w > 0.0 else SILENT)
            if w != w:
                base[s, c] = 0.0
            elif mode == BAYES:
                base[s, c] = math.log(w / total) if w > 0.0 else 0.0
            else:
                base[s, c] = w * (1.0 / total) if total != 0.0 and total == total else w
    i = 0
    while i < moved.shape[0]:
        s = int(moved[i])
        c = int(moved[i + 1])
        n_features = int(moved[i + 2])
        i += 3
        for f in range(n_features):
            n = moved[i]
            gauss[s, c, f, 1] = 0.0
            if tables.shape[1] > 0:
                rows[s, c, f] = -1
            if n > 1.0:
                variance = moved[i + 1] / (n - 1.0)
                if variance > 0.0:
                    gauss[s, c, f, 0] = moved[i + 2]
                    gauss[s, c, f, 1] = -2.0 * variance
                    gauss[s, c, f, 2] = 0.5 * math.log(variance)
            i += 3
    i = 0
    while i < counts.shape[0]:
        row = int(counts[i + 3])
        rows[int(counts[i]), int(counts[i + 1]), int(counts[i + 2])] = row
        total = counts[i + 4]
        n = int(counts[i + 5])
        i += 6
        for v in range(tables.shape[1]):
            tables[row, v] = 0.0
        for q in range(n):
            share = counts[i + n + q] / total if total != 0.0 else 0.0
            if share > 0.0:
                tables[row, int(counts[i + q])] = math.log(share)
        i += 2 * n
