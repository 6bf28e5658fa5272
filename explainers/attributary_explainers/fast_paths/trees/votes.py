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
from .routes import COUNTS, FINE, LISTED, OTHERWISE, compare, in_order, put_back, route

_NODES_OF_A_ROW = 4
"""There may be so many for each row and tree where all are read ahead: more than these are hardly met."""

HALF_LOG_TAU = 0.5 * math.log(math.tau)


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
    differs, previous, ends, ways, extra_at, sources = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]
    if len(nodes) <= _NODES_OF_A_ROW * R * T:
        rows[7, R] = fetched(nodes, marks)
    todo = np.empty((2, R + extras.shape[0]), np.int64)
    says = np.empty((R + extras.shape[0], C))
    votes = np.empty((R, C))
    compare(X, differs, previous)
    P[:] = 0.0
    for t in range(T):
        voting &= route(
            t, X, trees, nodes, thresholds, targets, listed, differs, previous, ends, ways, extras, extra_at, rows[6:]
        )
        if not voting:
            continue
        choose(nodes, marks, differs, previous, ends, ways, extras, extra_at, sources, todo)
        if not say(X, F, sources, todo, leaves, marks, tables, says):
            return OTHERWISE
        weigh(news[6 + t], trees[t, 2] > 0, sources, todo, leaves, says, votes, P)
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
def choose(
    nodes: Any,
    marks: Any,
    differs: Any,
    previous: Any,
    ends: Any,
    ways: Any,
    extras: Any,
    extra_at: Any,
    sources: Any,
    todo: Any,
) -> None:
    """Find rows with the vote of another one, and list what has to be asked for the rest, slot and row.

    Parameters
    ----------
    ways
        By row, the bits of the columns on its way. Written: those that its leaves look at, too.
    sources
        Written: by row, the row whose vote it has; one that has its own has -1 less the number of its first question.
    """
    n = 0
    for r in range(sources.shape[0] - 1):
        if r > 0:
            # A row that differs from another one only where neither its way nor its leaf looks has the same vote.
            if not differs[r] & ways[0]:
                sources[r] = 0
                ways[r] = ways[0]
                continue
            if not previous[r] & ways[r - 1]:
                sources[r] = sources[r - 1] if sources[r - 1] >= 0 else r - 1
                ways[r] = ways[r - 1]
                continue
        s = nodes[ends[r], 2]
        if r > 0 and extra_at[r] == extra_at[r + 1]:
            # So has one that came to the same leaf by another way.
            looks = marks[s, COLUMNS]
            if ends[r] == ends[0] and extra_at[1] == 0 and not differs[r] & looks:
                sources[r] = 0
                ways[r] |= looks
                continue
            if ends[r] == ends[r - 1] and extra_at[r - 1] == extra_at[r] and not previous[r] & looks:
                sources[r] = sources[r - 1] if sources[r - 1] >= 0 else r - 1
                ways[r] |= looks
                continue
        sources[r] = -1 - n
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
    sources[sources.shape[0] - 1] = -1 - n


@compiled
def say(X: Any, F: int, sources: Any, todo: Any, leaves: Any, marks: Any, tables: Any, says: Any) -> bool:
    """Write what leaves say of rows into `says`, by question; return False where River does otherwise."""
    C = says.shape[1]
    n = -1 - sources[sources.shape[0] - 1]
    nominal = tables.shape[1] > 0
    states, _, columns, gauss, _ = offsets(C, F)
    # Terms of the first question and of the last one: where value and leaf are the same, so is the term.
    terms = np.empty((2, C, F))
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
        for f in range(n_features):
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
                term = 0.0
                divisor = leaf[g + 1]
                if divisor != 0.0:
                    d = value - leaf[g]
                    v = d * d / divisor - HALF_LOG_TAU - leaf[g + 2]
                    if v > -np.inf:
                        term = v
                    elif d * d == np.inf and leaf[states + c] == VOTES:
                        return False
                elif nominal:
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
                for f in range(n_features):
                    v += terms[into, c, f]
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
def weigh(w: float, adaptive: bool, sources: Any, todo: Any, leaves: Any, says: Any, votes: Any, P: Any) -> None:
    """Add the votes of one tree; an adaptive one weighs what its leaves say, alternate ones too, by their errors."""
    R, C = P.shape
    # Questions are asked by row, the leaf first and the alternate ones after it.
    i = 0
    n = -1 - sources[R]
    for r in range(R):
        source = sources[r]
        if source < 0:
            if adaptive:
                for c in range(C):
                    votes[r, c] = 0.0
                end = i + 1
                while end < n and todo[1, end] == r:
                    end += 1
                for q in range(i + 1, end):
                    scaled(says, q, leaves[todo[0, q], ERROR], votes, r)
                scaled(says, i, leaves[todo[0, i], ERROR], votes, r)
                i = end
                total = 0.0
                for c in range(C):
                    total += votes[r, c]
                factor = 1.0 / total if total != 0.0 and total == total else 1.0
                for c in range(C):
                    votes[r, c] = votes[r, c] * factor * w
            else:
                for c in range(C):
                    votes[r, c] = says[i, c] * w
                i += 1
            source = r
        for c in range(C):
            P[r, c] += votes[source, c]


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
