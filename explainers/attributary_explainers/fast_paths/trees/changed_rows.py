"""Votes of classification trees for rows by what changes in them: a tree that does not read it votes as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...compiled import compiled
from ...evaluation.changed_rows import ChangedRows, OneReplaced, Walked
from ...evaluation.evaluator import NotCoveredError
from ...typing import Array
from .class_leaves import ClassLeaves
from .routes import LEAF, NOMINAL, NUMERIC, NUMERIC_MULTIWAY
from .structure import Structure
from .votes import BAYES, distribution

DONE, STALE, UNKNOWN, REFUSED = range(4)
"""What has become of rows: they have their votes; nodes on their way are to be compared with the live ones first; a
split does not know a value; a leaf does something else than its numbers say."""

_STALE, _UNKNOWN = -1, -2
_BY_LEAF, _BY_SPLIT = 1, 2
_AT_ONCE = 64
_ROUNDS = 30


def votes_for_changed(
    rows: ChangedRows,
    structure: Structure,
    leaves: ClassLeaves,
    read: Callable[[Array], None],
    weights: Array,
) -> Array | None:
    """Return the sum of the trees' votes for rows, shape (1 + rows, classes), by what each row changes.

    Parameters
    ----------
    read
        Compares with the live trees all that some rows meet, the first of which is the observation.
    weights
        Shape (trees,).

    Returns
    -------
    None where the rows have to be written down: a split does not know a value, or there is no end of what changes.

    Raises
    ------
    NotCoveredError
        The model is to be asked itself.
    """
    kernel: Any
    given: tuple[Any, Any]
    if isinstance(rows, OneReplaced):
        kernel, given = vote_replaced, (rows.columns, rows.values)
    elif isinstance(rows, Walked):
        kernel, given = vote_walked, (rows.orders, rows.drawn)
    else:
        return None
    P = np.empty((1 + rows.n_rows, len(leaves.labels)))
    x, stale = rows.x[None].copy(), np.empty(_AT_ONCE, np.int64)
    X = x
    for _ in range(_ROUNDS):
        read(X)
        status, n = kernel(
            x, *given, *structure.ways, weights, leaves.modes, leaves.columns, leaves.base, leaves.states, leaves.gauss,
            leaves.rows, leaves.tables, stale, P,
        )  # fmt: skip
        if status == DONE:
            return P
        if status == REFUSED:
            raise NotCoveredError("a leaf has seen nothing, or a value is too far from what it has seen")
        if status == UNKNOWN:
            return None
        X = np.empty((1 + n, x.shape[1]))
        X[0] = rows.x
        rows.write(stale[:n], X[1:])
    return None


@compiled
def descend(
    row: Any, root: int, epoch: int, nodes: Any, thresholds: Any, keys: Any, targets: Any, path: Any
) -> tuple[int, int]:
    """Send a row, shape (1, features), down a tree; write the columns of the splits on its way to `path`.

    Returns
    -------
    The index of the leaf and the number of splits. The index is less than 0 where the way ends at a node that is to be
    compared with the live one first, whose index is returned beside it, or at a value that its split does not know.
    """
    k, length = root, 0
    while True:
        if nodes[k, 5] != epoch:
            return _STALE, k
        kind = nodes[k, 0]
        if kind == LEAF:
            return k, length
        j = nodes[k, 1]
        path[length] = j
        length += 1
        v = row[0, j]
        if kind == NUMERIC:
            k = nodes[k, 2] if v <= thresholds[k] else nodes[k, 3]
            continue
        if kind == NOMINAL:
            k = nodes[k, 2] if v == thresholds[k] else nodes[k, 3]
            continue
        if kind == NUMERIC_MULTIWAY:
            v = np.floor(v / thresholds[k])
        child = -1
        start = nodes[k, 2]
        for q in range(start, start + nodes[k, 3]):
            if keys[q] == v:
                child = targets[q]
                break
        if child < 0:
            return _UNKNOWN, k
        k = child


@compiled
def note_stale(k: int, number: int, asked: Any, stale: Any, n_stale: int) -> int:
    """List a row that meets a node which no listed one meets, where there is room; return how many are listed."""
    if not asked[k] and n_stale < len(stale):
        asked[k] = True
        stale[n_stale] = number
        n_stale += 1
    return n_stale


@compiled
def vote_replaced(
    x: Any,
    of_players: Any,
    values: Any,
    roots: Any,
    epochs: Any,
    nodes: Any,
    thresholds: Any,
    keys: Any,
    targets: Any,
    weights: Any,
    modes: Any,
    columns: Any,
    base: Any,
    states: Any,
    gauss: Any,
    rows: Any,
    tables: Any,
    stale: Any,
    P: Any,
) -> tuple[int, int]:
    """Sum up the trees' votes for the observation with one value replaced at a time: see `changed_rows.OneReplaced`.

    Parameters
    ----------
    x
        Shape (1, features); changed, and put back.
    stale
        Written: the numbers of rows whose way meets a node that is to be compared with the live one first.
    P
        Written, shape (1 + rows, classes).

    Returns
    -------
    What has become of the rows, and how many are listed in `stale`.
    """
    T, d, C = len(roots), x.shape[1], P.shape[1]
    k_players, n = values.shape
    reads = np.zeros((T, d), np.int8)
    is_read = np.zeros(d, np.bool_)
    first, p = np.empty((T, C)), np.empty(C)
    path = np.empty(len(nodes), np.int64)
    asked = np.zeros(len(nodes), np.bool_)
    ends = np.empty(T, np.int64)
    n_stale = 0
    for t in range(T):
        k, length = descend(x, roots[t], epochs[t], nodes, thresholds, keys, targets, path)
        if k < 0:
            if k == _UNKNOWN:
                return UNKNOWN, 0
            n_stale = note_stale(length, 0, asked, stale, n_stale)
            continue
        ends[t] = k
        s = nodes[k, 2]
        if modes[s, 0] == BAYES:
            for f in range(modes[s, 1]):
                reads[t, columns[s, f]] = _BY_LEAF
                is_read[columns[s, f]] = True
        for i in range(length):
            reads[t, path[i]] = _BY_SPLIT
            is_read[path[i]] = True
        if not distribution(s, x, 0, modes, columns, base, states, gauss, rows, tables, first[t]):
            return REFUSED, 0
    if n_stale > 0:
        return STALE, n_stale
    for c in range(C):
        P[0, c] = 0.0
        for t in range(T):
            P[0, c] += first[t, c] * weights[t]
    for i in range(k_players):
        j = of_players[i]
        before = x[0, j]
        for draw in range(n):
            r = 1 + i * n + draw
            if not is_read[j] or values[i, draw] == before:
                for c in range(C):
                    P[r, c] = P[0, c]
                continue
            x[0, j] = values[i, draw]
            for c in range(C):
                P[r, c] = 0.0
            for t in range(T):
                k = ends[t]
                if reads[t, j] == _BY_SPLIT:
                    k, length = descend(x, roots[t], epochs[t], nodes, thresholds, keys, targets, path)
                    if k < 0:
                        if k == _UNKNOWN:
                            x[0, j] = before
                            return UNKNOWN, 0
                        n_stale = note_stale(length, r, asked, stale, n_stale)
                        continue
                if n_stale > 0:
                    continue
                if k == ends[t] and not reads[t, j]:
                    for c in range(C):
                        P[r, c] += first[t, c] * weights[t]
                    continue
                if not distribution(nodes[k, 2], x, 0, modes, columns, base, states, gauss, rows, tables, p):
                    x[0, j] = before
                    return REFUSED, 0
                for c in range(C):
                    P[r, c] += p[c] * weights[t]
        x[0, j] = before
    return (STALE, n_stale) if n_stale > 0 else (DONE, 0)


@compiled
def vote_walked(
    x: Any,
    orders: Any,
    drawn: Any,
    roots: Any,
    epochs: Any,
    nodes: Any,
    thresholds: Any,
    keys: Any,
    targets: Any,
    weights: Any,
    modes: Any,
    columns: Any,
    base: Any,
    states: Any,
    gauss: Any,
    rows: Any,
    tables: Any,
    stale: Any,
    P: Any,
) -> tuple[int, int]:
    """Sum up the trees' votes for rows that take the observation's values one after the other: see `Walked`.

    Parameters and what is returned are those of `vote_replaced`.
    """
    T, d, C = len(roots), x.shape[1], P.shape[1]
    m, steps = len(drawn), orders.shape[1] - 1
    p, row = np.empty(C), np.empty((1, d))
    path = np.empty(len(nodes), np.int64)
    asked = np.zeros(len(nodes), np.bool_)
    # By column the number of the last way that it was a part of, and of the last leaf that read it.
    on_way, in_leaf = np.zeros(d, np.int64), np.zeros(d, np.int64)
    way = n_stale = 0
    for r in range(len(P)):
        for c in range(C):
            P[r, c] = 0.0
    for t in range(T):
        k, length = descend(x, roots[t], epochs[t], nodes, thresholds, keys, targets, path)
        if k < 0:
            if k == _UNKNOWN:
                return UNKNOWN, 0
            n_stale = note_stale(length, 0, asked, stale, n_stale)
            continue
        if not distribution(nodes[k, 2], x, 0, modes, columns, base, states, gauss, rows, tables, p):
            return REFUSED, 0
        for c in range(C):
            P[0, c] += p[c] * weights[t]
        for o in range(len(orders)):
            for draw in range(m):
                for j in range(d):
                    row[0, j] = drawn[draw, j]
                k = -1
                way += 1
                for step in range(steps):
                    j = orders[o, step]
                    changed = row[0, j] != x[0, j]
                    row[0, j] = x[0, j]
                    r = 1 + (o * steps + step) * m + draw
                    if step == 0 or (changed and on_way[j] == way) or k < 0:
                        k, length = descend(row, roots[t], epochs[t], nodes, thresholds, keys, targets, path)
                        if k < 0:
                            if k == _UNKNOWN:
                                return UNKNOWN, 0
                            n_stale = note_stale(length, r, asked, stale, n_stale)
                            continue
                        way += 1
                        s = nodes[k, 2]
                        for i in range(length):
                            on_way[path[i]] = way
                        if modes[s, 0] == BAYES:
                            for f in range(modes[s, 1]):
                                in_leaf[columns[s, f]] = way
                    elif not changed or in_leaf[j] != way:
                        for c in range(C):
                            P[r, c] += p[c] * weights[t]
                        continue
                    if n_stale > 0:
                        continue
                    if not distribution(nodes[k, 2], row, 0, modes, columns, base, states, gauss, rows, tables, p):
                        return REFUSED, 0
                    for c in range(C):
                        P[r, c] += p[c] * weights[t]
    return (STALE, n_stale) if n_stale > 0 else (DONE, 0)


@compiled
def normalise_votes(P: Any) -> None:
    """Divide the votes for each row by their sum, where that is above 0."""
    for r in range(len(P)):
        total = 0.0
        for c in range(P.shape[1]):
            total += P[r, c]
        if total > 0.0:
            for c in range(P.shape[1]):
                P[r, c] /= total
