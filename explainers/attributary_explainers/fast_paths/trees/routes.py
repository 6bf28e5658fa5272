"""The way of rows through the flat nodes of trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled

LEAF, NUMERIC, NOMINAL, NUMERIC_MULTIWAY, NOMINAL_MULTIWAY = range(5)
"""Kinds of nodes: the first column of `nodes`."""


@compiled
def route(
    X: Any,
    roots: Any,
    epochs: Any,
    nodes: Any,
    thresholds: Any,
    keys: Any,
    targets: Any,
    detours: Any,
    branches: Any,
    leaves: Any,
    lost: Any,
    path: Any,
    ends: Any,
    extras: Any,
    extra_at: Any,
) -> Any:
    """Send rows down all trees.

    Parameters
    ----------
    epochs
        By tree. A node that has another one is to be compared with the live one: it is listed, and gets it.
    nodes
        Shape (nodes, 6): kind, column, left child, right child, alternate leaf, -1 where there is none, and epoch. A
        leaf has its slot where others have the left child; a multiway split has start and length of its part of
        `targets`.
    detours
        By node, the child for a value that the split does not know; -1 where it has not been asked for.
    ends
        Written, shape (trees, rows): the index of the leaf.
    extras, extra_at
        Written: indices of the alternate leaves on the way of tree t and row r are extras[extra_at[i]:extra_at[i + 1]]
        with i = t * rows + r. What does not fit is only counted.

    Returns
    -------
    How many entries of `branches`, `leaves`, `lost` (splits that met an unknown value) and `extras` there are, and
    whether a value cannot be divided by the radius of a split.
    """
    T, R = ends.shape
    n_branches = n_leaves = n_lost = n_extras = 0
    overflow = False
    # By row, a bit for each column (by 64s) in which it differs from the first one.
    differs = np.zeros(R, np.int64)
    for r in range(1, R):
        bits = 0
        for j in range(X.shape[1]):
            if X[r, j] != X[0, j]:
                bits |= 1 << (j & 63)
        differs[r] = bits
    for t in range(T):
        epoch = epochs[t]
        length = 0
        splits = 0  # the bits of all columns on the way of the first row
        forked = False
        for r in range(R):
            extra_at[t * R + r] = n_extras
            k = roots[t]
            if r > 0 and not forked:
                # The way is that of the first row up to the first split by something in which they differ.
                k = ends[t, 0]
                if not differs[r] & splits:
                    ends[t, r] = k
                    continue
                for i in range(length):
                    if differs[r] & path[i, 1]:
                        k = path[i, 0]
                        break
            again = 1
            while True:
                kind = nodes[k, 0]
                if nodes[k, 5] != epoch:
                    nodes[k, 5] = epoch
                    if kind == LEAF:
                        leaves[n_leaves] = k
                        n_leaves += 1
                    else:
                        branches[n_branches] = k
                        n_branches += 1
                if kind == LEAF:
                    ends[t, r] = k
                    break
                j = nodes[k, 1]
                if r == 0:
                    path[length, 0] = k
                    path[length, 1] = 1 << (j & 63)
                    splits |= path[length, 1]
                    length += 1
                a = nodes[k, 4]
                if a >= 0:
                    forked = True
                    # River's walk names the child of a detour twice, so that its alternate leaf counts twice.
                    for _ in range(again):
                        if n_extras < extras.shape[0]:
                            extras[n_extras] = a
                        n_extras += 1
                    if nodes[a, 5] != epoch:
                        nodes[a, 5] = epoch
                        leaves[n_leaves] = a
                        n_leaves += 1
                again = 1
                v = X[r, j]
                if kind == NUMERIC:
                    k = nodes[k, 2] if v <= thresholds[k] else nodes[k, 3]
                    continue
                if kind == NOMINAL:
                    k = nodes[k, 2] if v == thresholds[k] else nodes[k, 3]
                    continue
                if kind == NUMERIC_MULTIWAY:
                    v = np.floor(v / thresholds[k])
                    if np.isinf(v) or v != v:
                        overflow = True
                child = -1
                start = nodes[k, 2]
                for q in range(start, start + nodes[k, 3]):
                    if keys[q] == v:
                        child = targets[q]
                        break
                if child < 0:
                    again = 2
                    child = detours[k]
                    if child < 0:
                        lost[n_lost] = k
                        n_lost += 1
                        detours[k] = child = targets[start]
                k = child
    extra_at[T * R] = n_extras
    return n_branches, n_leaves, n_lost, n_extras, overflow
