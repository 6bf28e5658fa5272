"""Trees without numba: the kernels of `tree_routes` and `tree_votes` in numpy, all rows and trees a step at a time.

The arguments are theirs, and sums run in the same order. A call costs some hundreds of operations on arrays however few
rows there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...evaluation.schema import Array
from .routes import LEAF, NOMINAL, NUMERIC, NUMERIC_MULTIWAY
from .votes import ABSENT, BAYES, HALF_LOG_TAU, SHARES, UNIT, VOTES

FEWEST_ROWS = 30
"""With fewer, the model itself is as fast."""


class _Marked:
    """Nodes that rows have come by, each once: those whose epoch is another than that of their tree."""

    def __init__(self, nodes: Any, epochs: Any, trees: Any, branches: Any, leaves: Any) -> None:
        self._nodes, self._epochs, self._trees = nodes, epochs, trees
        self._into = branches, leaves
        self.n = [0, 0]

    def mark(self, pairs: Any, k: Any) -> None:
        """Nodes `k` of these pairs of tree and row."""
        epochs = self._epochs[self._trees[pairs]]
        new = self._nodes[k, 5] != epochs
        if not new.any():
            return
        k, first = np.unique(k[new], return_index=True)
        self._nodes[k, 5] = epochs[new][first]
        for which, found in enumerate((k[self._nodes[k, 0] != LEAF], k[self._nodes[k, 0] == LEAF])):
            n = self.n[which]
            self._into[which][n : n + len(found)] = found
            self.n[which] = n + len(found)


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
) -> tuple[int, int, int, int, bool]:
    """See `tree_routes.route`."""
    T, R = ends.shape
    trees, rows = np.repeat(np.arange(T), R), np.tile(np.arange(R), T)
    at = np.repeat(roots, R)
    marked = _Marked(nodes, epochs, trees, branches, leaves)
    aside: list[tuple[Any, Any]] = []  # pairs, and the alternate leaves that they have come by
    again = np.ones(T * R, np.int64)
    n_lost, overflow = 0, False
    pairs = np.arange(T * R)
    while True:
        k = at[pairs]
        marked.mark(pairs, k)
        inner = nodes[k, 0] != LEAF
        pairs, k = pairs[inner], k[inner]
        if not len(pairs):
            break
        alternate = nodes[k, 4]
        if (has := alternate >= 0).any():
            marked.mark(pairs[has], alternate[has])
            # River's walk names the child of a detour twice, so that its alternate leaf counts twice.
            aside += [
                (pairs[has], alternate[has]),
                (pairs[has & (again[pairs] == 2)], alternate[has & (again[pairs] == 2)]),
            ]
        again[pairs] = 1
        kind, v = nodes[k, 0], X[rows[pairs], nodes[k, 1]]
        left = np.where(kind == NUMERIC, v <= thresholds[k], v == thresholds[k])
        at[pairs] = np.where(left, nodes[k, 2], nodes[k, 3])
        for i in np.flatnonzero((kind != NUMERIC) & (kind != NOMINAL)).tolist():
            node, value = int(k[i]), float(v[i])
            if kind[i] == NUMERIC_MULTIWAY:
                with np.errstate(all="ignore"):
                    value = float(np.floor(np.float64(value) / thresholds[node]))
                overflow |= not np.isfinite(value)
            start, length = int(nodes[node, 2]), int(nodes[node, 3])
            found = np.flatnonzero(keys[start : start + length] == value)
            if len(found):
                child = int(targets[start + int(found[0])])
            else:
                again[pairs[i]] = 2
                if detours[node] < 0:
                    lost[n_lost] = node
                    n_lost += 1
                    detours[node] = targets[start]
                child = int(detours[node])
            at[pairs[i]] = child
    ends[:] = at.reshape(T, R)
    n_extras = _lay_out(aside, extras, extra_at)
    return marked.n[0], marked.n[1], n_lost, n_extras, overflow


def _lay_out(aside: list[tuple[Any, Any]], extras: Any, extra_at: Any) -> int:
    """The alternate leaves one pair after the other, in the order in which each came by them."""
    extra_at[:] = 0
    if not aside:
        return 0
    pairs, found = (np.concatenate(parts) for parts in zip(*aside, strict=True))
    order = np.argsort(pairs, kind="stable")
    fit = min(len(found), len(extras))
    extras[:fit] = found[order][:fit]
    np.cumsum(np.bincount(pairs, minlength=len(extra_at) - 1), out=extra_at[1:])
    return len(found)


def distribution(
    s: Any, X: Any, modes: Any, columns: Any, base: Any, states: Any, gauss: Any, rows: Any, tables: Any
) -> Array | None:
    """What leaves `s` say of the rows of X, shape (rows, classes); None where River does something else.

    See `tree_votes.distribution`.
    """
    mode = modes[s, 0]
    if not ((mode == SHARES) | (mode == BAYES)).all():
        return None
    p: Array = base[s]
    if not (mode == BAYES).any():
        return p
    is_bayes = np.flatnonzero(mode == BAYES)
    s, X = s[is_bayes], X[is_bayes]
    present, votes = states[s] != ABSENT, states[s] == VOTES
    v = base[s]
    n_features = modes[s, 1]
    with np.errstate(all="ignore"):
        for f in range(int(n_features.max())):
            reads = votes & (f < n_features)[:, None]
            value = np.take_along_axis(X, columns[s, f][:, None], axis=1)
            mean, divisor, half_log = (gauss[s, :, f, i] for i in range(3))
            d = value - mean
            term = d * d / divisor - HALF_LOG_TAU - half_log
            known = reads & (divisor != 0.0)
            if (known & ~(term > -np.inf) & (d * d == np.inf)).any():
                return None
            v = np.where(known & (term > -np.inf), v + term, v)
            if tables.shape[1]:
                row = rows[s, :, f]
                counted = reads & (divisor == 0.0) & (row >= 0) & (value < tables.shape[1])
                code = np.where(counted, value, 0.0).astype(np.int64)
                v = np.where(counted, v + tables[row, code], v)
        largest = np.where(present, v, -np.inf).max(axis=1, keepdims=True)
        terms = np.where(present, np.where(v == largest, 1.0, np.exp(v - largest)), 0.0)
        # One class after the other, as the compiled kernel does.
        total = largest + np.log(np.add.accumulate(terms, axis=1)[:, -1:])
        p[is_bayes] = np.where(present, np.exp(v - total), 0.0)
    return p


def _scaled(p: Array, error: Any) -> Array:
    total = np.add.accumulate(p, axis=1)[:, -1]
    with np.errstate(all="ignore"):
        divisor = total * error * error
        factor = np.where((divisor == 0.0) | np.isnan(divisor), 1.0, 1.0 / divisor)
    found: Array = p * factor[:, None]
    return found


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
    """See `tree_votes.vote`."""
    T, R = ends.shape
    leaves = modes, columns, base, states, gauss, rows, tables
    slots = nodes[ends, 2]
    of_trees = distribution(slots.ravel(), np.tile(X, (T, 1)), *leaves)
    if of_trees is None:
        return False
    P[:] = 0.0
    for t, p in enumerate(of_trees.reshape(T, R, -1)):
        if adaptive[t]:
            start = extra_at[t * R : (t + 1) * R]
            n = extra_at[t * R + 1 : (t + 1) * R + 1] - start
            shared = np.zeros_like(p)
            for q in range(int(n.max(initial=0))):
                has = np.flatnonzero(n > q)
                a = nodes[extras[start[has] + q], 2]
                other = distribution(a, X[has], *leaves)
                if other is None:
                    return False
                shared[has] += _scaled(other, errors[a])
            shared += _scaled(p, errors[slots[t]])
            total = np.add.accumulate(shared, axis=1)[:, -1]
            with np.errstate(all="ignore"):
                factor = np.where((total != 0.0) & ~np.isnan(total), 1.0 / total, 1.0)
            p = shared * factor[:, None]
        P += p * weights[t]
    if normalise:
        total = np.add.accumulate(P, axis=1)[:, -1]
        P[total > 0.0] /= total[total > 0.0][:, None]
    return True


def estimate(
    X: Any, nodes: Any, ends: Any, extras: Any, extra_at: Any, modes: Any, base: Any, linear: Any, V: Any
) -> bool:
    """See `tree_votes.estimate`."""
    T, R = ends.shape
    rows = np.tile(np.arange(R), T)
    start, n = extra_at[:-1], np.diff(extra_at)
    total = np.zeros(T * R)
    for q in range(int(n.max(initial=0)) + 1):
        # Alternate leaves first, and each row's own leaf after its last one.
        has = np.flatnonzero(n >= q)
        k = ends.ravel()[has]
        k[n[has] > q] = extras[(start[has] + q)[n[has] > q]]
        v = _number(X[rows[has]], nodes[k, 2], modes, base, linear)
        if v is None:
            return False
        total[has] += v
    V[:] = (total / (n + 1)).reshape(T, R).T
    return True


def _number(X: Array, s: Any, modes: Any, base: Any, linear: Any) -> Array | None:
    """What leaves `s` say of the rows; None where so much cancels that the order of a sum would show."""
    v: Array = base[s]
    is_linear = np.flatnonzero(modes[s] == 1)
    if not len(is_linear):
        return v
    with np.errstate(all="ignore"):
        terms = np.concatenate([linear[s[is_linear]] * X[is_linear], v[is_linear, None]], axis=1)
        sums, sizes = np.add.accumulate(terms, axis=1)[:, -1], np.add.accumulate(np.abs(terms), axis=1)[:, -1]
        cancels = sizes * (X.shape[1] + 1) * 2.0 * UNIT > 1e-12 * np.maximum(1.0, np.abs(sums))
    if (cancels | (sizes == np.inf)).any():
        return None
    v[is_linear] = sums
    return v
