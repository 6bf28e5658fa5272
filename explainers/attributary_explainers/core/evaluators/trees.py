"""Hoeffding trees and their ensembles, as nodes that follow River's.

Learning changes a tree in few places: it may replace a child by a branch, and what a leaf knows. A node that a row
reaches is compared with the live one, by identity and once a call; that takes less time than to find out where
learning has been.

The rows of a call are an explainer's. In PFI each differs from row 0 in one feature. In SAGE a row differs in one
feature from the row of the same draw in the coalition before, which is always the same number of rows, `lag`, earlier.
A tree that reads none of the columns that differ has the same vote for both rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from river import tree
from river.forest.adaptive_random_forest import BaseTreeClassifier, BaseTreeRegressor
from river.linear_model import LinearRegression
from river.optim.losses import Squared
from river.tree.nodes import (
    arf_htc_nodes,
    arf_htr_nodes,
    branch,
    efdtc_nodes,
    hatc_nodes,
    hatr_nodes,
    htc_nodes,
    htr_nodes,
)
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from ...ordering import sort_key
from ..buffers import floats, integers

try:
    import cython
except ImportError:
    from .. import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import exp, fabs, floor, log
else:
    from math import exp, fabs, floor, log

# Constants that C knows; any other name of a module is one of Python's objects.
_INFINITE = cython.declare(cython.double, math.inf)
_HALF_LOG_TAU = cython.declare(cython.double, 0.5 * math.log(math.tau))
_TWO_UNITS = cython.declare(cython.double, 2.0**-52)
_MOST_LAG = cython.declare(cython.Py_ssize_t, 64)
_MOST_CATEGORIES = cython.declare(cython.Py_ssize_t, 4096)

_LEAF = cython.declare(cython.int, -1)
_NUMERIC = cython.declare(cython.int, 0)
_NOMINAL = cython.declare(cython.int, 1)
_NUMERIC_MULTIWAY = cython.declare(cython.int, 2)
_NOMINAL_MULTIWAY = cython.declare(cython.int, 3)
BRANCHES: dict[type, int] = {
    kind: number
    for number, kinds in enumerate(
        (
            (
                branch.NumericBinaryBranch,
                efdtc_nodes.EFDTNumericBinaryBranch,
                hatc_nodes.AdaNumBinaryBranchClass,
                hatr_nodes.AdaNumBinaryBranchReg,
            ),
            (
                branch.NominalBinaryBranch,
                efdtc_nodes.EFDTNominalBinaryBranch,
                hatc_nodes.AdaNomBinaryBranchClass,
                hatr_nodes.AdaNomBinaryBranchReg,
            ),
            (
                branch.NumericMultiwayBranch,
                efdtc_nodes.EFDTNumericMultiwayBranch,
                hatc_nodes.AdaNumMultiwayBranchClass,
                hatr_nodes.AdaNumMultiwayBranchReg,
            ),
            (
                branch.NominalMultiwayBranch,
                efdtc_nodes.EFDTNominalMultiwayBranch,
                hatc_nodes.AdaNomMultiwayBranchClass,
                hatr_nodes.AdaNomMultiwayBranchReg,
            ),
        )
    )
    for kind in kinds
}
"""How branches split, by exact type."""

_MAJORITY = cython.declare(cython.int, 0)
_BAYES = cython.declare(cython.int, 1)
_BETTER = cython.declare(cython.int, 2)
_ADAPTIVE = cython.declare(cython.int, 3)
CLASS_LEAVES: dict[type, int] = {
    htc_nodes.LeafMajorityClass: 0,
    arf_htc_nodes.RandomLeafMajorityClass: 0,
    efdtc_nodes.EFDTLeafMajorityClass: 0,
    htc_nodes.LeafNaiveBayes: 1,
    arf_htc_nodes.RandomLeafNaiveBayes: 1,
    efdtc_nodes.EFDTLeafNaiveBayes: 1,
    htc_nodes.LeafNaiveBayesAdaptive: 2,
    arf_htc_nodes.RandomLeafNaiveBayesAdaptive: 2,
    efdtc_nodes.EFDTLeafNaiveBayesAdaptive: 2,
    hatc_nodes.AdaLeafClassifier: 3,
}
"""What leaves go by: shares of classes; naive Bayes from a weight on; the one that was right more often; or as the
tree says, with a weight by their errors."""

_MEAN = cython.declare(cython.int, 0)
_MODEL = cython.declare(cython.int, 1)
_EITHER = cython.declare(cython.int, 2)
NUMBER_LEAVES: dict[type, int] = {
    htr_nodes.LeafMean: 0,
    arf_htr_nodes.RandomLeafMean: 0,
    hatr_nodes.AdaLeafRegMean: 0,
    htr_nodes.LeafModel: 1,
    arf_htr_nodes.RandomLeafModel: 1,
    hatr_nodes.AdaLeafRegModel: 1,
    htr_nodes.LeafAdaptive: 2,
    arf_htr_nodes.RandomLeafAdaptive: 2,
    hatr_nodes.AdaLeafRegAdaptive: 2,
}
"""The number that leaves give: the mean, that of their linear model, or the one with the lesser error."""

CLASSIFIERS = frozenset(
    (
        tree.HoeffdingTreeClassifier,
        tree.HoeffdingAdaptiveTreeClassifier,
        tree.ExtremelyFastDecisionTreeClassifier,
        BaseTreeClassifier,
    )
)
REGRESSORS = frozenset((tree.HoeffdingTreeRegressor, tree.HoeffdingAdaptiveTreeRegressor, BaseTreeRegressor))
_WITH_ALTERNATES = (tree.HoeffdingAdaptiveTreeClassifier, tree.HoeffdingAdaptiveTreeRegressor)


class UnknownStateError(Exception):
    """A tree of an unknown kind or state, so that River itself is asked."""


# ---------------------------------------------------------------- nodes


@cython.cclass
class Node:
    """A node of any kind; by itself it stands for a node of an unknown type.

    All that a row on its way needs of a branch with two children comes first, so that it is fetched at once.

    Parameters
    ----------
    live
        River's node.
    number
        A number of its own within the evaluator.
    """

    checked: cython.longlong
    """The number of the last call for which it was compared with the live node."""
    columns_read: cython.longlong
    """The columns it reads, one bit each; columns 63 apart share a bit, which only costs some reuse."""
    kind: cython.int
    """How it splits, -1 for a leaf."""
    column: cython.int
    """-1 where no row has the feature."""
    threshold: cython.double
    """The largest value that goes left; the category that does, as a code; or the width of a slot of values."""
    left: Node
    right: Node
    """Where there are two children."""
    live: Any
    number: cython.longlong

    def __init__(self, live: Any, number: int) -> None:
        self.live, self.number, self.checked, self.columns_read = live, number, -1, 0
        self.kind, self.column, self.threshold, self.left, self.right = _LEAF, -1, 0.0, None, None


@cython.cclass
class Branch(Node):
    """A branch."""

    children: list[Any]
    """The live list."""
    nodes: list[Any]
    """The nodes of the children, where there may be more than two."""
    places: Any
    """Position in `nodes` by slot of values or by category code."""
    alternate: Node
    """The leaf of a Hoeffding adaptive tree that may replace the branch."""
    asked: cython.longlong
    """The call in which River was last asked for `detour`."""
    detour: Node
    """The child for rows without a child of their own."""

    def __init__(self, live: Any, number: int, kind: int) -> None:
        Node.__init__(self, live, number)
        self.kind, self.children, self.nodes, self.places = kind, live.children, [], None
        self.alternate, self.asked, self.detour = None, -1, None


@cython.cclass
class ClassLeaf(Node):
    """A leaf of a classifier."""

    rule: cython.int
    stats: Any
    """The live weights by label."""
    seen: Any
    """The values of `stats` when it was read: a list, None before."""
    splitters: Any
    n_splitters: cython.Py_ssize_t
    by_bayes: cython.bint
    error: cython.double
    n_features: cython.Py_ssize_t
    observed: list[Any]
    """River's observers of the features that rows have."""
    estimates: list[Any]
    """By class and feature: River's variance, or the codes of the categories; None where there is nothing yet."""
    known: cython.double[::1]
    """What the leaf knows, in a row, with k classes and n features:

    - `known[:k]`: shares of the classes; by naive Bayes, their logarithms;
    - `known[k:2k]`: weights of the classes, -1 where the leaf has not met a class;
    - `known[2k:3k]`: these weights when the Gaussians were read;
    - `known[3k + 3(c n + f):][:3]`: the Gaussian of class c and feature f: mean, -2 times the variance (0 where there
      is no density), and half the logarithm of the variance.
    """
    places: cython.longlong[::1]
    """In a row, with n features: the columns (`[:n]`); where categories begin in `logs`, -1 for a number (`[n:2n]`);
    for how many categories there is room (`[2n:]`)."""
    logs: cython.double[::1]
    """By feature, class and category: the logarithm of the category's share, 0 without a share."""

    def __init__(self, live: Any, number: int, rule: int, n_labels: int) -> None:
        Node.__init__(self, live, number)
        self.rule, self.stats, self.seen = rule, live.stats, None
        self.splitters, self.n_splitters, self.n_features = None, -1, 0
        self.by_bayes, self.error, self.observed, self.estimates = False, 0.0, [], []
        self.known = floats(3 * n_labels)


@cython.cclass
class NumberLeaf(Node):
    """A leaf of a regressor."""

    rule: cython.int
    seen: Any
    """The weight of its mean when it was read: learning makes another object."""
    base: cython.double
    """The mean, or the intercept of the linear model."""
    is_linear: cython.bint
    weights: cython.double[::1]
    """The linear model's weight of each column."""

    def __init__(self, live: Any, number: int, rule: int) -> None:
        Node.__init__(self, live, number)
        self.rule, self.seen, self.base, self.is_linear = rule, None, 0.0, False


@cython.cclass
class Tree:
    """A tree of River, as it was when it was last compared.

    Parameters
    ----------
    live
        River's tree.
    """

    live: Any
    root: Node
    """None before the tree has learnt."""
    has_alternates: cython.bint
    n_labels: cython.Py_ssize_t
    """Labels that it had met at the last call; -1 before the first call."""
    prediction: Any
    """How its leaves predict: River's `leaf_prediction`."""
    threshold: Any
    """From which weight on naive Bayes predicts: River's `nb_threshold`."""

    def __init__(self, live: Any) -> None:
        self.live, self.root, self.n_labels, self.prediction, self.threshold = live, None, -1, None, None
        self.has_alternates = type(live) in _WITH_ALTERNATES


# ---------------------------------------------------------------- rows on their way


@cython.cclass
class Trees:
    """The base of evaluators of trees: rows on their way to leaves.

    Parameters
    ----------
    model
        A tree, or, with `is_ensemble`, what has a list of trees, `data`.
    schema
        The schema of the rows: columns and codes.
    """

    schema: Any
    model: Any
    is_ensemble: cython.bint
    alone: list[Any]
    trees: list[Any]
    """A `Tree` for each tree of River."""
    call: cython.longlong
    """The number of this call."""
    n_nodes: cython.longlong
    width: cython.Py_ssize_t
    """Numbers that the vote of a tree has."""
    live: Any
    """River's tree that votes now."""
    has_alternates: cython.bint
    """Whether that tree has alternate trees."""
    X: cython.double[:, ::1]
    d: cython.Py_ssize_t
    bits: cython.longlong[::1]
    """The bit that stands for each column."""
    n: cython.Py_ssize_t
    """Rows of this call."""
    room: cython.Py_ssize_t
    """Rows for which there is room."""
    lag: cython.Py_ssize_t
    """Rows from a draw's row in a coalition to its row in the next one; 0 if unknown."""
    differs_from_first: cython.longlong[::1]
    """By row, the bits of the columns in which it differs from row 0."""
    differs_from_lagged: cython.longlong[::1]
    """By row, the bits of the columns in which it differs from the row `lag` rows earlier."""
    columns_read: cython.longlong[::1]
    """By row, the bits of all columns that the tree has read."""
    leaf_number: cython.longlong[::1]
    """By row, the number of its leaf; -1 if alternate leaves voted as well."""
    votes: cython.double[:, ::1]
    alternates: list[Any]
    """Alternate leaves on the way of a row."""

    def __init__(self, model: Any, schema: Any, is_ensemble: bool) -> None:
        self.model, self.schema, self.is_ensemble = model, schema, is_ensemble
        self.alone, self.trees, self.alternates = [] if is_ensemble else [model], [], []
        self.live, self.has_alternates = None, False
        self.call = self.n_nodes = self.width = self.n = self.room = self.lag = 0
        self.d = len(schema)
        self.bits = integers(max(1, self.d))
        for j in range(self.d):
            self.bits[j] = 1 << (j % 63)
        for one in self._live_trees():
            self._check(one)

    def _live_trees(self) -> list[Any]:
        return self.model.data if self.is_ensemble else self.alone

    def _check(self, live: Any) -> None:
        """Raise `UnknownStateError` for a tree of unknown type or parameters."""
        raise NotImplementedError

    def _new_leaf(self, live: Any) -> Node:
        raise NotImplementedError

    @cython.cfunc
    def _refresh_leaf(self, leaf: Node) -> cython.bint:
        """Bring a leaf up to date with River's."""
        raise NotImplementedError

    @cython.cfunc
    def _add_vote_of_leaf(self, leaf: Node, r: cython.Py_ssize_t) -> cython.bint:
        """Add the vote of a leaf to the votes of a row."""
        raise NotImplementedError

    @cython.cfunc
    def _finish(self, one: Tree, r: cython.Py_ssize_t, n_leaves: cython.Py_ssize_t) -> cython.bint:
        """Turn the sum of the leaves' votes into the tree's vote."""
        raise NotImplementedError

    # ------------------------------------------------------------ what has changed

    @cython.final
    @cython.cfunc
    def _begin(self, X: cython.double[:, ::1]) -> cython.bint:
        """Take the rows, and find the columns in which they differ."""
        self.X = X
        self.call += 1
        self.n = X.shape[0]
        if self.n > self.room or self.votes.shape[1] != max(1, self.width):
            self.room = max(self.n, self.room)
            self.differs_from_first, self.differs_from_lagged = integers(self.room), integers(self.room)
            self.columns_read, self.leaf_number = integers(self.room), integers(self.room)
            self.votes = floats(self.room, max(1, self.width))
        return self._compare()

    @cython.final
    @cython.cfunc
    def _refresh_trees(self, trees: list[Any]) -> cython.bint:
        """Bring the list of trees up to date with River's."""
        t: cython.Py_ssize_t
        known: Tree
        if len(self.trees) > len(trees):
            del self.trees[len(trees) :]
        for t in range(len(trees)):
            live: Any = trees[t]
            if t < len(self.trees):
                known = self.trees[t]
                if known.live is live:
                    continue
            self._check(live)
            known = Tree(live)
            if t < len(self.trees):
                self.trees[t] = known
            else:
                self.trees.append(known)
        return True

    @cython.final
    @cython.cfunc
    def _refresh_root(self, one: Tree) -> cython.bint:
        """Bring the root up to date with River's; return whether there is a root."""
        live: Any = one.live._root
        self.live, self.has_alternates = one.live, one.has_alternates
        if live is None:
            one.root = None
            return False
        if one.root is None or one.root.live is not live:
            one.root = self._new(live)
        return True

    def forget(self) -> None:
        """Begin with nothing known: a call may have stopped half-way."""
        self.trees = []

    def _new(self, live: Any) -> Node:
        """Return a node for River's, to be read when a row comes to it."""
        self.n_nodes += 1
        kind = BRANCHES.get(type(live))
        return self._new_leaf(live) if kind is None else Branch(live, self.n_nodes, kind)

    @cython.final
    @cython.cfunc
    def _refresh_node(self, node: Node) -> cython.bint:
        """Bring a node up to date with River's."""
        if node.kind == _LEAF:
            if type(node) is Node:
                raise UnknownStateError(f"a tree has a leaf of type {type(node.live).__qualname__}")
            self._refresh_leaf(node)
            node.checked = self.call
            return True
        one: Branch = node
        if one.kind <= _NOMINAL:
            if node.left is None or node.left.live is not one.children[0]:
                node.left = self._new(one.children[0])
            if node.right is None or node.right.live is not one.children[1]:
                node.right = self._new(one.children[1])
        else:
            self._follow_children(one)
        if node.checked < 0:
            self._read_split(one)
        if one.kind == _NOMINAL_MULTIWAY and one.column >= 0 and len(one.places) != len(one.children):
            self._read_places(one)
        if self.has_alternates:
            self._follow_alternate(one)
        node.checked = self.call
        return True

    @cython.final
    @cython.cfunc
    def _follow_children(self, one: Branch) -> cython.bint:
        i: cython.Py_ssize_t
        child: Node
        n: cython.Py_ssize_t = len(one.children)
        if len(one.nodes) > n:
            del one.nodes[n:]
        for i in range(n):
            if i == len(one.nodes):
                one.nodes.append(self._new(one.children[i]))
                continue
            child = one.nodes[i]
            if child.live is not one.children[i]:
                one.nodes[i] = self._new(one.children[i])
        return True

    @cython.final
    @cython.cfunc
    def _follow_alternate(self, one: Branch) -> cython.bint:
        live: Any = one.live._alternate_tree
        if live is None:
            one.alternate = None
        elif one.alternate is None or one.alternate.live is not live:
            one.alternate = self._new(live)
            if one.alternate.kind != _LEAF:
                raise UnknownStateError("an alternate tree has split, of which River makes an error")
        return True

    def _read_split(self, one: Branch) -> None:
        live, schema = one.live, self.schema
        column = schema.position.get(live.feature)
        if column is None:
            return
        nominal = one.kind in (_NOMINAL, _NOMINAL_MULTIWAY)
        if (column in schema.codes) != nominal:
            raise UnknownStateError(
                f"a tree and the rows read {live.feature!r} differently: as categories and as numbers"
            )
        one.column = column
        one.columns_read = self.bits[column]
        if one.kind == _NUMERIC:
            one.threshold = live.threshold
        elif one.kind == _NOMINAL:
            one.threshold = schema.code(column, live.value)
        elif one.kind == _NUMERIC_MULTIWAY:
            one.threshold, one.places = live.radius, live._mapping
        else:
            one.places = {}

    def _read_places(self, one: Branch) -> None:
        one.places = {self.schema.code(one.column, value): i for value, i in one.live._mapping.items()}

    # ------------------------------------------------------------ what rows share

    @cython.final
    @cython.cfunc
    def _compare(self) -> cython.bint:
        """Write in which columns each row differs from earlier ones."""
        r: cython.Py_ssize_t
        far: cython.Py_ssize_t = 0
        self.differs_from_first[0] = self.lag = 0
        for r in range(1, self.n):
            self.differs_from_first[r] = self._difference(r, 0)
            if far == 0 and self._has_more_than_two(self.differs_from_first[r]):
                far = r
        if far > 0:
            self._find_lag(far)
        if self.lag > 0:
            for r in range(self.lag, self.n):
                self.differs_from_lagged[r] = self._difference(r, r - self.lag)
        return True

    @cython.final
    @cython.cfunc
    def _find_lag(self, r: cython.Py_ssize_t) -> cython.bint:
        """Find `lag`, from a row that no row of PFI can be."""
        m: cython.Py_ssize_t
        for m in range(1, _MOST_LAG + 1):
            if r + m >= self.n:
                break
            if not self._has_more_than_two(self._difference(r + m, r)):
                self.lag = m
                break
        return True

    @cython.final
    @cython.cfunc
    @cython.exceptval(check=False)
    def _has_more_than_two(self, bits: cython.longlong) -> cython.bint:
        """Return whether more than two columns differ: no row of PFI then."""
        bits &= bits - 1
        return bits & (bits - 1) != 0

    @cython.final
    @cython.cfunc
    @cython.exceptval(check=False)
    def _difference(self, r: cython.Py_ssize_t, q: cython.Py_ssize_t) -> cython.longlong:
        """Return the bits of the columns in which two rows differ."""
        j: cython.Py_ssize_t
        d: cython.Py_ssize_t = self.d
        found: cython.longlong = 0
        v: cython.double
        u: cython.double
        for j in range(d):
            v, u = self.X[r, j], self.X[q, j]
            # NaN, which says that the row lacks the feature, equals itself here.
            if v != u and (v == v or u == u):
                found |= self.bits[j]
        return found

    @cython.final
    @cython.cfunc
    @cython.exceptval(check=False)
    def _base(self, r: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return an earlier row that looks the same to the tree, or -1."""
        if r == 0:
            return -1
        if not self.differs_from_first[r] & self.columns_read[0]:
            return 0
        if 0 < self.lag <= r and not self.differs_from_lagged[r] & self.columns_read[r - self.lag]:
            return r - self.lag
        return -1

    @cython.final
    @cython.cfunc
    @cython.exceptval(check=False)
    def _base_at(self, leaf: Node, r: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return an earlier row that looks the same to the same leaf, or -1."""
        if r == 0:
            return -1
        if self.leaf_number[0] == leaf.number and not self.differs_from_first[r] & leaf.columns_read:
            return 0
        r_before: cython.Py_ssize_t = r - self.lag
        is_near: cython.bint = self.lag > 0 and r_before >= 0 and self.leaf_number[r_before] == leaf.number
        return r_before if is_near and not self.differs_from_lagged[r] & leaf.columns_read else -1

    # ------------------------------------------------------------ ways to leaves

    @cython.final
    @cython.cfunc
    def _vote_for_all_rows(self, one: Tree) -> cython.bint:
        """Write the votes of a tree for all rows."""
        r: cython.Py_ssize_t
        c: cython.Py_ssize_t
        base: cython.Py_ssize_t
        leaf: Node
        i: cython.Py_ssize_t
        n_alternates: cython.Py_ssize_t
        for r in range(self.n):
            base = self._base(r)
            if base >= 0:
                self.columns_read[r], self.leaf_number[r] = self.columns_read[base], self.leaf_number[base]
            else:
                leaf = self._find_leaf(one.root, r)
                n_alternates = len(self.alternates)
                self.columns_read[r] |= leaf.columns_read
                self.leaf_number[r] = leaf.number if n_alternates == 0 else -1
                base = self._base_at(leaf, r) if n_alternates == 0 else -1
                if base < 0:
                    for c in range(self.width):
                        self.votes[r, c] = 0.0
                    for i in range(n_alternates):
                        self._add_vote_of_leaf(self.alternates[i], r)
                    self._add_vote_of_leaf(leaf, r)
                    self._finish(one, r, n_alternates + 1)
            if base >= 0:
                for c in range(self.width):
                    self.votes[r, c] = self.votes[base, c]
        return True

    @cython.final
    @cython.cfunc
    def _find_leaf(self, node: Node, r: cython.Py_ssize_t) -> Node:
        """Return a row's leaf; note the columns used and alternate leaves met."""
        one: Branch
        value: cython.double
        columns_read: cython.longlong = 0
        again: cython.bint = False
        child: Node
        if self.alternates:
            self.alternates.clear()
        while True:
            if node.checked != self.call:
                self._refresh_node(node)
            if node.kind == _LEAF:
                break
            columns_read |= node.columns_read
            if self.has_alternates:
                one = node
                if one.alternate is not None:
                    columns_read |= self._meet(one.alternate, again)
                again = False
            value = self.X[r, node.column] if node.column >= 0 else _INFINITE - _INFINITE
            if value != value:
                child = None
            elif node.kind == _NUMERIC:
                node = node.left if value <= node.threshold else node.right
                continue
            elif node.kind == _NOMINAL:
                node = node.left if value == node.threshold else node.right
                continue
            else:
                child = self._child_at(node, value)
            if child is None:
                # River names this child twice, so that its alternate leaf counts twice.
                child, again = self._detour(node), True
            node = child
        self.columns_read[r] = columns_read
        return node

    @cython.final
    @cython.cfunc
    def _meet(self, leaf: Node, again: cython.bint) -> cython.longlong:
        """Note an alternate leaf on the way, and return where it looks."""
        if leaf.checked != self.call:
            self._refresh_node(leaf)
        self.alternates.append(leaf)
        if again:
            self.alternates.append(leaf)
        return leaf.columns_read

    @cython.final
    @cython.cfunc
    def _child_at(self, node: Node, value: cython.double) -> Node:
        """Return the child of a branch for a value; None where there is none."""
        one: Branch = node
        if one.kind == _NUMERIC_MULTIWAY:
            value = value / one.threshold if one.threshold != 0.0 else _INFINITE
            if not -_INFINITE < value < _INFINITE:
                raise UnknownStateError("a number cannot be divided by the radius of a split")
            value = floor(value)
        i: Any = one.places.get(value)
        return None if i is None else one.nodes[i]

    @cython.final
    @cython.cfunc
    def _detour(self, node: Node) -> Node:
        """Return the child to which River sends rows that have no other."""
        one: Branch = node
        if one.asked != self.call:
            i: cython.Py_ssize_t = one.live.most_common_path()[0]
            if one.kind > _NOMINAL:
                one.detour = one.nodes[i]
            else:
                one.detour = one.left if i == 0 else one.right
            one.asked = self.call
        return one.detour


# ---------------------------------------------------------------- classifiers


@cython.cclass
class ClassTrees(Trees):
    """Evaluates classification trees: their votes, each with its weight.

    Parameters
    ----------
    model, schema, is_ensemble
        See `Trees`.
    is_weighted
        Whether votes are weighed by the model's metrics, of which one that is not above 0 counts as 1, unless the
        model says that they are not.
    normalises
        Whether the votes are made to sum to 1.
    """

    labels = cython.declare(tuple, visibility="readonly")
    """The class of each column of the predictions, in the order of `sort_key`."""
    is_weighted: cython.bint
    normalises: cython.bint
    column: dict[Any, Any]
    """The column of each label."""
    P: cython.double[:, ::1]
    whole: Any
    """The room for predictions, as an array."""
    shown: Any
    """The part of `whole` that has the last predictions."""
    said: cython.double[::1]
    """The vote of a leaf, by class."""
    weight: cython.double
    """The weight of the tree that votes now."""

    def __init__(self, model: Any, schema: Any, is_ensemble: bool, is_weighted: bool, normalises: bool) -> None:
        Trees.__init__(self, model, schema, is_ensemble)
        self.is_weighted, self.normalises = is_weighted, normalises
        self.labels, self.column, self.weight = (), {}, 1.0
        self.said, self.whole, self.shown = floats(1), None, None

    def _check(self, live: Any) -> None:
        if type(live) not in CLASSIFIERS:
            raise UnknownStateError(f"the ensemble has a member that is no Hoeffding tree: {type(live).__qualname__}")
        if live._leaf_prediction != "mc" and type(live.splitter) is not GaussianSplitter:
            raise UnknownStateError(f"naive Bayes in leaves that observe numbers by {type(live.splitter).__qualname__}")

    def _new_leaf(self, live: Any) -> Node:
        rule = CLASS_LEAVES.get(type(live))
        if rule is None:
            return Node(live, self.n_nodes)
        return ClassLeaf(live, self.n_nodes, rule, self.width)

    def predict(self, X: cython.double[:, ::1]) -> Any:
        """Return probabilities (rows x labels); the next call overwrites them.

        Raises
        ------
        UnknownStateError
            The model is in a state that is not known here.
        """
        t: cython.Py_ssize_t
        r: cython.Py_ssize_t
        c: cython.Py_ssize_t
        one: Tree
        if not cython.compiled:
            X = memoryview(X)  # type: ignore[assignment]  # gives floats of Python
        trees: list[Any] = self._live_trees()
        self._refresh_trees(trees)
        self._follow_labels()
        if self.width == 0:
            return np.zeros((X.shape[0], 0))
        self._begin(X)
        self._make_room()
        for r in range(self.n):
            for c in range(self.width):
                self.P[r, c] = 0.0
        for t in range(len(self.trees)):
            one = self.trees[t]
            self._follow_settings(one)
            if not self._refresh_root(one):
                continue
            self.weight = self._weight(t)
            self._vote_for_all_rows(one)
            for r in range(self.n):
                for c in range(self.width):
                    self.P[r, c] += self.votes[r, c]
        if self.normalises:
            self._normalise()
        return self.shown

    @cython.cfunc
    def _make_room(self) -> cython.bint:
        if self.whole is None or self.whole.shape != (self.room, self.width):
            self.P = floats(self.room, self.width)
            self.whole, self.shown = np.asarray(self.P), None
        if self.shown is None or len(self.shown) != self.n:
            self.shown = self.whole[: self.n]
        return True

    @cython.cfunc
    def _follow_labels(self) -> cython.bint:
        """Begin anew where trees have met new labels."""
        one: Tree
        n: cython.Py_ssize_t
        has_more: cython.bint = False
        for one in self.trees:
            n = len(one.live.classes)
            if n != one.n_labels:
                one.n_labels = n
                has_more = True
        if has_more or (not self.trees and self.width > 0):
            self._set_labels()
        return True

    def _set_labels(self) -> None:
        one: Tree
        known: set[Any] = set()
        for one in self.trees:
            known.update(one.live.classes)
        labels = tuple(sorted(known, key=sort_key))
        if labels != self.labels:
            self.labels, self.width = labels, len(labels)
            self.column = {label: c for c, label in enumerate(labels)}
            self.said = floats(max(1, self.width))
            for one in self.trees:
                one.root = None

    @cython.cfunc
    def _follow_settings(self, one: Tree) -> cython.bint:
        """Begin anew if a setting that the tree's leaves depend on has changed."""
        prediction: Any = one.live._leaf_prediction
        threshold: Any = one.live.nb_threshold
        if prediction is not one.prediction or threshold is not one.threshold:
            one.prediction, one.threshold, one.root = prediction, threshold, None
        return True

    @cython.final
    @cython.cfunc
    def _weight(self, t: cython.Py_ssize_t) -> cython.double:
        if not self.is_weighted or self.model.disable_weighted_vote:
            return 1.0
        weight: cython.double = self.model._metrics[t].get()
        return weight if weight > 0.0 else 1.0

    @cython.final
    @cython.cfunc
    def _normalise(self) -> cython.bint:
        r: cython.Py_ssize_t
        c: cython.Py_ssize_t
        total: cython.double
        for r in range(self.n):
            total = 0.0
            for c in range(self.width):
                total += self.P[r, c]
            if total > 0.0:
                for c in range(self.width):
                    self.P[r, c] /= total
        return True

    # ------------------------------------------------------------ what leaves say

    @cython.cfunc
    def _add_vote_of_leaf(self, node: Node, r: cython.Py_ssize_t) -> cython.bint:
        """See `Trees`."""
        c: cython.Py_ssize_t
        leaf: ClassLeaf = node
        total: cython.double
        factor: cython.double = 1.0
        if leaf.by_bayes:
            self._say_by_bayes(leaf, r)
        else:
            for c in range(self.width):
                self.said[c] = leaf.known[c]
        if leaf.rule == _ADAPTIVE:
            total = 0.0
            for c in range(self.width):
                total += self.said[c]
            total = total * leaf.error * leaf.error
            if total != 0.0 and total == total:
                factor = 1.0 / total
        for c in range(self.width):
            self.votes[r, c] += self.said[c] * factor
        return True

    @cython.cfunc
    def _finish(self, one: Tree, r: cython.Py_ssize_t, n_leaves: cython.Py_ssize_t) -> cython.bint:
        """See `Trees`."""
        c: cython.Py_ssize_t
        total: cython.double = 0.0
        factor: cython.double = 1.0
        if one.has_alternates:
            for c in range(self.width):
                total += self.votes[r, c]
            if total != 0.0 and total == total:
                factor = 1.0 / total
        for c in range(self.width):
            self.votes[r, c] = self.votes[r, c] * factor * self.weight
        return True

    @cython.final
    @cython.cfunc
    def _say_by_bayes(self, leaf: ClassLeaf, r: cython.Py_ssize_t) -> cython.bint:
        c: cython.Py_ssize_t
        f: cython.Py_ssize_t
        n: cython.Py_ssize_t = leaf.n_features
        k: cython.Py_ssize_t = self.width
        g: cython.Py_ssize_t = 3 * k
        value: cython.double
        divisor: cython.double
        term: cython.double
        total: cython.double
        highest: cython.double = -_INFINITE
        for c in range(k):
            if leaf.known[k + c] < 0.0:
                g += 3 * n
                continue
            total = leaf.known[c]
            if leaf.known[k + c] == 0.0:  # as River has it
                g += 3 * n
            else:
                for f in range(n):
                    value = self.X[r, leaf.places[f]]
                    divisor = leaf.known[g + 1]
                    if divisor != 0.0:
                        term = value - leaf.known[g]
                        term = term * term
                        if term == _INFINITE:
                            raise UnknownStateError("a value is too far from what a leaf has seen")
                        term = term / divisor - _HALF_LOG_TAU - leaf.known[g + 2]
                        if term > -_INFINITE:
                            total += term
                    elif leaf.places[n + f] >= 0 and 0.0 <= value < leaf.places[2 * n + f]:
                        total += leaf.logs[leaf.places[n + f] + c * leaf.places[2 * n + f] + int(value)]
                    g += 3
            self.said[c] = total
            highest = max(highest, total)
        if not highest > -_INFINITE:
            raise UnknownStateError("a value is too far from what a leaf has seen")
        total = 0.0
        for c in range(k):
            if leaf.known[k + c] >= 0.0:
                total += exp(self.said[c] - highest) if self.said[c] != highest else 1.0
        total = highest + log(total)
        for c in range(k):
            self.said[c] = exp(self.said[c] - total) if leaf.known[k + c] >= 0.0 else 0.0
        return True

    # ------------------------------------------------------------ what leaves know

    @cython.cfunc
    def _refresh_leaf(self, node: Node) -> cython.bint:
        """Read a leaf anew if a class weight is another object: it has learnt."""
        i: cython.Py_ssize_t = 0
        leaf: ClassLeaf = node
        if leaf.rule == _ADAPTIVE:
            leaf.error = leaf.live._mean_error._mean
        splitters: Any = leaf.live.splitters
        if leaf.seen is not None and splitters is leaf.splitters and len(leaf.stats) == len(leaf.seen):
            for weight in leaf.stats.values():
                if weight is not leaf.seen[i]:  # held, so that no other one has its address
                    break
                i += 1
            else:
                return True
        leaf.seen = None
        self._read(leaf, splitters)
        leaf.seen = list(leaf.stats.values())
        return True

    @cython.cfunc
    def _read(self, leaf: ClassLeaf, splitters: Any) -> cython.bint:
        c: cython.Py_ssize_t
        f: cython.Py_ssize_t
        weight: cython.double
        total: cython.double = sum(leaf.stats.values())
        if not leaf.stats and leaf.rule == _ADAPTIVE:
            raise UnknownStateError("a leaf has seen nothing, of which River makes an error")
        for c in range(self.width):
            leaf.known[c] = 0.0
            leaf.known[self.width + c] = -1.0
        leaf.columns_read = 0
        leaf.by_bayes = splitters is not None and self._is_bayes(leaf, total)
        for label, value in leaf.stats.items():
            c, weight = self.column.get(label, -1), value
            if c < 0 or not weight >= 0.0:
                raise UnknownStateError("a leaf has an unknown label, or a negative weight")
            leaf.known[self.width + c] = weight
            if not leaf.by_bayes:
                leaf.known[c] = weight * (1.0 / total) if total != 0.0 else weight
            elif weight > 0.0:
                leaf.known[c] = log(weight / total)
        if splitters is not leaf.splitters:
            leaf.splitters, leaf.n_splitters = splitters, -1
        if not leaf.by_bayes:
            return True
        if total == 0.0:  # River has no vote then
            leaf.by_bayes = False
            return True
        if len(splitters) != leaf.n_splitters:
            self._choose_features(leaf)
        while not self._read_observers(leaf):
            self._choose_features(leaf)
        for f in range(leaf.n_features):
            leaf.columns_read |= self.bits[leaf.places[f]]
        return True

    @cython.cfunc
    def _is_bayes(self, leaf: ClassLeaf, total: cython.double) -> cython.bint:
        rule: cython.int = leaf.rule
        if rule == _ADAPTIVE:
            prediction: Any = self.live._leaf_prediction
            rule = _MAJORITY if prediction == "mc" else _BAYES if prediction == "nb" else _BETTER
        if rule == _BAYES:
            return total >= self.live.nb_threshold
        return rule == _BETTER and leaf.live._nb_correct_weight >= leaf.live._mc_correct_weight

    def _choose_features(self, leaf: ClassLeaf) -> None:
        """Note the features that a leaf observes, and make room for their data."""
        schema, columns = self.schema, []
        leaf.observed = []
        for name, splitter in leaf.splitters.items():
            column = schema.position.get(name)
            if column is None:
                continue
            kind = type(splitter)
            if kind is not GaussianSplitter and kind is not NominalSplitterClassif:
                raise UnknownStateError(f"a leaf with naive Bayes observes {name!r} by {kind.__qualname__}")
            if (kind is NominalSplitterClassif) != (column in schema.codes):
                raise UnknownStateError(f"a leaf and the rows read {name!r} differently: as categories and as numbers")
            columns.append(column)
            leaf.observed.append(splitter)
        n = len(columns)
        leaf.n_features, leaf.n_splitters = n, len(leaf.splitters)
        leaf.places, leaf.estimates = integers(max(1, 3 * n)), [None] * (n * self.width)
        size = 0
        for f, column in enumerate(columns):
            leaf.places[f], leaf.places[n + f] = column, -1
            if column in schema.codes:
                room = min(2 * len(schema.codes[column]) + 8, _MOST_CATEGORIES)
                leaf.places[n + f], leaf.places[2 * n + f] = size, room
                size += room * self.width
        leaf.logs = floats(max(1, size))
        k, known = self.width, leaf.known
        leaf.known = floats(3 * k * (1 + n))
        for c in range(k):
            leaf.known[c], leaf.known[k + c], leaf.known[2 * k + c] = known[c], known[k + c], -1.0

    @cython.cfunc
    def _read_observers(self, leaf: ClassLeaf) -> cython.bint:
        """Read a leaf's data of classes that learnt; return False without room."""
        c: cython.Py_ssize_t
        f: cython.Py_ssize_t
        i: cython.Py_ssize_t
        weight: cython.double
        for label in leaf.stats:
            c = self.column[label]
            weight = leaf.known[self.width + c]
            # What is observed of a class is as it was read while its weight is.
            if not weight > 0.0 or weight == leaf.known[2 * self.width + c]:
                continue
            i = c * leaf.n_features
            for f in range(leaf.n_features):
                if leaf.places[leaf.n_features + f] < 0:
                    self._read_gaussian(leaf, leaf.observed[f], i, label)
                elif not self._read_categories(leaf, f, c, label):
                    return False
                i += 1
            leaf.known[2 * self.width + c] = weight
        return True

    @cython.cfunc
    def _read_gaussian(self, leaf: ClassLeaf, splitter: Any, i: cython.Py_ssize_t, label: Any) -> cython.bint:
        n: cython.double
        variance: cython.double
        g: cython.Py_ssize_t = 3 * (self.width + i)
        estimate: Any = leaf.estimates[i]
        if estimate is None:
            gaussian: Any = splitter._att_dist_per_class.get(label)
            if gaussian is None:
                return True
            estimate = leaf.estimates[i] = gaussian._var
        mean: Any = estimate.mean
        n = mean.n
        leaf.known[g + 1] = 0.0
        if n > 1.0:
            variance = estimate._S / (n - 1.0)
            if variance > 0.0:
                leaf.known[g] = mean._mean
                leaf.known[g + 1] = -2.0 * variance
                leaf.known[g + 2] = 0.5 * log(variance)
        return True

    def _read_categories(self, leaf: ClassLeaf, f: int, c: int, label: Any) -> bool:
        counts: Any = leaf.observed[f]._att_dist_per_class.get(label) or {}
        n = leaf.n_features
        i, column, width = c * n + f, leaf.places[f], leaf.places[2 * n + f]
        codes: Any = leaf.estimates[i]
        if codes is None:
            codes = leaf.estimates[i] = []
        if len(codes) != len(counts):
            codes += [int(self.schema.code(column, value)) for value in list(counts)[len(codes) :]]
            if max(codes) >= width:
                if max(codes) >= _MOST_CATEGORIES:
                    raise UnknownStateError(f"a leaf has seen more than {_MOST_CATEGORIES} categories of a feature")
                return False
        total: float = sum(counts.values())
        start = leaf.places[n + f] + c * width
        for code, count in zip(codes, counts.values()):  # noqa: B905 - Cython knows no strictness
            share: float = count / total if total != 0.0 else 0.0
            leaf.logs[start + code] = math.log(share) if share > 0.0 else 0.0
        return True


# ---------------------------------------------------------------- regressors


@cython.cclass
class NumberTrees(Trees):
    """Evaluates regression trees: the number that each gives."""

    V: cython.double[:, ::1]
    whole: Any
    shown: Any
    """The room of the numbers as an array, and the part of it that has the last ones."""

    def __init__(self, model: Any, schema: Any, is_ensemble: bool) -> None:
        Trees.__init__(self, model, schema, is_ensemble)
        self.width, self.whole, self.shown = 1, None, None

    def _check(self, live: Any) -> None:
        if type(live) not in REGRESSORS:
            raise UnknownStateError(f"the ensemble has a member that is no Hoeffding tree: {type(live).__qualname__}")
        if live._leaf_prediction != "mean" and type(live.leaf_model) is not LinearRegression:
            raise UnknownStateError(f"leaves whose model is {type(live.leaf_model).__qualname__}")

    def _new_leaf(self, live: Any) -> Node:
        rule = NUMBER_LEAVES.get(type(live))
        return Node(live, self.n_nodes) if rule is None else NumberLeaf(live, self.n_nodes, rule)

    def predict(self, X: cython.double[:, ::1]) -> Any:
        """Return trees' numbers (rows x trees); the next call overwrites them.

        Raises
        ------
        UnknownStateError
            The model is in a state that is not known here.
        """
        t: cython.Py_ssize_t
        r: cython.Py_ssize_t
        one: Tree
        if not cython.compiled:
            X = memoryview(X)  # type: ignore[assignment]  # gives floats of Python
        trees: list[Any] = self._live_trees()
        self._refresh_trees(trees)
        if not self.trees:
            return np.zeros((X.shape[0], 0))
        self._begin(X)
        self._make_room()
        for t in range(len(self.trees)):
            one = self.trees[t]
            if self._refresh_root(one):
                self._vote_for_all_rows(one)
                for r in range(self.n):
                    self.V[r, t] = self.votes[r, 0]
            else:
                for r in range(self.n):
                    self.V[r, t] = 0.0
        return self.shown

    @cython.cfunc
    def _make_room(self) -> cython.bint:
        if self.whole is None or self.whole.shape != (self.room, len(self.trees)):
            self.V = floats(self.room, len(self.trees))
            self.whole, self.shown = np.asarray(self.V), None
        if self.shown is None or len(self.shown) != self.n:
            self.shown = self.whole[: self.n]
        return True

    @cython.cfunc
    def _add_vote_of_leaf(self, node: Node, r: cython.Py_ssize_t) -> cython.bint:
        """See `Trees`."""
        j: cython.Py_ssize_t
        leaf: NumberLeaf = node
        total: cython.double = 0.0
        size: cython.double = fabs(leaf.base)
        term: cython.double
        if leaf.is_linear:
            for j in range(self.d):
                term = leaf.weights[j] * self.X[r, j]
                if self.X[r, j] == self.X[r, j]:
                    total += term
                    size += fabs(term)
            total += leaf.base
            # River adds up in the order of the row.
            if size * (self.d + 1) * _TWO_UNITS > 1e-12 * max(1.0, fabs(total)) or size == _INFINITE:
                raise UnknownStateError("so much cancels in a linear leaf that the order in which it adds up shows")
            self.votes[r, 0] += total
        else:
            self.votes[r, 0] += leaf.base
        return True

    @cython.cfunc
    def _finish(self, one: Tree, r: cython.Py_ssize_t, n_leaves: cython.Py_ssize_t) -> cython.bint:
        """See `Trees`."""
        n: cython.double = n_leaves
        self.votes[r, 0] /= n
        return True

    @cython.cfunc
    def _refresh_leaf(self, node: Node) -> cython.bint:
        """See `Trees`."""
        leaf: NumberLeaf = node
        mean: Any = leaf.live.stats.mean
        if mean.n is not leaf.seen:
            leaf.seen = None
            self._read(leaf, mean)
            leaf.seen = mean.n
        return True

    def _read(self, leaf: NumberLeaf, mean: Any) -> None:
        live = leaf.live
        leaf.is_linear = leaf.rule == _MODEL or (leaf.rule == _EITHER and not live._fmse_mean < live._fmse_model)
        leaf.columns_read = 0
        if not leaf.is_linear:
            leaf.base = mean._mean
            return
        model = live._leaf_model
        if type(model) is not LinearRegression or type(model.loss) is not Squared:
            raise UnknownStateError(f"a leaf has a model of type {type(model).__qualname__}, or another loss")
        if self.schema.codes:
            raise UnknownStateError("a leaf has a linear model, which reads no categories")
        leaf.base, weights = model.intercept, model._weights.to_dict()
        leaf.weights = floats(max(1, self.d))
        for j, feature in enumerate(self.schema.features):
            leaf.weights[j] = weights.get(feature, 0.0)
            if leaf.weights[j] != 0.0:
                leaf.columns_read |= self.bits[j]


def write_medians(V: cython.double[:, ::1], out: cython.double[:, ::1]) -> None:
    """Write each row's median, NaN if a value is, to `out`, shape (rows, 1)."""
    r: cython.Py_ssize_t
    t: cython.Py_ssize_t
    i: cython.Py_ssize_t
    v: cython.double
    nothing: cython.bint
    n: cython.Py_ssize_t = V.shape[1]
    half: cython.Py_ssize_t = n >> 1
    ordered: cython.double[::1] = floats(max(1, n))
    for r in range(V.shape[0]):
        nothing = False
        for t in range(n):
            v = V[r, t]
            nothing = nothing or v != v
            i = t
            while i > 0 and ordered[i - 1] > v:
                ordered[i] = ordered[i - 1]
                i -= 1
            ordered[i] = v
        if nothing:
            out[r, 0] = _INFINITE - _INFINITE
        elif n & 1:
            out[r, 0] = ordered[half]
        else:
            out[r, 0] = (ordered[half - 1] + ordered[half]) / 2.0
