"""Votes of classification trees for rows by what changes in them: a tree that does not read it votes as before."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled
from .leaves.storing import BAYES, COLUMNS, MODE, N_FEATURES, offsets, store_classes
from .routes import (
    BRANCHES,
    COUNTS,
    DETOUR,
    EPOCH,
    FINE,
    LEAF,
    LEAVES,
    LISTED,
    NOMINAL,
    NUMERIC,
    ONE,
    OTHERWISE,
    PATH,
    THRESHOLD,
    UNUSUAL,
    route,
)
from .votes import normalise, say, weigh

_BY_LEAF, _BY_SPLIT = 1, 2


@compiled
def leaf_of(
    t: int,
    row: Any,
    trees: Any,
    nodes: Any,
    thresholds: Any,
    targets: Any,
    listed: Any,
    rows: Any,
    extras: Any,
) -> bool:
    """Send one row, shape (1, features), down a tree without alternate ones, as `route` does many.

    Parameters
    ----------
    rows
        Shape (5, 2), all 0; written: at (2, 0) is the index of the leaf.
    """
    differs, previous, ends, ways, extra_at = rows[0], rows[1], rows[2], rows[3], rows[4]
    return bool(
        route(t, row, trees, nodes, thresholds, targets, listed, differs, previous, ends, ways, extras, extra_at, rows)
    )


@compiled
def vote_replaced(
    x: Any,
    of_players: Any,
    values: Any,
    news: Any,
    trees: Any,
    nodes: Any,
    thresholds: Any,
    targets: Any,
    listed: Any,
    leaves: Any,
    marks: Any,
    tables: Any,
    P: Any,
) -> int:
    """Sum up the trees' votes for the observation with one value replaced at a time: see `changed_rows.OneReplaced`.

    The trees have no alternate ones. All else is as for `votes.classify`, to the last bit of what it gives.

    Parameters
    ----------
    x
        Shape (1, features): the observation.
    of_players, values
        Shapes (players,) and (players, draws): the column that is replaced, and by what.
    P
        Written, shape (1 + rows, classes).
    """
    T, d, C = trees.shape[0], x.shape[1], P.shape[1]
    store_classes(news, 6 + T, C, leaves, marks, tables)
    F = int(news[5])
    voting = news[0] > 0.0
    listed[COUNTS, :5] = 0
    rows, extras = np.zeros((5, 2), np.int64), np.zeros(1, np.int64)
    todo, says = np.zeros((2, 1), np.int64), np.empty((1, C))
    columns = offsets(C, F)[2]
    row = x.copy()
    reads, is_read = np.zeros((T, d), np.int8), np.zeros(d, np.bool_)
    first, ends = np.empty((T, C)), np.empty(T, np.int64)
    P[:] = 0.0
    for t in range(T):
        voting &= leaf_of(t, row, trees, nodes, thresholds, targets, listed, rows, extras)
        ends[t] = rows[2, 0]
        i = 0
        while nodes[listed[PATH, i], 0] != LEAF:
            j = nodes[listed[PATH, i], 1]
            if j >= 0:
                reads[t, j] = _BY_SPLIT
                is_read[j] = True
            i += 1
        if not voting:
            continue
        todo[0, 0] = s = nodes[ends[t], 2]
        if leaves[s, MODE] == BAYES:
            for f in range(int(leaves[s, N_FEATURES])):
                j = marks[s, columns + f]
                reads[t, j] |= _BY_LEAF
                is_read[j] = True
        if not say(row, F, 1, todo, leaves, marks, tables, says):
            return OTHERWISE
        for c in range(C):
            first[t, c] = says[0, c] * news[6 + t]
            P[0, c] += first[t, c]
    k_players, n = values.shape
    for i in range(k_players):
        j = of_players[i]
        for draw in range(n):
            r = 1 + i * n + draw
            if not is_read[j] or values[i, draw] == x[0, j]:
                for c in range(C):
                    P[r, c] = P[0, c]
                continue
            row[0, j] = values[i, draw]
            for t in range(T):
                k = ends[t]
                if reads[t, j] & _BY_SPLIT:
                    voting &= leaf_of(t, row, trees, nodes, thresholds, targets, listed, rows, extras)
                    k = rows[2, 0]
                if not voting:
                    continue
                if k == ends[t] and not reads[t, j] & _BY_LEAF:
                    for c in range(C):
                        P[r, c] += first[t, c]
                    continue
                todo[0, 0] = nodes[k, 2]
                if not say(row, F, 1, todo, leaves, marks, tables, says):
                    return OTHERWISE
                for c in range(C):
                    P[r, c] += says[0, c] * news[6 + t]
            row[0, j] = x[0, j]
    for t in range(T):
        trees[t, 3] = ends[t]
        trees[t, 4] = nodes[ends[t], 2]
    if not voting:
        return LISTED
    if news[1] > 0.0:
        normalise(P)
    return FINE


@compiled
def vote_walked(
    x: Any,
    orders: Any,
    drawn: Any,
    news: Any,
    trees: Any,
    nodes: Any,
    thresholds: Any,
    targets: Any,
    listed: Any,
    leaves: Any,
    marks: Any,
    tables: Any,
    P: Any,
) -> int:
    """Sum up the trees' votes for rows that take the observation's values one after the other: see `Walked`.

    Parameters and what is returned are those of `vote_replaced`, but for the orders of columns, shape (orders,
    features), and the rows that each order begins with, shape (draws, features).
    """
    T, d, C = trees.shape[0], x.shape[1], P.shape[1]
    store_classes(news, 6 + T, C, leaves, marks, tables)
    F = int(news[5])
    voting = news[0] > 0.0
    listed[COUNTS, :5] = 0
    rows, extras = np.zeros((5, 2), np.int64), np.zeros(1, np.int64)
    todo, says = np.zeros((2, 1), np.int64), np.empty((1, C))
    columns = offsets(C, F)[2]
    row = np.empty((1, d))
    m, steps = len(drawn), orders.shape[1] - 1
    # By column the number of the last way that it was a part of, and of the last leaf that read it.
    on_way, in_leaf = np.zeros(d, np.int64), np.zeros(d, np.int64)
    way = 0
    P[:] = 0.0
    for t in range(T):
        w = news[6 + t]
        voting &= leaf_of(t, x, trees, nodes, thresholds, targets, listed, rows, extras)
        end = rows[2, 0]
        if voting:
            todo[0, 0] = nodes[end, 2]
            if not say(x, F, 1, todo, leaves, marks, tables, says):
                return OTHERWISE
            for c in range(C):
                P[0, c] += says[0, c] * w
        for o in range(len(orders)):
            for draw in range(m):
                row[0] = drawn[draw]
                for step in range(steps):
                    j = orders[o, step]
                    is_other = row[0, j] != x[0, j]
                    row[0, j] = x[0, j]
                    asks = step == 0 or (is_other and in_leaf[j] == way)
                    if step == 0 or (is_other and on_way[j] == way):
                        voting &= leaf_of(t, row, trees, nodes, thresholds, targets, listed, rows, extras)
                        todo[0, 0] = s = nodes[rows[2, 0], 2]
                        way += 1
                        asks = True
                        i = 0
                        while nodes[listed[PATH, i], 0] != LEAF:
                            if nodes[listed[PATH, i], 1] >= 0:
                                on_way[nodes[listed[PATH, i], 1]] = way
                            i += 1
                        if voting and leaves[s, MODE] == BAYES:
                            for f in range(int(leaves[s, N_FEATURES])):
                                in_leaf[marks[s, columns + f]] = way
                    if not voting:
                        continue
                    if asks and not say(row, F, 1, todo, leaves, marks, tables, says):
                        return OTHERWISE
                    r = 1 + (o * steps + step) * m + draw
                    for c in range(C):
                        P[r, c] += says[0, c] * w
        trees[t, 3] = end
        trees[t, 4] = nodes[end, 2]
    if not voting:
        return LISTED
    if news[1] > 0.0:
        normalise(P)
    return FINE


@compiled
def vote_grid(
    X: Any,
    column: int,
    n_points: int,
    news: Any,
    trees: Any,
    nodes: Any,
    thresholds: Any,
    targets: Any,
    listed: Any,
    leaves: Any,
    marks: Any,
    tables: Any,
    P: Any,
) -> int:
    """Sum up the trees' votes as `votes.classify` does, to the last bit, for rows of which many differ in one column.

    The trees have no alternate ones. A row goes the way of the one before where its value lies between the same splits.

    Parameters
    ----------
    column, n_points
        After the first row, or from it on, so many rows at a time differ in this column alone.

    Returns
    -------
    As `votes.classify`; `UNUSUAL` where a row comes to a node with more than two children or lacks its feature: what
    has been written is of no use but for `listed`.
    """
    R, C = P.shape
    T = trees.shape[0]
    store_classes(news, 6 + T, C, leaves, marks, tables)
    F = int(news[5])
    voting = news[0] > 0.0
    counts = listed[COUNTS]
    counts[:5] = 0
    rows, extras = np.zeros((5, 2), np.int64), np.zeros(1, np.int64)
    asks, todo = np.zeros(R, np.int64), np.zeros((2, R + 1), np.int64)
    says = np.empty((R + 1, C))
    votes = np.empty((R + 1, C))
    bit = ONE << (column & 63)
    P[:] = 0.0
    for t in range(T):
        voting &= leaf_of(t, X[:1], trees, nodes, thresholds, targets, listed, rows, extras)
        before = counts[BRANCHES] + counts[LEAVES]
        root, epoch = trees[t, 0], trees[t, 1]
        todo[0, 0] = nodes[rows[2, 0], 2]
        n = 1
        k = root
        low, high = np.inf, -np.inf
        for r in range(0 if R % n_points == 0 and n_points > 1 else 1, R):
            is_first = (r - R) % n_points == 0
            value = X[r, column]
            asks_anew = is_first
            if is_first or not low < value <= high:
                last = k
                k = root
                low, high = -np.inf, np.inf
                is_nominal = False
                while True:
                    kind = nodes[k, 0]
                    if nodes[k, EPOCH] != epoch:
                        nodes[k, EPOCH] = epoch
                        nodes[k, DETOUR] = -1
                        which = LEAVES if kind == LEAF else BRANCHES
                        listed[which, counts[which]] = k
                        counts[which] += 1
                    if kind == LEAF:
                        break
                    j = nodes[k, 1]
                    if j < 0 or kind > NOMINAL or nodes[k, 4] >= 0:
                        return UNUSUAL
                    v, threshold = X[r, j], thresholds[k, THRESHOLD]
                    if v != v:
                        return UNUSUAL
                    is_left = v == threshold or (kind == NUMERIC and v < threshold)
                    if j == column:
                        is_nominal |= kind == NOMINAL
                        if is_left:
                            high = min(high, threshold)
                        else:
                            low = max(low, threshold)
                    k = nodes[k, 2] if is_left else nodes[k, 3]
                if is_nominal:
                    low = np.inf  # the next value is to be sent down
                asks_anew |= k != last
            s = nodes[k, 2]
            if asks_anew or marks[s, COLUMNS] & bit:
                todo[0, n] = s
                todo[1, n] = r
                n += 1
            asks[r] = n - 1
        voting &= counts[BRANCHES] + counts[LEAVES] == before
        if not voting:
            continue
        if not say(X, F, n, todo, leaves, marks, tables, says):
            return OTHERWISE
        weigh(news[6 + t], False, n, asks, todo, leaves, says, votes, P)
    if not voting:
        return LISTED
    if news[1] > 0.0:
        normalise(P)
    return FINE
