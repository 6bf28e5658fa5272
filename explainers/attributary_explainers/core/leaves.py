# cython: infer_types=True
"""Forests on a data set: leaves of rows, losses and sums by coalition.

A coalition, or a set of a leaf's players, is a number: bit b stands for player b. A leaf's own sets count its players
from 0, in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.attributary_explainers.core.losses import loss_of, slope_of
    from cython.cimports.libc.math import exp, isfinite
else:
    from math import exp, isfinite

    from .losses import loss_of, slope_of

NUMBER, EXPONENTIAL, PROBABILITIES, SECOND_OF_TWO, LOGISTIC, SOFTMAX = range(6)
"""What becomes of the sum over the leaves: the number, its exponential, the probabilities, that of the second of two
classes, its logit, the logits of all classes."""

# The same as C knows them.
_EXPONENTIAL = cython.declare(cython.int, 1)
_PROBABILITIES = cython.declare(cython.int, 2)
_SECOND_OF_TWO = cython.declare(cython.int, 3)
_LOGISTIC = cython.declare(cython.int, 4)
_SOFTMAX = cython.declare(cython.int, 5)
_NOT_IN_CORE = cython.declare(cython.int, 0)

_NOTHING = cython.declare(cython.double, 1e-12)
"""A probability that is nearer to 0 or 1 than this is 0 or 1: sums over leaves round, and logarithms show that."""
_LARGEST_EXPONENT = cython.declare(cython.double, 709.782712893384)
_INFINITE = cython.declare(cython.double, float("inf"))


@cython.final
@cython.cclass
class Trees:
    """Trees whose nodes compare bins.

    Parameters
    ----------
    column, cut, left, right
        Shape (nodes,): the column that is split, -1 at a leaf; rows go left whose bin is smaller; the children.
    missing_left
        Shape (nodes,): whether rows without a value go left.
    table, flat
        Where in `flat` it says, bin by bin, whether rows go left; -1 for a split of numbers.
    n_bins
        Shape (columns,): the bins; the next number is that of a missing value.
    value
        Shape (nodes, outputs).
    roots
        Shape (trees,).
    base, scale, link, tie
        Raw prediction = base + scale * sum over the trees, and what becomes of it.
    """

    _column: cython.int[::1]
    _cut: cython.int[::1]
    _missing_left: cython.uchar[::1]
    _table: cython.longlong[::1]
    _flat: cython.uchar[::1]
    _left: cython.int[::1]
    _right: cython.int[::1]
    _n_bins: cython.int[::1]
    _value: cython.double[:, ::1]
    _roots: cython.int[::1]
    _base: cython.double[::1]
    _scale: cython.double
    _link: cython.int
    _tie: cython.int
    _n_nodes: cython.Py_ssize_t
    _n_trees: cython.Py_ssize_t
    _n_outputs: cython.Py_ssize_t

    def __init__(
        self, column: Any, cut: Any, missing_left: Any, table: Any, flat: Any, left: Any, right: Any, n_bins: Any,
        value: Any, roots: Any, base: Any, scale: float, link: int, tie: int,
    ) -> None:  # fmt: skip
        self._column, self._cut, self._missing_left = _seen(column), _seen(cut), _seen(missing_left.view(np.uint8))
        self._table, self._flat = _seen(table), _seen(flat.view(np.uint8))
        self._left, self._right, self._n_bins = _seen(left), _seen(right), _seen(n_bins)
        self._value, self._roots, self._base = _seen(value), _seen(roots), _seen(base)
        self._scale, self._link, self._tie = scale, link, tie
        self._n_nodes, self._n_trees, self._n_outputs = len(column), len(roots), value.shape[1]

    def leaf_numbers(self, bins: cython.int[:, ::1], found: cython.int[:, ::1]) -> None:
        """Write the leaf that each row comes to, shape (trees, rows)."""
        for t in range(self._n_trees):
            for i in range(bins.shape[0]):
                found[t, i] = _leaf(self, self._roots[t], bins, i)

    def predictions(self, raw: cython.double[:, ::1], as_label: cython.bint, P: cython.double[:, ::1]) -> None:
        """Write the predictions of all rows of raw predictions to P."""
        _write_predictions(self, raw, as_label, P)


@cython.cfunc
def _seen(array: Any) -> object:
    """Return the same memory, of which plain Python reads numbers of its own."""
    return memoryview(np.ascontiguousarray(array))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _goes_left(trees: Trees, node: cython.Py_ssize_t, code: cython.int) -> cython.bint:
    """Return whether a row whose bin is `code` goes left."""
    at: cython.longlong = trees._table[node]
    if at >= 0:
        return trees._flat[at + code] != 0
    if code == trees._n_bins[trees._column[node]]:
        return trees._missing_left[node] != 0
    return code < trees._cut[node]


# hot
@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _leaf(trees: Trees, node: cython.int, bins: cython.int[:, ::1], i: cython.Py_ssize_t) -> cython.int:
    """Return the leaf below a node that row i comes to."""
    column: cython.int = trees._column[node]
    while column >= 0:
        node = trees._left[node] if _goes_left(trees, node, bins[i, column]) else trees._right[node]
        column = trees._column[node]
    return node


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _exp(x: cython.double) -> cython.double:
    return _INFINITE if x > _LARGEST_EXPONENT else exp(x)  # where Python would raise OverflowError


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _rounded(p: cython.double) -> cython.double:
    """Return a probability, set to 0 or 1 if within rounding error."""
    if p < _NOTHING:
        return 0.0
    return 1.0 if p > 1.0 - _NOTHING else p


# hot
@cython.cfunc
@cython.exceptval(check=False)
def _link_row(trees: Trees, raw: cython.double[:, ::1], r: cython.Py_ssize_t, P: cython.double[:, ::1]) -> cython.bint:
    """Write the prediction of row r of raw predictions to row r of P."""
    link: cython.int = trees._link
    if link == _SECOND_OF_TWO:
        P[r, 1] = _rounded(raw[r, 0])
        P[r, 0] = 1.0 - P[r, 1]
    elif link == _LOGISTIC:
        P[r, 1] = 1.0 / (1.0 + _exp(-raw[r, 0]))
        P[r, 0] = 1.0 - P[r, 1]
    elif link == _SOFTMAX:
        most: cython.double = raw[r, 0]
        total: cython.double = 0.0
        for k in range(raw.shape[1]):
            most = max(most, raw[r, k])
        for k in range(raw.shape[1]):
            P[r, k] = _exp(raw[r, k] - most)
            total += P[r, k]
        for k in range(raw.shape[1]):
            P[r, k] /= total
    elif link == _PROBABILITIES:
        for k in range(raw.shape[1]):
            P[r, k] = _rounded(raw[r, k])
    else:
        P[r, 0] = _exp(raw[r, 0]) if link == _EXPONENTIAL else raw[r, 0]
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _label_row(trees: Trees, raw: cython.double[:, ::1], r: cython.Py_ssize_t, P: cython.double[:, ::1]) -> cython.bint:
    """Write row r of the raw predictions to P as a label: 1 in its column."""
    best: cython.Py_ssize_t = 0
    if trees._link == _LOGISTIC:
        best = 1 if raw[r, 0] > 0.0 or (raw[r, 0] == 0.0 and trees._tie == 1) else 0
    elif trees._link == _SECOND_OF_TWO:
        best = 1 if raw[r, 0] > 0.5 + _NOTHING else 0
    else:
        for k in range(1, raw.shape[1]):
            if raw[r, k] > raw[r, best] + _NOTHING:
                best = k
    for k in range(P.shape[1]):
        P[r, k] = 1.0 if k == best else 0.0
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _write_predictions(
    trees: Trees, raw: cython.double[:, ::1], as_label: cython.bint, P: cython.double[:, ::1]
) -> cython.bint:
    for r in range(raw.shape[0]):
        if as_label:
            _label_row(trees, raw, r, P)
        else:
            _link_row(trees, raw, r, P)
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _scored(
    P: cython.double[:, ::1], r: cython.Py_ssize_t, code: cython.int, epsilon: cython.double, column: cython.Py_ssize_t,
    target: cython.double,
) -> cython.double:  # fmt: skip
    """Return the loss of row r; for a user's loss the share of wrong labels."""
    if code == _NOT_IN_CORE:
        return 1.0 - P[r, column] if column >= 0 else 1.0
    return loss_of(P, r, code, epsilon, column, target)


@cython.final
@cython.cclass
class Growth:
    """Sums of how much the losses grow with the values of all other rows.

    Parameters
    ----------
    trees, as_label
        What predicts, and whether a label or the prediction as it is.
    bins
        Shape (rows, columns).
    own
        Shape (trees, rows): the leaf of each row.
    used
        Shape (trees, columns): whether a tree splits a column.
    code, epsilon
        The loss.
    columns, targets
        Shape (rows,): the column of each row's label, and its target.
    n_classes
        Columns of a prediction.
    """

    _trees: Trees
    _as_label: cython.bint
    _bins: cython.int[:, ::1]
    _own: cython.int[:, ::1]
    _used: cython.uchar[:, ::1]
    _code: cython.int
    _epsilon: cython.double
    _columns: cython.Py_ssize_t[::1]
    _targets: cython.double[::1]
    _n_classes: cython.Py_ssize_t
    # Room, for what is replaced in turn.
    _raw: cython.double[:, ::1]
    _P: cython.double[:, ::1]
    _grown: cython.double[::1]
    _same: cython.double[::1]
    _steps: cython.double[:, ::1]
    _missing: cython.double[::1]
    _stack: cython.longlong[:, ::1]

    def __init__(
        self, trees: Trees, as_label: bool, bins: Any, own: Any, used: Any, code: int, epsilon: float,
        columns: Any, targets: Any, n_classes: int,
    ) -> None:  # fmt: skip
        self._trees, self._as_label, self._code, self._epsilon = trees, as_label, code, epsilon
        self._bins, self._own, self._used = _seen(bins), _seen(own), _seen(used.view(np.uint8))
        self._columns, self._targets, self._n_classes = _seen(columns), _seen(targets), n_classes
        self._make_room(1)
        self._stack = _seen(np.zeros((trees._n_nodes + 2, 4), np.int64))

    @cython.cfunc
    def _make_room(self, n: cython.Py_ssize_t) -> object:
        k: cython.Py_ssize_t = self._trees._n_outputs
        self._raw, self._P = _seen(np.zeros((n, k))), _seen(np.zeros((n, self._n_classes)))
        self._grown, self._same = _seen(np.zeros(n)), _seen(np.zeros(k))
        self._steps, self._missing = _seen(np.zeros((n, k))), _seen(np.zeros(k))
        return None

    def by_feature(
        self, j: cython.Py_ssize_t, counts: cython.Py_ssize_t[::1], explained: cython.double[::1],
        drawn: cython.double[::1],
    ) -> bool:  # fmt: skip
        """Add up growth by column j of other rows; return if losses are finite.

        Parameters
        ----------
        counts
            Shape (bins + 1,): rows in each bin of the column, the last those without a value.
        explained
            Shape (rows,): sum over all other rows.
        drawn
            Shape (bins + 1,): sum over all rows, of a value of that bin.
        """
        trees: Trees = self._trees
        n_bins: cython.Py_ssize_t = trees._n_bins[j]
        self._make_room(n_bins + 1)
        for i in range(self._bins.shape[0]):
            for k in range(trees._n_outputs):
                self._missing[k] = self._same[k] = 0.0
                for b in range(n_bins + 1):
                    self._steps[b, k] = 0.0
            for t in range(trees._n_trees):
                if self._used[t, j]:
                    self._add_tree(trees._roots[t], i, j)
                else:
                    for k in range(trees._n_outputs):
                        self._same[k] += trees._value[self._own[t, i], k]
            for k in range(trees._n_outputs):
                total: cython.double = self._same[k]
                for b in range(n_bins):
                    total += self._steps[b, k]
                    self._raw[b, k] = trees._base[k] + trees._scale * total
                self._raw[n_bins, k] = trees._base[k] + trees._scale * (self._same[k] + self._missing[k])
            _write_predictions(trees, self._raw, self._as_label, self._P)
            if not self._add_losses(i, self._bins[i, j], counts, explained, drawn):
                return False
        return True

    # hot
    @cython.cfunc
    @cython.exceptval(check=False)
    def _add_tree(self, root: cython.longlong, i: cython.Py_ssize_t, j: cython.Py_ssize_t) -> cython.bint:
        """Add a tree's output for row i to the steps between bins of column j."""
        trees: Trees = self._trees
        self._stack[0, 0], self._stack[0, 1] = root, 0
        self._stack[0, 2], self._stack[0, 3] = trees._n_bins[j], 1
        top: cython.Py_ssize_t = 1
        while top > 0:
            top -= 1
            node: cython.longlong = self._stack[top, 0]
            low: cython.longlong = self._stack[top, 1]
            high: cython.longlong = self._stack[top, 2]
            with_missing: cython.bint = self._stack[top, 3] == 1
            column: cython.int = trees._column[node]
            while column >= 0:
                if column != j:
                    left: cython.bint = _goes_left(trees, node, self._bins[i, column])
                    node = trees._left[node] if left else trees._right[node]
                    column = trees._column[node]
                    continue
                cut: cython.longlong = min(max(trees._cut[node], low), high)
                missing_left: cython.bint = trees._missing_left[node] != 0
                has_left: cython.bint = cut > low or (with_missing and missing_left)
                has_right: cython.bint = high > cut or (with_missing and not missing_left)
                if has_left and has_right:
                    self._stack[top, 0], self._stack[top, 1] = trees._right[node], cut
                    self._stack[top, 2], self._stack[top, 3] = high, with_missing and not missing_left
                    top += 1
                if has_left:
                    node, high = trees._left[node], cut
                    with_missing = with_missing and missing_left
                else:
                    node, low = trees._right[node], cut
                column = trees._column[node]
            for k in range(trees._n_outputs):
                v = trees._value[node, k]
                self._steps[low, k] += v
                self._steps[high, k] -= v
                if with_missing:
                    self._missing[k] += v
        return True

    # hot
    @cython.cfunc
    @cython.exceptval(check=False)
    def _add_losses(
        self, i: cython.Py_ssize_t, of_row: cython.Py_ssize_t, counts: cython.Py_ssize_t[::1],
        explained: cython.double[::1], drawn: cython.double[::1],
    ) -> cython.bint:  # fmt: skip
        column: cython.Py_ssize_t = self._columns[i]
        target: cython.double = self._targets[i]
        own_loss: cython.double = _scored(self._P, of_row, self._code, self._epsilon, column, target)
        if not isfinite(own_loss):
            return False
        total: cython.double = 0.0
        for b in range(counts.shape[0]):
            if counts[b] > 0:
                self._grown[b] = _scored(self._P, b, self._code, self._epsilon, column, target) - own_loss
                total += counts[b] * self._grown[b]
                drawn[b] += self._grown[b]
        explained[i] = total
        return isfinite(total)

    def by_patterns(
        self, group: cython.Py_ssize_t[::1], patterns: cython.int[:, ::1], of_rows: cython.Py_ssize_t[::1],
        counts: cython.Py_ssize_t[::1], explained: cython.double[::1], drawn: cython.double[::1],
    ) -> bool:  # fmt: skip
        """Add up the growth as `by_feature` does, for several columns at once.

        Parameters
        ----------
        group
            The columns.
        patterns
            Shape (patterns, columns of the group): the bins that rows have there.
        of_rows
            Shape (rows,): the pattern of each row.
        counts
            Shape (patterns,): rows of each pattern.
        """
        trees: Trees = self._trees
        row: cython.int[:, ::1] = _seen(np.zeros((1, self._bins.shape[1]), np.int32))
        moved: cython.uchar[::1] = _seen(np.zeros(trees._n_trees, np.uint8))
        self._make_room(patterns.shape[0])
        for t in range(trees._n_trees):
            for c in range(group.shape[0]):
                moved[t] |= self._used[t, group[c]]
        for i in range(self._bins.shape[0]):
            for k in range(trees._n_outputs):
                self._same[k] = 0.0
            for c in range(self._bins.shape[1]):
                row[0, c] = self._bins[i, c]
            for t in range(trees._n_trees):
                if not moved[t]:
                    for k in range(trees._n_outputs):
                        self._same[k] += trees._value[self._own[t, i], k]
            for u in range(patterns.shape[0]):
                for c in range(group.shape[0]):
                    row[0, group[c]] = patterns[u, c]
                for k in range(trees._n_outputs):
                    self._raw[u, k] = self._same[k]
                for t in range(trees._n_trees):
                    if moved[t]:
                        leaf = _leaf(trees, trees._roots[t], row, 0)
                        for k in range(trees._n_outputs):
                            self._raw[u, k] += trees._value[leaf, k]
                for k in range(trees._n_outputs):
                    self._raw[u, k] = trees._base[k] + trees._scale * self._raw[u, k]
            _write_predictions(trees, self._raw, self._as_label, self._P)
            if not self._add_losses(i, of_rows[i], counts, explained, drawn):
                return False
        return True


@cython.final
@cython.cclass
class CoalitionSums:
    """Sums over leaves for every coalition, and each row's part in it.

    Leaves with the same players are one group. What a group has by set of its players is handed on to the smallest
    group that has these players and more, and so to that of all, which is the last.

    Parameters
    ----------
    trees
        The trees.
    player
        Shape (columns,): the player that a column belongs to.
    leaf_of
        Shape (nodes,): the number of a leaf.
    leaves
        Shape (leaves,): node of each, those with the same players together.
    sets, sizes, starts, group_of
        Shape (leaves,): the players on the path to each, how many, where its weights begin, its group.
    places, group_sizes, parents, projected
        Shape (groups,): where the sums of each begin, how many players it has, the group that they are handed on to,
        and where in `projections` is which of its sets a set of that group has.
    """

    _trees: Trees
    _player: cython.longlong[::1]
    _leaf_of: cython.longlong[::1]
    _leaves: cython.longlong[::1]
    _sets: cython.longlong[::1]
    _sizes: cython.longlong[::1]
    _starts: cython.longlong[::1]
    _group_of: cython.longlong[::1]
    _places: cython.longlong[::1]
    _group_sizes: cython.longlong[::1]
    _parents: cython.longlong[::1]
    _projections: cython.longlong[::1]
    _projected: cython.longlong[::1]
    _n_leaves: cython.Py_ssize_t
    _n_groups: cython.Py_ssize_t
    # Room: what a row still has to walk, and by leaf the set of its players all of whose conditions the row meets.
    _stack: cython.longlong[:, ::1]
    _met: cython.longlong[::1]
    _sums: cython.double[:, ::1]

    def __init__(
        self, trees: Trees, *, player: Any, leaf_of: Any, leaves: Any, sets: Any, sizes: Any, starts: Any,
        group_of: Any, places: Any, group_sizes: Any, parents: Any, projections: Any, projected: Any,
    ) -> None:  # fmt: skip
        self._trees = trees
        self._player, self._leaf_of, self._leaves, self._sets = (
            _seen(player),
            _seen(leaf_of),
            _seen(leaves),
            _seen(sets),
        )
        self._sizes, self._starts, self._group_of = _seen(sizes), _seen(starts), _seen(group_of)
        self._places, self._group_sizes, self._parents = _seen(places), _seen(group_sizes), _seen(parents)
        self._projections, self._projected = _seen(projections), _seen(projected)
        self._n_leaves, self._n_groups = len(leaves), len(places)
        self._stack = _seen(np.zeros((trees._n_nodes + 2, 2), np.int64))
        self._met = _seen(np.zeros(len(leaves), np.int64))
        self._sums = _seen(np.zeros((1, trees._n_outputs)))

    # hot
    @cython.cfunc
    @cython.exceptval(check=False)
    def _meet(self, bins: cython.int[:, ::1], i: cython.Py_ssize_t) -> cython.bint:
        """Find each leaf's players whose every path condition row i meets."""
        trees: Trees = self._trees
        one: cython.longlong = 1
        for t in range(trees._n_trees):
            self._stack[0, 0], self._stack[0, 1] = trees._roots[t], 0
            top: cython.Py_ssize_t = 1
            while top > 0:
                top -= 1
                node: cython.longlong = self._stack[top, 0]
                failed: cython.longlong = self._stack[top, 1]
                column: cython.int = trees._column[node]
                while column >= 0:
                    left: cython.bint = _goes_left(trees, node, bins[i, column])
                    self._stack[top, 0] = trees._right[node] if left else trees._left[node]
                    self._stack[top, 1] = failed | (one << self._player[column])
                    top += 1
                    node = trees._left[node] if left else trees._right[node]
                    column = trees._column[node]
                leaf = self._leaf_of[node]
                self._met[leaf] = _of_leaf(self._sets[leaf], failed)
        return True

    def background(self, bins: cython.int[:, ::1], weights: cython.double[::1]) -> None:
        """Write by leaf and player set the share of rows meeting its conditions."""
        one: cython.longlong = 1
        n: cython.double = bins.shape[0]
        for i in range(bins.shape[0]):
            self._meet(bins, i)
            for leaf in range(self._n_leaves):
                weights[self._starts[leaf] + self._met[leaf]] += 1.0
        for leaf in range(self._n_leaves):
            start = self._starts[leaf]
            for b in range(self._sizes[leaf]):
                for s in range(one << self._sizes[leaf]):
                    if s >> b & 1 == 0:
                        weights[start + s] += weights[start + (s | one << b)]
            for s in range(one << self._sizes[leaf]):
                weights[start + s] /= n

    # hot
    @cython.cfunc
    @cython.exceptval(check=False)
    def _predict(self, weights: cython.double[::1]) -> cython.bint:
        """Write every coalition's sum over the leaves to the last group's part."""
        value: cython.double[:, ::1] = self._trees._value
        k_all: cython.Py_ssize_t = self._trees._n_outputs
        one: cython.longlong = 1
        for s in range(self._sums.shape[0]):
            for k in range(k_all):
                self._sums[s, k] = 0.0
        for leaf in range(self._n_leaves):
            full = (one << self._sizes[leaf]) - 1
            place, start, mine = self._places[self._group_of[leaf]], self._starts[leaf], self._met[leaf]
            kept = mine
            while True:
                w = weights[start + (full ^ kept)]
                if w != 0.0:
                    for k in range(k_all):
                        self._sums[place + kept, k] += w * value[self._leaves[leaf], k]
                if kept == 0:
                    break
                kept = (kept - 1) & mine
        for g in range(self._n_groups - 1):
            place, up, at = self._places[g], self._places[self._parents[g]], self._projected[g]
            for s in range(one << self._group_sizes[self._parents[g]]):
                for k in range(k_all):
                    self._sums[up + s, k] += self._sums[place + self._projections[at + s], k]
        return True

    # hot
    @cython.cfunc
    @cython.exceptval(check=False)
    def _hand_back(self, into: cython.double[:, ::1], j: cython.Py_ssize_t) -> cython.bint:
        """Add the slopes of the weights, found from the sums, to row j of `into`."""
        value: cython.double[:, ::1] = self._trees._value
        k_all: cython.Py_ssize_t = self._trees._n_outputs
        one: cython.longlong = 1
        for g in range(self._n_groups - 2, -1, -1):
            place, up, at = self._places[g], self._places[self._parents[g]], self._projected[g]
            for s in range(one << self._group_sizes[g]):
                for k in range(k_all):
                    self._sums[place + s, k] = 0.0
            for s in range(one << self._group_sizes[self._parents[g]]):
                for k in range(k_all):
                    self._sums[place + self._projections[at + s], k] += self._sums[up + s, k]
        for leaf in range(self._n_leaves):
            full = (one << self._sizes[leaf]) - 1
            place, start, mine = self._places[self._group_of[leaf]], self._starts[leaf], self._met[leaf]
            kept = mine
            while True:
                moved: cython.double = 0.0
                for k in range(k_all):
                    moved += self._sums[place + kept, k] * value[self._leaves[leaf], k]
                into[j, start + (full ^ kept)] += moved
                if kept == 0:
                    break
                kept = (kept - 1) & mine
        return True

    def all_coalitions(
        self, bins: cython.int[:, ::1], weights: cython.double[::1], code: cython.int, epsilon: cython.double,
        columns: cython.Py_ssize_t[::1], targets: cython.double[::1], of_size: cython.double[::1],
        n_classes: cython.Py_ssize_t, own: cython.double[:, ::1], moved: cython.double[:, ::1],
    ) -> bool:  # fmt: skip
        """Write rows' Shapley values to `own`, and their sums' slopes to `moved`.

        Parameters
        ----------
        code, epsilon, columns, targets
            The loss, and by row the column of its label, and its target.
        of_size
            Shape (players,): the weight of a coalition, by its size.
        own
            Shape (rows, players).
        moved
            Shape (players, weights), or (players, 0) where it is not wanted.

        Returns
        -------
        Whether all losses are finite.
        """
        trees: Trees = self._trees
        one: cython.longlong = 1
        d: cython.Py_ssize_t = own.shape[1]
        k_all: cython.Py_ssize_t = trees._n_outputs
        n_coalitions: cython.longlong = one << d
        top: cython.longlong = self._places[self._n_groups - 1]
        raw: cython.double[:, ::1] = _seen(np.zeros((n_coalitions, k_all)))
        P: cython.double[:, ::1] = _seen(np.zeros((n_coalitions, n_classes)))
        of_sum: cython.double[:, ::1] = _seen(np.zeros((n_coalitions, k_all)))
        losses: cython.double[::1] = _seen(np.zeros(n_coalitions))
        bits: cython.longlong[::1] = _seen(np.zeros(n_coalitions, np.int64))
        for s in range(1, n_coalitions):
            bits[s] = bits[s >> 1] + (s & 1)
        self._sums = _seen(np.zeros((top + n_coalitions, k_all)))
        for i in range(bins.shape[0]):
            self._meet(bins, i)
            self._predict(weights)
            for s in range(n_coalitions):
                for k in range(k_all):
                    raw[s, k] = trees._base[k] + trees._scale * self._sums[top + s, k]
                _link_row(trees, raw, s, P)
                losses[s] = _scored(P, s, code, epsilon, columns[i], targets[i])
                if not isfinite(losses[s]):
                    return False
            _write_shapley(losses, of_size, bits, own, i)
            if moved.shape[1] == 0:
                continue
            for s in range(n_coalitions):
                _write_slopes(P, s, trees._link, code, epsilon, columns[i], targets[i], of_sum)
            for j in range(d):
                for s in range(n_coalitions):
                    others = bits[s] - 1 if s >> j & 1 else bits[s]
                    w = trees._scale * (-of_size[others] if s >> j & 1 else of_size[others])
                    for k in range(k_all):
                        self._sums[top + s, k] = w * of_sum[s, k]
                self._hand_back(moved, j)
        return True

    def of_background(
        self, bins: cython.int[:, ::1], moved: cython.double[:, ::1], found: cython.double[:, ::1]
    ) -> None:
        """Write each background row's influence on the sums of Shapley values.

        It goes to `found`, shape (players, rows).

        Parameters
        ----------
        moved
            Shape (players, weights), of `all_coalitions`; overwritten.
        """
        one: cython.longlong = 1
        for j in range(moved.shape[0]):
            for leaf in range(self._n_leaves):
                start = self._starts[leaf]
                for b in range(self._sizes[leaf]):
                    for s in range(one << self._sizes[leaf]):
                        if s >> b & 1:
                            moved[j, start + s] += moved[j, start + (s ^ one << b)]
        for i in range(bins.shape[0]):
            self._meet(bins, i)
            for j in range(moved.shape[0]):
                total: cython.double = 0.0
                for leaf in range(self._n_leaves):
                    total += moved[j, self._starts[leaf] + self._met[leaf]]
                found[j, i] = total


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _of_leaf(players: cython.longlong, failed: cython.longlong) -> cython.longlong:
    """Return a leaf's own set of the players that have not failed."""
    own: cython.longlong = 0
    bit: cython.longlong = 1
    while players > 0:
        lowest = players & -players
        if failed & lowest == 0:
            own |= bit
        bit <<= 1
        players ^= lowest
    return own


# hot
@cython.cfunc
@cython.exceptval(check=False)
def _write_shapley(
    losses: cython.double[::1], weights: cython.double[::1], bits: cython.longlong[::1], found: cython.double[:, ::1],
    i: cython.Py_ssize_t,
) -> cython.bint:  # fmt: skip
    """Write each player's Shapley value of the loss drop to `found`'s row i.

    Parameters
    ----------
    losses, bits
        Shape (coalitions,): also their sizes.
    weights
        Shape (players,): by size of a coalition without the player.
    """
    one: cython.longlong = 1
    for j in range(found.shape[1]):
        total: cython.double = 0.0
        for s in range(losses.shape[0]):
            if s >> j & 1 == 0:
                total += weights[bits[s]] * (losses[s] - losses[s | one << j])
        found[i, j] = total
    return True


# hot
@cython.cfunc
@cython.exceptval(check=False)
def _write_slopes(
    P: cython.double[:, ::1], s: cython.Py_ssize_t, link: cython.int, code: cython.int, epsilon: cython.double,
    column: cython.Py_ssize_t, target: cython.double, of_sum: cython.double[:, ::1],
) -> cython.bint:  # fmt: skip
    """Write the slope of row s's loss in each leaf sum to row s of `of_sum`."""
    if link == _SECOND_OF_TWO:  # of which the first is 1 - p
        first = _slope(P[s, 0], code, epsilon, column == 0, target)
        of_sum[s, 0] = _slope(P[s, 1], code, epsilon, column == 1, target) - first
    else:
        for k in range(P.shape[1]):
            of_sum[s, k] = _slope(P[s, k], code, epsilon, column == k, target)
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _slope(
    p: cython.double, code: cython.int, epsilon: cython.double, is_label: cython.bint, target: cython.double
) -> cython.double:
    if code == _NOT_IN_CORE:
        return -1.0 if is_label else 0.0
    return slope_of(p, code, epsilon, is_label, target)
