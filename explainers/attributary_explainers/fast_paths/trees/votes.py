"""Kernels of classification trees: what leaves say of rows, and how trees vote."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...compiled import compiled
from .leaves.storing import (
    ABSENT,
    BAYES,
    COLUMNS,
    ERROR,
    MODE,
    N_FEATURES,
    NOTHING,
    SAYS,
    VOTES,
    offsets,
    store_classes,
)
from .routes import COUNTS, FINE, LISTED, OTHERWISE, ZERO, compare, in_order, put_back, route

_NODES_OF_A_ROW = 4
"""There may be so many for each row and tree where all are read ahead: more than these are hardly met."""

HALF_LOG_TAU = 0.5 * math.log(math.tau)

_FEW_CLASSES = 4


@compiled
def classify(
    X: Any,
    order: Any,
    news: Any,
    trees: Any,
    nodes: Any,
    thresholds: Any,
    targets: Any,
    listed: Any,
    leaves: Any,
    marks: Any,
    tables: Any,
    extras: Any,
    P: Any,
) -> int:
    """Sum up the trees' votes in `P`, shape (rows, classes), in their order.

    Parameters
    ----------
    order
        Shape (rows,) or (0,): the rows by number, in an order in which each is much like the one before, the first row
        first. Empty where they are in such an order. It changes nothing of what is written.
    news
        Whether the trees are to vote at all, whether votes are made to sum to 1, four numbers that say how to read what
        has been read of leaves (see `store_classes`), the weight of each tree, and what has been read.

    Returns
    -------
    `FINE`; `LISTED` where nothing is to be used but `listed`; `OTHERWISE` where River does otherwise.
    """
    R, C = P.shape
    T = trees.shape[0]
    into, has_order = P, T > 1 and len(order) == R  # of one tree, it costs what it saves
    if has_order:
        X, P = in_order(X, order), np.empty((R, C))
    store_classes(news, 6 + T, C, leaves, marks, tables)
    F = int(news[5])
    voting = news[0] > 0.0
    listed[COUNTS, :5] = 0
    rows = np.empty((8, R + 1), np.int64)
    differs, previous, ends, ways, extra_at, asks = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]
    if len(nodes) <= _NODES_OF_A_ROW * R * T:
        rows[7, R] = fetched(nodes, marks)
    todo = np.empty((2, R + extras.shape[0]), np.int64)
    says = np.empty((R + extras.shape[0], C))
    votes = np.empty(says.shape)
    compare(X, differs, previous)
    P[:] = 0.0
    for t in range(T):
        voting &= route(
            t, X, trees, nodes, thresholds, targets, listed, differs, previous, ends, ways, extras, extra_at, rows[6:]
        )
        if not voting:
            continue
        if extra_at[R] == 0:
            n = choose(nodes, marks, differs, previous, ends, ways, asks, todo)
        else:
            n = choose_with_alternates(nodes, marks, differs, previous, ends, ways, extras, extra_at, asks, todo)
        if not say(X, F, n, todo, leaves, marks, tables, says):
            return OTHERWISE
        weigh(news[6 + t], trees[t, 2] > 0, n, asks, todo, leaves, says, votes, P)
    if not voting:
        return LISTED
    if news[1] > 0.0:
        normalise(P)
    if has_order:
        put_back(P, order, into)
    return FINE


@compiled
def fetched(nodes: Any, marks: Any) -> int:
    """Read something of each node and leaf, so that they are at hand, and return what is to be used somewhere.

    What lies in a row the processor reads ahead; rows come to nodes in any order, and each would be waited for.
    """
    read = 0
    for k in range(nodes.shape[0]):
        read ^= nodes[k, 0]
    for s in range(marks.shape[0]):
        read ^= marks[s, COLUMNS]
    return read


@compiled
def normalise(P: Any) -> None:
    """Divide the votes for each row by their sum, where that is above 0."""
    for r in range(P.shape[0]):
        total = 0.0
        for c in range(P.shape[1]):
            total += P[r, c]
        if total > 0.0:
            for c in range(P.shape[1]):
                P[r, c] /= total


@compiled
def choose(nodes: Any, marks: Any, differs: Any, previous: Any, ends: Any, ways: Any, asks: Any, todo: Any) -> int:
    """Find rows with the vote of the first one or of the one before; list what has to be asked for the rest.

    Where a row has come to decides no branch of the code, which the processor could not foresee.

    Parameters
    ----------
    asks
        Written: by row, the number of the question that its vote is the answer to.
    todo
        Written: by question, the slot of the leaf, and the row.

    Returns
    -------
    The number of questions.
    """
    first = ends[0]
    asks[0] = asked = ZERO
    todo[0, 0] = nodes[first, 2]
    todo[1, 0] = 0
    way = ways[0] | marks[todo[0, 0], COLUMNS]
    n = 1
    for r in range(1, asks.shape[0] - 1):
        if not differs[r] & way:  # as many rows that follow each other
            asks[r] = asked = ZERO
            continue
        # A row that differs from another one only where their leaf does not look has the same vote.
        s = nodes[ends[r], 2]
        looks = marks[s, COLUMNS]
        is_first = (ends[r] == first) & (differs[r] & looks == 0)
        is_last = (ends[r] == ends[r - 1]) & (previous[r] & looks == 0)
        is_new = not (is_first | is_last)
        todo[0, n] = s
        todo[1, n] = r
        asked = np.int64(n) if is_new else (ZERO if is_first else asked)
        asks[r] = asked
        n += int(is_new)
    return n


@compiled
def choose_with_alternates(
    nodes: Any,
    marks: Any,
    differs: Any,
    previous: Any,
    ends: Any,
    ways: Any,
    extras: Any,
    extra_at: Any,
    asks: Any,
    todo: Any,
) -> int:
    """Do what `choose` does, of a tree of which rows also meet alternate leaves: these are asked after the leaf.

    Parameters
    ----------
    ways
        By row, the bits of the columns on its way. Written: those that its leaves look at, too.
    """
    n = 0
    for r in range(asks.shape[0] - 1):
        if r > 0:
            # A row that differs from another one only where neither its way nor its leaf looks has the same vote.
            if not differs[r] & ways[0]:
                asks[r] = 0
                ways[r] = ways[0]
                continue
            if not previous[r] & ways[r - 1]:
                asks[r] = asks[r - 1]
                ways[r] = ways[r - 1]
                continue
        s = nodes[ends[r], 2]
        if r > 0 and extra_at[r] == extra_at[r + 1]:
            # So has one that came to the same leaf by another way.
            looks = marks[s, COLUMNS]
            if ends[r] == ends[0] and extra_at[1] == 0 and not differs[r] & looks:
                asks[r] = 0
                ways[r] |= looks
                continue
            if ends[r] == ends[r - 1] and extra_at[r - 1] == extra_at[r] and not previous[r] & looks:
                asks[r] = asks[r - 1]
                ways[r] |= looks
                continue
        asks[r] = n
        todo[0, n] = s
        todo[1, n] = r
        n += 1
        ways[r] |= marks[s, COLUMNS]
        for q in range(extra_at[r], extra_at[r + 1]):
            s = nodes[extras[q], 2]
            todo[0, n] = s
            todo[1, n] = r
            n += 1
            ways[r] |= marks[s, COLUMNS]
    return n


@compiled
def say(X: Any, F: int, n: int, todo: Any, leaves: Any, marks: Any, tables: Any, says: Any) -> bool:
    """Write what leaves say of rows into `says`, by question; return False where River does otherwise.

    Parameters
    ----------
    F
        The number of features that a leaf has room for.
    n, todo
        How many questions there are; of each the slot of the leaf, and the row.
    """
    C = says.shape[1]
    nominal = tables.shape[1] > 0
    states, _, columns, gauss, _ = offsets(C, F)
    # Terms of the first question and of the last one: where value and leaf are the same, so is the term. To look
    # whether they are takes longer than a few Gaussians do.
    keeps = nominal or C > _FEW_CLASSES
    terms = np.empty((2, C, F if keeps else 0))
    kept = -1
    for i in range(n):
        s = todo[0, i]
        r = todo[1, i]
        leaf = leaves[s]
        if leaf[MODE] != BAYES:
            if leaf[MODE] == NOTHING:
                return False
            for c in range(C):
                says[i, c] = leaf[SAYS + c]
            continue
        n_features = int(leaf[N_FEATURES])
        first = i > 0 and s == todo[0, 0]
        last = kept > 0 and s == todo[0, kept]
        into = 0 if i == 0 else 1
        for f in range(n_features if keeps else 0):
            j = marks[s, columns + f]
            value = X[r, j]
            if last and value == X[todo[1, kept], j]:
                continue
            if first and value == X[0, j]:
                for c in range(C):
                    terms[1, c, f] = terms[0, c, f]
                continue
            g = gauss + 4 * f * C
            for c in range(C):
                term = gaussian(value, leaf[g], leaf[g + 1], leaf[g + 2])
                if nominal and leaf[g + 1] == 0.0:
                    row = int(leaf[g + 3])
                    # A class that the leaf has not seen has no row, nor has a number.
                    if row >= 0 and 0.0 <= value < tables.shape[1]:
                        term = tables[row, int(value)]
                terms[into, c, f] = term
                g += 4
        kept = i
        largest = -np.inf
        for c in range(C):
            if leaf[states + c] == ABSENT:
                continue
            v = leaf[SAYS + c]
            if leaf[states + c] == VOTES:
                g = gauss + 4 * c
                for f in range(n_features):
                    if keeps:
                        v += terms[into, c, f]
                    else:
                        v += gaussian(X[r, marks[s, columns + f]], leaf[g], leaf[g + 1], leaf[g + 2])
                    g += 4 * C
                if v != v:
                    return False
            says[i, c] = v
            largest = max(largest, v)
        total = 0.0
        for c in range(C):
            if leaf[states + c] != ABSENT:
                total += math.exp(says[i, c] - largest) if says[i, c] != largest else 1.0
        total = largest + math.log(total)
        for c in range(C):
            says[i, c] = math.exp(says[i, c] - total) if leaf[states + c] != ABSENT else 0.0
    return True


@compiled
def gaussian(value: float, mean: float, divisor: float, half_log: float) -> float:
    """Return the logarithm of a Gaussian's density, 0 where there is none; NaN where a value is too far from its mean.

    Parameters
    ----------
    mean, divisor, half_log
        As a leaf has them: see `offsets`.
    """
    d = value - mean
    v = d * d / divisor - HALF_LOG_TAU - half_log
    if divisor != 0.0 and v > -np.inf:
        return v
    return np.nan if divisor != 0.0 and d * d == np.inf else 0.0


@compiled
def weigh(w: float, adaptive: bool, n: int, asks: Any, todo: Any, leaves: Any, says: Any, votes: Any, P: Any) -> None:
    """Add the votes of one tree; an adaptive one weighs what its leaves say, alternate ones too, by their errors.

    Parameters
    ----------
    n, asks, todo, says
        See `choose` and `say`.
    votes
        Written: by question, the vote.
    """
    R, C = P.shape
    if adaptive:
        i = 0
        while i < n:
            for c in range(C):
                votes[i, c] = 0.0
            end = i + 1
            while end < n and todo[1, end] == todo[1, i]:
                end += 1
            for q in range(i + 1, end):
                scaled(says, q, leaves[todo[0, q], ERROR], votes, i)
            scaled(says, i, leaves[todo[0, i], ERROR], votes, i)
            total = 0.0
            for c in range(C):
                total += votes[i, c]
            factor = 1.0 / total if total != 0.0 and total == total else 1.0
            for c in range(C):
                votes[i, c] = votes[i, c] * factor * w
            i = end
    else:
        for i in range(n):
            for c in range(C):
                votes[i, c] = says[i, c] * w
    for r in range(R):
        for c in range(C):
            P[r, c] += votes[asks[r], c]


@compiled
def scaled(says: Any, i: int, error: float, into: Any, r: int) -> None:
    """Add a leaf's distribution, divided by its sum and its squared error."""
    C = says.shape[1]
    total = 0.0
    for c in range(C):
        total += says[i, c]
    divisor = total * error * error
    factor = 1.0 if divisor == 0.0 or divisor != divisor else 1.0 / divisor
    for c in range(C):
        into[r, c] += says[i, c] * factor
