"""The shape of trees as flat arrays, which are rewritten where the live tree has changed on the way of a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...evaluation.evaluator import NotCoveredError
from ...evaluation.schema import NotEncodableError, Schema
from ...typing import Array
from .arrays import enlarged
from .branches import KINDS, STEADY
from .routes import LEAF, NOMINAL, NOMINAL_MULTIWAY, NUMERIC, NUMERIC_MULTIWAY, route

_NO_CHILDREN: list[Any] = []
_NAN = math.nan


class LeafStore(Protocol):
    """Keeps the numbers of leaves, each in its slot."""

    def put(self, leaf: Any, tree: Any) -> int:
        """Return a slot for the leaf; None stands for the leaf of a tree that has not learnt."""

    def drop(self, slot: int) -> None:
        """Forget the leaf, which is gone."""

    def gained(self, slot: int, weight: float) -> bool:
        """Return whether the leaf has learnt this weight since it was read, and nothing else has happened to it."""


class Structure:
    """Keeps the nodes of some trees in arrays.

    Each node has an index, which it keeps until it is dropped. Whether a branch is still what was written is seen from
    its list of children, which River changes in place. All nodes on the way of a row are compared with the live ones,
    once in an epoch of their tree. A new one begins when it cannot be excluded that more of the tree has changed than
    the leaf that the first row of the last call reached. It can where that leaf has learnt just the weight that the
    tree has learnt since, and nothing else has happened to it: most often, that row is learnt next. (Where a branch
    learns, too, or an observation has several leaves, each call is an epoch.)

    Parameters
    ----------
    schema
        The schema of the rows.
    leaves
        The store that is told which leaves come and go.
    adaptive
        Whether some of the trees have alternate trees.
    """

    def __init__(self, schema: Schema, leaves: LeafStore, adaptive: bool) -> None:
        self.schema = schema
        self.leaves = leaves
        self.adaptive = adaptive
        self.trees: list[Any] = []
        self._root_nodes: list[Any] = []
        self._roots: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._epochs: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._epoch = 0
        self._firsts: list[int] = []
        """The leaf that the first row of the last call reached, by tree."""
        self._steady: list[bool] = []
        self._learnt: list[float] = []
        self._sizes: list[float] = []
        self._inactive: list[int] = []
        """The weight that a tree has learnt, an estimate that River makes whenever it manages memory, and the number of
        inactive leaves, by tree."""
        self._nodes: list[Any] = []
        self._owners: list[Any] = []
        self._live: list[list[Any]] = []
        self._seen: list[list[Any]] = []
        self._children: list[list[int]] = []
        self._alternates: list[Any] = []
        self._slots: list[int] = []
        """The slot of each leaf, by node."""
        self._places: list[tuple[list[Any], int]] = []
        """The live list of children that holds a node, and its place there, by node."""
        self._free: list[int] = []
        self._detoured: list[int] = []
        self._used = 0
        """Entries of the two tables of the multiway splits that are taken; never given back."""
        self.fields = np.zeros((0, 6), np.int32)
        self.thresholds = np.zeros(0)
        self.detours = np.zeros(0, np.int64)
        self._allot(256)
        self.keys = np.zeros(64)
        self.targets = np.zeros(64, np.int64)
        self.ends = np.zeros((0, 0), np.int64)
        self.extras = np.zeros(64, np.int64)
        self.extra_at = np.zeros(0, np.int64)

    def _allot(self, n: int) -> None:
        self.fields = enlarged(self.fields, (n, 6), -1)
        self.thresholds = enlarged(self.thresholds, (n,))
        self.detours = enlarged(self.detours, (n,), -1)
        self._branches, self._reached, self._lost = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._path = np.zeros((n, 2), np.int64)

    # ------------------------------------------------------------ nodes come and go

    def _take(self) -> int:
        if self._free:
            return self._free.pop()
        k = len(self._nodes)
        self._nodes.append(None)
        self._owners.append(None)
        self._live.append(_NO_CHILDREN)
        self._seen.append(_NO_CHILDREN)
        self._children.append([])
        self._alternates.append(None)
        self._slots.append(-1)
        self._places.append((_NO_CHILDREN, 0))
        if k == len(self.fields):
            self._allot(2 * k)
        return k

    def _put(self, node: Any, tree: Any, place: tuple[list[Any], int] = (_NO_CHILDREN, 0)) -> int:
        first = self._take()
        todo = [(first, node, place)]
        while todo:
            k, node, place = todo.pop()
            self._nodes[k], self._owners[k], self._places[k] = node, tree, place
            self.detours[k] = -1
            if type(node) not in KINDS:
                # A call that is refused half-way must not find a slot that is not its own.
                self._slots[k] = slot = self.leaves.put(node, tree)
                self.fields[k] = (LEAF, 0, slot, 0, -1, -1)
                continue
            self.fields[k, 4:] = -1
            self._live[k] = children = node.children
            self._seen[k] = list(children)
            self._children[k] = [self._take() for _ in children]
            todo += [
                (i, child, (children, n)) for n, (i, child) in enumerate(zip(self._children[k], children, strict=True))
            ]
            if self.adaptive and (alternate := getattr(node, "_alternate_tree", None)) is not None:
                self._alternates[k] = alternate
                self.fields[k, 4] = i = self._take()
                todo.append((i, alternate, (_NO_CHILDREN, 0)))
            self._write(k)
        return first

    def _drop(self, k: int) -> None:
        todo = [k]
        while todo:
            k = todo.pop()
            todo += self._children[k]
            if self._alternates[k] is not None:
                todo.append(int(self.fields[k, 4]))
            if self._slots[k] >= 0:
                self.leaves.drop(self._slots[k])
                self._slots[k] = -1
            self._nodes[k] = self._owners[k] = self._alternates[k] = None
            self._live[k] = self._seen[k] = _NO_CHILDREN
            self._places[k] = (_NO_CHILDREN, 0)
            self._children[k] = []
            self._free.append(k)

    def _repair(self, k: int) -> None:
        """Let a branch follow its live children and its live alternate tree."""
        tree, ids, old, new = self._owners[k], self._children[k], self._seen[k], list(self._live[k])
        for i in range(len(old)):
            if i >= len(new) or old[i] is not new[i]:
                self._drop(ids[i])
                if i < len(new):
                    ids[i] = self._put(new[i], tree, (self._live[k], i))
        del ids[len(new) :]
        ids += [self._put(new[i], tree, (self._live[k], i)) for i in range(len(old), len(new))]
        self._seen[k] = new
        alternate = getattr(self._nodes[k], "_alternate_tree", None) if self.adaptive else None
        if alternate is not self._alternates[k]:
            if self._alternates[k] is not None:
                self._drop(int(self.fields[k, 4]))
            self._alternates[k] = alternate
            self.fields[k, 4] = -1 if alternate is None else self._put(alternate, tree)
        self._write(k)

    def _write(self, k: int) -> None:
        node, ids = self._nodes[k], self._children[k]
        kind = KINDS[type(node)]
        column = self.schema.position.get(node.feature)
        if column is None:
            raise NotCoveredError(f"a tree splits by {node.feature!r}, which the rows do not have")
        if (column in self.schema.codes) != (kind in (NOMINAL, NOMINAL_MULTIWAY)):
            raise NotCoveredError(
                f"a tree and the rows read {node.feature!r} differently: as categories and as numbers"
            )
        if kind == NUMERIC:
            self._set(k, kind, column, ids[0], ids[1], node.threshold)
        elif kind == NOMINAL:
            self._set(k, kind, column, ids[0], ids[1], self._code(column, node.value))
        else:
            n = len(ids)
            values = list(node._mapping)
            if kind == NOMINAL_MULTIWAY:
                values = [self._code(column, value) for value in values]
            start = self._segment(n)
            self.keys[start : start + n] = values
            self.targets[start : start + n] = [ids[i] for i in node._mapping.values()]
            self._set(k, kind, column, start, n, node.radius if kind == NUMERIC_MULTIWAY else 0.0)

    def _set(self, k: int, kind: int, column: int, left: int, right: int, threshold: float) -> None:
        self.fields[k, :4] = (kind, column, left, right)
        self.thresholds[k] = threshold

    def _code(self, column: int, value: Any) -> float:
        try:
            return self.schema.code(column, value)
        except NotEncodableError as reason:
            raise NotCoveredError(f"a split of feature {self.schema.features[column]!r}: {reason}") from None

    def _segment(self, n: int) -> int:
        start = self._used
        self._used += n
        if self._used > len(self.keys):
            keys, targets = np.zeros(2 * self._used), np.zeros(2 * self._used, np.int64)
            keys[:start], targets[:start] = self.keys[:start], self.targets[:start]
            self.keys, self.targets = keys, targets
        return start

    @property
    def worn(self) -> bool:
        """Whether it is time for a new structure: what multiway splits once took is not given back."""
        return self._used > 100_000 and self._used > 100_000 + 4 * sum(map(len, self._children))

    # ------------------------------------------------------------ rows

    def follow(self, X: Array, trees: Sequence[Any]) -> list[int]:
        """Send rows down the live trees.

        `ends`, `extras` and `extra_at` then say which leaves each row has reached: see `routes.route`.

        Returns
        -------
        list of int
            Slots of leaves that rows have reached and that may have changed since they were last named here.

        Raises
        ------
        NotCoveredError
            A split, leaf or tree is of an unknown kind, or does not fit the rows. Nothing of it is to be used then.
        """
        self._graft(trees)
        self._look(trees)
        if self.ends.shape != (len(trees), len(X)):
            self.ends = np.zeros((len(trees), len(X)), np.int64)
            self.extra_at = np.zeros(len(trees) * len(X) + 1, np.int64)
        for k in self._detoured:
            self.detours[k] = -1
        self._detoured = []
        live, seen, alternates, nodes = self._live, self._seen, self._alternates, self._nodes
        reached: list[int] = []
        while True:
            n_branches, n_leaves, n_lost, n_extras, overflow = route(
                X, self._roots, self._epochs, self.fields, self.thresholds, self.keys, self.targets, self.detours,
                self._branches, self._reached, self._lost, self._path, self.ends, self.extras, self.extra_at,
            )  # fmt: skip
            reached += self._reached[:n_leaves].tolist()
            visited = self._branches[:n_branches].tolist()
            changed = [k for k in visited if live[k] != seen[k]]
            if self.adaptive:
                changed += [k for k in visited if getattr(nodes[k], "_alternate_tree", None) is not alternates[k]]
            lost = self._lost[:n_lost].tolist()
            self._detoured += lost
            if changed:
                for k in lost:
                    self.detours[k] = -1
                for k in changed:
                    # An earlier repair may have dropped it, and given its index to a leaf.
                    if live[k] is not _NO_CHILDREN:
                        self._repair(k)
            elif lost:
                for k in lost:
                    self.detours[k] = self._children[k][nodes[k].most_common_path()[0]]
            elif n_extras > len(self.extras):
                self.extras = np.zeros(2 * n_extras, np.int64)
            elif overflow:
                raise NotCoveredError("a number cannot be divided by the radius of a split")
            else:
                self._firsts = self.ends[:, 0].tolist()
                # What has been dropped meanwhile is no leaf any more, or another one.
                slots = self._slots
                return [slots[k] for k in dict.fromkeys(reached) if slots[k] >= 0]

    def _graft(self, trees: Sequence[Any]) -> None:
        """Take in trees that are new and roots that are others."""
        roots = [tree._root for tree in trees]
        if roots == self._root_nodes and trees == self.trees:
            return
        T = len(trees)
        if len(self.trees) != T:
            for k in self._roots[self._roots >= 0].tolist():
                self._drop(k)
            self._roots, self._epochs = np.full(T, -1, np.int64), np.zeros(T, np.int64)
            self._root_nodes, self.trees = [None] * T, [None] * T
            self._steady, self._learnt, self._sizes, self._inactive = [False] * T, [_NAN] * T, [_NAN] * T, [0] * T
            self._firsts = [-1] * T
        for t, (tree, root) in enumerate(zip(trees, roots, strict=True)):
            if tree is not self.trees[t] or root is not self._root_nodes[t]:
                if self._roots[t] >= 0:
                    self._drop(int(self._roots[t]))
                self._roots[t] = self._put(root, tree)
                self.trees[t], self._root_nodes[t] = tree, root
                self._steady[t] = type(tree) in STEADY
                self._learnt[t] = _NAN

    @property
    def ways(self) -> tuple[Any, ...]:
        """Arrays by which a row is sent down: roots and epochs by tree; nodes, thresholds, keys and targets of splits.

        A node that has another epoch than its tree is to be compared with the live one first: see `follow`.
        """
        return self._roots, self._epochs, self.fields, self.thresholds, self.keys, self.targets

    def forget(self) -> None:
        """Let all trees begin a new epoch."""
        self._learnt = [_NAN] * len(self._learnt)

    def _look(self, trees: Sequence[Any]) -> None:
        """Begin a new epoch of those trees of which more may have changed than a known leaf."""
        firsts, learnt, places, gained = self._firsts, self._learnt, self._places, self.leaves.gained
        for t, tree in enumerate(trees):
            weight, before = tree._train_weight_seen_by_model, learnt[t]
            # Each time that a tree learns, or estimates its size, it makes another number.
            if weight is before:
                continue
            size, inactive = tree._size_estimate_overhead_fraction, tree._n_inactive_leaves
            k = firsts[t]
            if self._steady[t] and weight > before and size is self._sizes[t] and inactive == self._inactive[t]:
                children, i = places[k]
                if (children is _NO_CHILDREN or children[i] is self._nodes[k]) and gained(
                    self._slots[k], weight - before
                ):
                    self.fields[k, 5] = -1
                    learnt[t] = weight
                    continue
            self._epoch += 1
            self._epochs[t] = self._epoch
            learnt[t], self._sizes[t], self._inactive[t] = weight, size, inactive
