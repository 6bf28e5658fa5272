"""The shape of trees as flat arrays, which are rewritten where the live tree has changed on the way of a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ...evaluation.evaluator import NotCoveredError
from ...evaluation.schema import NotEncodableError, Schema
from .arrays import enlarged
from .branches import ADAPTIVE, KINDS, STEADY
from .entries import HAS_DETOURS, known_of
from .learning import ONE_LEAF, OTHER_TREE, WHOLE_WAY
from .leaves.store import LeafStore
from .routes import (
    BRANCHES,
    COUNTS,
    DETOUR,
    EXTRAS,
    LEAF,
    LEAVES,
    LOST,
    MARGIN,
    NOMINAL,
    NOMINAL_MULTIWAY,
    NUMERIC,
    NUMERIC_MULTIWAY,
    OVERFLOW,
    ROOM,
)

_NO_CHILDREN: list[Any] = []
_NO_PLACE = (_NO_CHILDREN, 0, -1)
_NAN = math.nan
_ROOT = attrgetter("_root")
_MORE = 128
"""So many nodes at a time are made for compiled code that takes in splits."""
_ROUNDING = 1e-6
"""A share of a weight that is larger than what the order of a sum makes of it."""
_LASTING = 64
"""So many times at most an epoch goes on."""
_LAST_EPOCH = 2**31 - 1
"""The largest number that a node can hold as its epoch; a bag of trees of which all learn reaches it within weeks."""


class Structure:
    """Keeps the nodes of some trees in arrays.

    Each node has an index, which it keeps until it is dropped. Whether a branch is still what was written is seen from
    its list of children, which River changes in place. All nodes on the way of a row are compared with the live ones,
    once in an epoch of their tree. A new one begins when it cannot be excluded that more of the tree has changed than
    the leaf that the first row of the last call reached. It can where that leaf has learnt just the weight that the
    tree has learnt since, and nothing else has happened to it, but that it may have been split: most often, that row is
    learnt next. (Where a branch learns, too, each call is an epoch, unless the nodes of the last one are all as they
    were. Hoeffding adaptive trees count observations at branches and leaves: where root and leaf have counted one, it
    went this way, and where there are no alternate trees on it, nothing else of the tree can have changed.)

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
        self.table: npt.NDArray[np.int64] = np.zeros((0, 7), np.int64)
        """By tree: root, epoch, whether it weighs its leaves by their errors, the leaf that the first row of the last
        call reached, its slot, the kind of the tree, see `learning.ONE_LEAF`, and room for the number of one."""
        self._epoch = self._lasted = 0
        self._errors: list[Any] = []
        self._counted: list[float] = []
        """The error of the root of a Hoeffding adaptive tree, and how many observations it was made of, by tree."""
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
        self._places: list[tuple[list[Any], int, int]] = []
        """The live list of children that holds a node, its place there, and the index of its parent, by node."""
        self._free: list[int] = []
        self._has_detours = False
        self._used = 0
        """Entries of `targets` that multiway splits have taken; they are never given back."""
        self._reached: list[int] = []
        self._met: tuple[list[int], list[int]] | None = None
        """What belongs to the epoch of a single tree that learns on the whole way, branches and slots of leaves; None
        where that is open.
        """
        self.fields = np.zeros((0, 16), np.int32)
        self.targets = np.zeros((64, 2))
        self._allot(256)
        self.extras = np.zeros(64, np.int64)
        self._point()

    def _point(self) -> None:
        """Note where the lists are, for compiled code."""
        of_trees = self.trees, self._root_nodes, self._learnt, self._sizes, self._inactive, self._errors, self._counted
        of_nodes = (
            self._places, self._nodes, self._alternates, self._owners, self._live, self._seen, self._children,
            self._slots, self._free,
        )  # fmt: skip
        held = *of_trees, *of_nodes, self.leaves.records, *self.leaves.lists, self.schema.codes, self.schema.categories
        self.known = known_of(held, self.fields, self.targets)
        self.known[HAS_DETOURS] = self._has_detours

    def _allot(self, n: int) -> None:
        # A node is 64 bytes, which are fetched at once.
        self.fields = enlarged(self.fields, (n, 16), -1)
        self.thresholds = self.fields.view(np.float64)
        self.listed = np.zeros((6, n), np.int64)

    # ------------------------------------------------------------ nodes come and go

    def _take(self) -> int:
        return self._free.pop() if self._free else self._new()

    def _new(self) -> int:
        """Return the index of one more node."""
        k = len(self._nodes)
        self._nodes.append(None)
        self._owners.append(None)
        self._live.append(_NO_CHILDREN)
        self._seen.append(_NO_CHILDREN)
        self._children.append([])
        self._alternates.append(None)
        self._slots.append(-1)
        self._places.append(_NO_PLACE)
        if k == len(self.fields):
            self._allot(2 * k)
            self._point()
        return k

    def _put(self, node: Any, tree: Any, place: tuple[list[Any], int, int] = _NO_PLACE) -> int:
        first = self._take()
        todo = [(first, node, place)]
        while todo:
            k, node, place = todo.pop()
            self._nodes[k], self._owners[k], self._places[k] = node, tree, place
            if type(node) not in KINDS:
                # A call that is refused half-way must not find a slot that is not its own.
                siblings, n, parent = place
                self._slots[k] = slot = self.leaves.put(node, tree, None if parent < 0 else siblings, n)
                self.fields[k, :7] = (LEAF, 0, slot, 0, -1, -1, -1)
                continue
            self.fields[k, 4:7] = -1
            self._live[k] = children = node.children
            self._seen[k] = list(children)
            self._children[k] = [self._take() for _ in children]
            todo += [
                (i, child, (children, n, k))
                for n, (i, child) in enumerate(zip(self._children[k], children, strict=True))
            ]
            if self.adaptive and (alternate := getattr(node, "_alternate_tree", None)) is not None:
                self._alternates[k] = alternate
                self.fields[k, 4] = i = self._take()
                todo.append((i, alternate, _NO_PLACE))
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
            self._places[k] = _NO_PLACE
            self._children[k] = []
            self._free.append(k)

    def _repair(self, k: int) -> None:
        """Let a branch follow its live children and its live alternate tree."""
        tree, ids, old, new = self._owners[k], self._children[k], self._seen[k], list(self._live[k])
        self.fields[k, DETOUR] = -1
        for i in range(len(old)):
            if i >= len(new) or old[i] is not new[i]:
                self._drop(ids[i])
                if i < len(new):
                    ids[i] = self._put(new[i], tree, (self._live[k], i, k))
        del ids[len(new) :]
        ids += [self._put(new[i], tree, (self._live[k], i, k)) for i in range(len(old), len(new))]
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
            # All rows take the detour, which needs to know nothing of the split.
            self._set(k, NUMERIC, -1, ids[0], ids[-1], 0.0)
            return
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
            room = self.fields[k, ROOM] = 2 * n + 16
            start = self._segment(room)
            self.targets[start : start + n, 0] = values
            self.targets[start : start + n, 1] = [ids[i] for i in node._mapping.values()]
            self._set(k, kind, column, start, n, node.radius if kind == NUMERIC_MULTIWAY else 0.0)

    def _set(self, k: int, kind: int, column: int, left: int, right: int, threshold: float) -> None:
        self.fields[k, :4] = (kind, column, left, right)
        self.thresholds[k, 7] = threshold

    def _code(self, column: int, value: Any) -> float:
        try:
            return self.schema.code(column, value)
        except NotEncodableError as reason:
            raise NotCoveredError(f"a split of feature {self.schema.features[column]!r}: {reason}") from None

    def _segment(self, n: int) -> int:
        start = self._used
        self._used += n
        if self._used > len(self.targets):
            self.targets = enlarged(self.targets, (2 * self._used, 2))
            self._point()
        return start

    @property
    def is_settled(self) -> bool:
        """Whether `begin` would do no more than take in what trees have learnt."""
        return not (self._reached or self.worn)

    @property
    def worn(self) -> bool:
        """Whether it is time for a new structure: what multiway splits once took is not given back."""
        return self._used > 100_000 and self._used > 100_000 + 4 * sum(map(len, self._children))

    # ------------------------------------------------------------ rows

    def begin(self, trees: Sequence[Any], adaptive: Sequence[bool]) -> None:
        """Take in what can have changed of the trees, before rows are sent down them.

        Raises
        ------
        NotCoveredError
            A split, leaf or tree is of an unknown kind, or does not fit the rows. Nothing of it is to be used then.
        """
        left: Sequence[int] | None = self.leaves.take_in_all(trees, self)
        if left is None:
            self._forget_detours()
            self._graft(trees, adaptive)
            left = range(len(trees))
        if left:
            self._look(trees, left)
            if len(self._free) < 2 * len(trees):  # compiled code has none made
                self._free += [self._new() for _ in range(_MORE)]
        self._reached = []

    def amend(self) -> list[int] | None:
        """Look at what rows have met that was not compared with the live trees.

        Returns
        -------
        list of int or None
            Slots of leaves that rows have reached and that may have changed since they were last named here. None where
            their way was not what it is now, and rows have to be sent again before anything can be said.

        Raises
        ------
        NotCoveredError
            As for `begin`.
        """
        live, seen, alternates, nodes = self._live, self._seen, self._alternates, self._nodes
        listed, counts = self.listed, self.listed[COUNTS, :5].tolist()
        self._reached += listed[LEAVES, : counts[LEAVES]].tolist()
        visited = listed[BRANCHES, : counts[BRANCHES]].tolist()
        changed = [k for k in visited if live[k] != seen[k]]
        if self.adaptive:
            changed += [k for k in visited if getattr(nodes[k], "_alternate_tree", None) is not alternates[k]]
        lost = listed[LOST, : counts[LOST]].tolist()
        if lost:
            self.known[HAS_DETOURS] = self._has_detours = True
        if self._met is not None:
            self._met = None if changed else self._met_with(visited, listed[LEAVES, : counts[LEAVES]].tolist())
        if changed:
            if lost:
                self.fields[lost, DETOUR] = -1
            for k in changed:
                # An earlier repair may have dropped it, and given its index to a leaf.
                if live[k] is not _NO_CHILDREN:
                    self._repair(k)
        elif lost:
            for k in lost:
                self._ask_for_detour(k)
        elif counts[EXTRAS] > len(self.extras):
            self.extras = np.zeros(2 * counts[EXTRAS], np.int64)
        elif counts[OVERFLOW]:
            raise NotCoveredError("a number cannot be divided by the radius of a split")
        else:
            # What has been dropped meanwhile is no leaf any more, or another one.
            slots, reached = self._slots, self._reached
            self._reached = []
            return [slots[k] for k in dict.fromkeys(reached) if slots[k] >= 0]
        return None

    def _ask_for_detour(self, k: int) -> None:
        """Note which child River takes where a row has none, and how much others may learn before it takes another."""
        weights = [child.total_weight for child in self._live[k]]
        i = weights.index(max(weights))  # the first of these, as `most_common_path` of each kind of branch has it
        largest = weights.pop(i)
        self.fields[k, DETOUR] = self._children[k][i]
        self.thresholds[k, MARGIN] = largest - max(weights, default=0.0) - _ROUNDING * largest

    def _forget_detours(self) -> None:
        """Have all detours asked for again."""
        if self._has_detours:
            self.fields[:, DETOUR] = -1
            self.known[HAS_DETOURS] = self._has_detours = False

    def _forget_detours_above(self, k: int) -> None:
        """Have those asked for again that the weight of a node takes part in."""
        while self._has_detours and (k := self._places[k][2]) >= 0:
            self.fields[k, DETOUR] = -1

    def _graft(self, trees: Sequence[Any], adaptive: Sequence[bool]) -> None:
        """Take in trees that are new and roots that are others."""
        roots = [*map(_ROOT, trees)]
        if roots == self._root_nodes and trees == self.trees:
            return
        T = len(trees)
        if len(self.trees) != T:
            for k in self.table[:, 0].tolist():
                self._drop(k)
            self.table = np.full((T, 7), -1, np.int64)
            self._root_nodes, self.trees = [None] * T, [None] * T
            self._learnt, self._sizes, self._inactive = [_NAN] * T, [_NAN] * T, [0] * T
            self._errors, self._counted = [None] * T, [0.0] * T
            self._point()
        for t, (tree, root) in enumerate(zip(trees, roots, strict=True)):
            if tree is not self.trees[t] or root is not self._root_nodes[t]:
                self._met = None
                if self.table[t, 0] >= 0:
                    self._drop(int(self.table[t, 0]))
                kind = ONE_LEAF if type(tree) in STEADY else WHOLE_WAY if type(tree) in ADAPTIVE else OTHER_TREE
                self.table[t] = (self._put(root, tree), 0, adaptive[t], -1, -1, kind, -1)
                self.trees[t], self._root_nodes[t] = tree, root
                self._learnt[t], self._errors[t], self._counted[t] = _NAN, None, 0.0

    def forget(self) -> None:
        """Let all trees begin a new epoch."""
        self._learnt[:] = [_NAN] * len(self._learnt)

    def _look(self, trees: Sequence[Any], those: Sequence[int]) -> None:
        """Begin a new epoch of those trees of which more may have changed than a known leaf."""
        learnt, records, take_in, kinds = self._learnt, self.leaves.records, self.leaves.take_in, list[int]()
        sizes, sleeping = self._sizes, self._inactive
        for t in those:
            tree = trees[t]
            weight, before = tree._train_weight_seen_by_model, learnt[t]
            # Each time that a tree learns, or estimates its size, it makes another number.
            if weight is before:
                continue
            if not kinds:
                ends, kinds = self.table[:, 4].tolist(), self.table[:, 5].tolist()
            size, inactive = tree._size_estimate_overhead_fraction, tree._n_inactive_leaves
            if size is sizes[t] and inactive == sleeping[t] and before == before:
                slot = ends[t]
                if kinds[t] == ONE_LEAF:
                    record = records[slot]
                    gone = record.siblings[record.place] is not record.leaf
                    # Where leaves sleep, a split may wake others. Where none does, one that was put to sleep, since
                    # no split would be worth it, has been woken at once, and is the only one.
                    is_one = weight > before and not (gone and inactive)
                    if is_one and take_in(slot, weight - before, gone=gone, renewed=not inactive):
                        self._forget_detours_above(int(self.table[t, 3]))
                        if gone:
                            self._replace(t)
                        learnt[t] = weight
                        continue
                elif kinds[t] == WHOLE_WAY and self._has_passed(t, tree) and take_in(slot, None, gone=False):
                    self._forget_detours_above(int(self.table[t, 3]))
                    learnt[t] = weight
                    continue
            self.leaves.follow_labels(tree)
            learnt[t], sizes[t], sleeping[t] = weight, size, inactive
            if self._met is None or not self._are_as_they_were(self._met):
                self.table[t, 1] = self._next_epoch()
                self._met = None if len(trees) > 1 or kinds[t] == ONE_LEAF else ([], [])
            else:
                self._forget_detours()

    def _replace(self, t: int) -> None:
        """Take in what has become of the leaf that the first row of the last call reached."""
        _, i, parent = self._places[self.table[t, 3]]
        self._repair(parent)
        self._read(self._children[parent][i], int(self.table[t, 1]))

    def _has_passed(self, t: int, tree: Any) -> bool:
        """Return whether one observation has come to a Hoeffding adaptive tree, which has no alternate tree on its way.

        The way is that of the first row of the last call: whether it was this one its leaf knows.
        """
        before, n = self._errors[t], self._counted[t]
        error = tree._root._mean_error
        self._errors[t], self._counted[t] = error, error.n
        # Where it is another one, or counts anew, the error has fallen.
        if error is not before or error.n != n + 1.0:
            return False
        places, nodes, alternates = self._places, self._nodes, self._alternates
        k = int(self.table[t, 3])
        while True:
            children, i, parent = places[k]
            if parent < 0:
                return bool(k == self.table[t, 0])
            if children[i] is not nodes[k]:
                return False
            k = parent
            if alternates[k] is not None or nodes[k]._alternate_tree is not None:
                return False

    def _next_epoch(self) -> int:
        """Return a number that no node has as its epoch."""
        if self._epoch == _LAST_EPOCH:
            self.fields[:, 5] = -1  # so that every node is compared with the live one again
            self._epoch = 0
        self._epoch += 1
        return self._epoch

    def _met_with(self, branches: list[int], leaves: list[int]) -> tuple[list[int], list[int]]:
        """Return what belongs to the epoch, with these nodes; an alternate tree's root is named among the leaves."""
        assert self._met is not None
        slots = self._slots
        return (
            [*self._met[0], *branches, *(k for k in leaves if slots[k] < 0)],
            [*self._met[1], *(slots[k] for k in leaves if slots[k] >= 0)],
        )

    def _are_as_they_were(self, met: tuple[list[int], list[int]]) -> bool:
        """Return whether the nodes of the last epoch can be in the next one; if so, their leaves are read again.

        Then rows need not be sent a second time. Every so often the answer is no, so that nodes are left out that rows
        no longer meet.
        """
        live, seen, alternates, nodes = self._live, self._seen, self._alternates, self._nodes
        branches, slots = met
        self._lasted += 1
        for k in branches:
            if live[k] != seen[k]:
                return False
            if self.adaptive and getattr(nodes[k], "_alternate_tree", None) is not alternates[k]:
                return False
        if self._lasted % _LASTING == 0:
            return False
        self.leaves.refresh(slots)
        return True

    def _read(self, k: int, epoch: int) -> None:
        """Read a new part of a tree, which is of this epoch."""
        todo, slots = [k], []
        while todo:
            k = todo.pop()
            self.fields[k, 5] = epoch
            todo += self._children[k]
            if self._slots[k] >= 0:
                slots.append(self._slots[k])
        self.leaves.refresh(slots)
