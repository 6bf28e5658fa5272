"""The way of rows through the flat nodes of trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled

LEAF, NUMERIC, NOMINAL, NUMERIC_MULTIWAY, NOMINAL_MULTIWAY = range(5)
"""Kinds of nodes: the first column of `nodes`."""

FINE, LISTED, OTHERWISE, UNUSUAL = range(4)
"""What comes of sending rows down all trees: predictions, a list of what is to be compared with the live trees first,
a row for which River may give something else, or, of `vote_grid` alone, a node that it does not know how to pass."""

BRANCHES, LEAVES, LOST, PATH, COLUMNS, COUNTS = range(6)
"""Rows of `listed`: branches and leaves to be compared, splits that met a row for which they have no child, nodes of
the first row's way with its leaf, their bits, and counts."""

EXTRAS, OVERFLOW = 3, 4
"""Within the counts, after those of the first three rows: the largest number of alternate leaves that rows met in one
tree, and whether a value cannot be divided by the radius of a split."""

ZERO, ONE = np.int64(0), np.int64(1)
"""Python's own would outgrow 64 bits where nothing is compiled."""

EPOCH, DETOUR, ROOM, MARGIN, THRESHOLD, _FIELDS = 5, 6, 7, 6, 7, 16

_FEW = 4
"""Rows that are sent down one after the other."""


@compiled
def compare(X: Any, differs: Any, previous: Any) -> None:
    """Write, by row, a bit for each column (by 64s) in which it differs from the first row, and from the one before.

    Here, as in all that reads rows, NaN stands for a feature that the row does not have.
    """
    R, d = X.shape
    differs[0] = 0
    previous[0] = 0
    for r in range(1, R):
        bits = ZERO
        others = ZERO
        for j in range(d):
            v = X[r, j]
            if v == v or X[0, j] == X[0, j]:
                bits |= np.int64(v != X[0, j]) << (j & 63)
            if v == v or X[r - 1, j] == X[r - 1, j]:
                others |= np.int64(v != X[r - 1, j]) << (j & 63)
        differs[r] = bits
        previous[r] = others


@compiled
def in_order(X: Any, order: Any) -> Any:
    """Return the rows in this order; the very array where there is none."""
    if len(order) != len(X):
        return X
    ordered = np.empty(X.shape)
    for q in range(len(order)):
        for j in range(X.shape[1]):
            ordered[q, j] = X[order[q], j]
    return ordered


@compiled
def put_back(ordered: Any, order: Any, into: Any) -> None:
    """Write what is by row, in an order of these, to the places that they had before."""
    for q in range(len(order)):
        for c in range(into.shape[1]):
            into[order[q], c] = ordered[q, c]


@compiled
def route_together(
    X: Any,
    root: int,
    epoch: int,
    nodes: Any,
    thresholds: Any,
    listed: Any,
    differs: Any,
    ends: Any,
    ways: Any,
    active: Any,
) -> bool:
    """Send all rows but the first one down a tree, a level at a time: the processor has not to wait for any of them.

    No branch of the code depends on where a row goes, which could not be foreseen.

    Parameters
    ----------
    active
        Written, shape (2, rows): rows on their way, and the nodes where they are.
    root, epoch, nodes, thresholds, listed, differs, ends, ways
        See `route`; the first row has been sent.

    Returns
    -------
    False where a row comes to a node that has an alternate leaf or more than two children, or lacks the feature: what
    has been written is of no use but for the list.
    """
    counts = listed[COUNTS]
    n = 0
    for r in range(1, X.shape[0]):
        if not differs[r] & ways[0]:
            ends[r] = ends[0]
            ways[r] = ways[0]
            continue
        k = root
        way = ZERO
        if r > 1 and differs[r] == differs[r - 1]:
            k, way = active[1, n - 1], ways[r - 1]
        else:
            # The way is that of the first row up to the first split by something in which they differ.
            i = 0
            while not differs[r] & listed[COLUMNS, i]:
                way |= listed[COLUMNS, i]
                i += 1
            k = listed[PATH, i]
        active[0, n] = r
        active[1, n] = k
        ways[r] = way
        n += 1
    # As one row each, and by numbers without a sign: half of the steps would be to find where things are.
    fields, floats, values, d = nodes.ravel(), thresholds.ravel(), X.ravel(), X.shape[1]
    rows, at = active[0], active[1]
    while n > 0:
        m = 0
        is_odd = False
        for i in range(n):
            r, k = rows[i], at[i]
            first = k * _FIELDS
            kind, j = fields[np.uintp(first)], fields[np.uintp(first + 1)]
            left, right = fields[np.uintp(first + 2)], fields[np.uintp(first + 3)]
            if fields[np.uintp(first + EPOCH)] != epoch:
                nodes[k, EPOCH] = epoch
                nodes[k, DETOUR] = -1
                which = LEAVES if kind == LEAF else BRANCHES
                listed[which, counts[which]] = k
                counts[which] += 1
            goes_on = kind != LEAF
            v, threshold = values[np.uintp(r * d + max(j, 0))], floats[np.uintp(k * (_FIELDS // 2) + THRESHOLD)]
            is_odd |= goes_on & ((v != v) | (kind > NOMINAL) | (j < 0) | (fields[np.uintp(first + 4)] >= 0))
            is_left = (v == threshold) | ((kind == NUMERIC) & (v < threshold))
            ends[np.uintp(r)] = k
            ways[np.uintp(r)] |= np.int64(goes_on) << (j & 63)
            rows[np.uintp(m)] = r
            at[np.uintp(m)] = left if is_left else right
            m += int(goes_on)
        if is_odd:
            return False
        n = m
    return True


@compiled
def route(
    t: int,
    X: Any,
    trees: Any,
    nodes: Any,
    thresholds: Any,
    targets: Any,
    listed: Any,
    differs: Any,
    previous: Any,
    ends: Any,
    ways: Any,
    extras: Any,
    extra_at: Any,
    active: Any,
) -> bool:
    """Send rows down tree `t`; return whether there is nothing that has to be seen to first.

    Parameters
    ----------
    trees
        Shape (trees, 5): root, epoch, whether leaves are weighed by their errors, and, written, the leaf that the first
        row reaches, and its slot. A node that has another epoch is to be compared with the live one: it is listed, and
        gets it.
    nodes
        Shape (nodes, 16): kind, column, left child, right child, alternate leaf, -1 where there is none, epoch, the
        child for a value that the split does not know or that the row does not have, -1 where it has not been asked
        for, and room. The column is -1 where no row has the feature. A leaf has its slot where others have the left
        child; a multiway split has start and length of its part of `targets`, and as its room how long it may become.
    thresholds
        The same memory as floats: at 7 is the threshold, category or radius; at 6 what other children may learn before
        the child of a detour has to be asked for again.
    targets
        Shape (entries, 2): value and child.
    listed
        Written; see `BRANCHES`.
    ends, ways
        Written: by row, the index of the leaf, and the bits of all columns on the way there.
    extras, extra_at
        Written: indices of the alternate leaves on the way of row r are extras[extra_at[r]:extra_at[r + 1]]. What does
        not fit is only counted.
    active
        See `route_together`.
    """
    counts = listed[COUNTS]
    before = counts[BRANCHES] + counts[LEAVES] + counts[LOST]
    root = trees[t, 0]
    epoch = trees[t, 1]
    length = 0
    n_extras = 0
    for r in range(X.shape[0]):
        if r == 1 and n_extras == 0 and X.shape[0] > _FEW:
            given = (nodes, thresholds, listed, differs, ends, ways, active)
            together = route_together(X, root, epoch, *given)
            if together:
                extra_at[1:] = 0
                break
        extra_at[r] = n_extras
        k = root
        way = ZERO
        if r > 0:
            twin = -1
            if not differs[r] & ways[0]:
                twin = 0
            elif not previous[r] & ways[r - 1]:
                twin = r - 1
            if twin >= 0:
                ends[r] = ends[twin]
                ways[r] = ways[twin]
                for q in range(extra_at[twin], extra_at[twin + 1]):
                    if n_extras < extras.shape[0]:
                        extras[n_extras] = extras[q]
                    n_extras += 1
                continue
            if extra_at[1] == 0:
                # The way is that of the first row up to the first split by something in which they differ.
                for i in range(length):
                    if differs[r] & listed[COLUMNS, i]:
                        k = listed[PATH, i]
                        break
                    way |= listed[COLUMNS, i]
        again = 1
        while True:
            kind = nodes[k, 0]
            if nodes[k, EPOCH] != epoch:
                nodes[k, EPOCH] = epoch
                nodes[k, DETOUR] = -1
                which = LEAVES if kind == LEAF else BRANCHES
                listed[which, counts[which]] = k
                counts[which] += 1
            if kind == LEAF:
                if r == 0:
                    listed[PATH, length] = k
                ends[r] = k
                ways[r] = way
                break
            j = nodes[k, 1]
            v = np.nan
            bit = ZERO
            if j >= 0:
                v = X[r, j]
                bit = ONE << (j & 63)
            way |= bit
            if r == 0:
                listed[PATH, length] = k
                listed[COLUMNS, length] = bit
                length += 1
            a = nodes[k, 4]
            if a >= 0:
                # River's walk names the child of a detour twice, so that its alternate leaf counts twice.
                for _ in range(again):
                    if n_extras < extras.shape[0]:
                        extras[n_extras] = a
                    n_extras += 1
                if nodes[a, EPOCH] != epoch:
                    nodes[a, EPOCH] = epoch
                    listed[LEAVES, counts[LEAVES]] = a
                    counts[LEAVES] += 1
            again = 1
            if v != v:
                again = 2
                child = nodes[k, DETOUR]
                if child < 0:
                    listed[LOST, counts[LOST]] = k
                    counts[LOST] += 1
                    child = nodes[k, 2]
                    # `in` would have a kept kernel bring the compiler's tables along.
                    if kind == NUMERIC_MULTIWAY or kind == NOMINAL_MULTIWAY:  # noqa: SIM109
                        child = int(targets[child, 1])
                    nodes[k, DETOUR] = child
                k = child
                continue
            if kind == NUMERIC:
                k = nodes[k, 2] if v <= thresholds[k, THRESHOLD] else nodes[k, 3]
                continue
            if kind == NOMINAL:
                k = nodes[k, 2] if v == thresholds[k, THRESHOLD] else nodes[k, 3]
                continue
            if kind == NUMERIC_MULTIWAY:
                v = np.floor(v / thresholds[k, THRESHOLD])
                if np.isinf(v) or v != v:
                    counts[OVERFLOW] = 1
            child = -1
            start = nodes[k, 2]
            for q in range(start, start + nodes[k, 3]):
                if targets[q, 0] == v:
                    child = int(targets[q, 1])
                    break
            if child < 0:
                again = 2
                child = nodes[k, DETOUR]
                if child < 0:
                    listed[LOST, counts[LOST]] = k
                    counts[LOST] += 1
                    nodes[k, DETOUR] = child = int(targets[start, 1])
            k = child
        if r == 0:
            extra_at[1] = n_extras
    extra_at[X.shape[0]] = n_extras
    trees[t, 3] = ends[0]
    trees[t, 4] = nodes[ends[0], 2]
    counts[EXTRAS] = max(counts[EXTRAS], n_extras)
    found = counts[BRANCHES] + counts[LEAVES] + counts[LOST]
    return bool(found == before and n_extras <= extras.shape[0] and counts[OVERFLOW] == 0)
