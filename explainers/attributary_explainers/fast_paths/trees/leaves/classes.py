"""Leaves of classifiers as arrays, which are read again when a row reaches a leaf that has changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from ....evaluation.evaluator import NotCoveredError
from ....evaluation.schema import NotEncodableError, Schema
from ....typing import Array
from ..arrays import Numbers, added, aligned, enlarged
from ..learning import room_for, take_in_all
from .records import (
    ADAPTIVE,
    BETTER,
    MAJORITY,
    NO_GAUSSIAN,
    RULES,
    THRESHOLD,
    ClassRecord,
    LeafRecord,
    NoLeaf,
    TableRecord,
)
from .store import Known, NewLabelsError
from .storing import BAYES, NOTHING, SHARES, offsets

_MOST_CATEGORIES = 4096
_SPARE = 128
_NAN = math.nan


class ClassLeaves:
    """Keeps the leaves of classifiers in arrays.

    A leaf is as it was read while the weights of its classes and its observers of features are: before all else,
    learning adds the weight of the observation to that of its class. (Their sum would not do: weight may move from one
    class to another.) This takes weights that are not negative, as all of River's trees do. One of 0 changes nothing
    but the error of an adaptive leaf, which has a count of its own.

    Parameters
    ----------
    schema
        The schema of the rows.
    labels
        The classes, in the order of their columns.
    """

    def __init__(self, schema: Schema, labels: Sequence[Any]) -> None:
        self.schema = schema
        self.labels = tuple(labels)
        self.watched = False
        """Whether the predictions of some leaf depend on settings of its tree, too."""
        self.columns = {label: c for c, label in enumerate(labels)}
        """Of classes."""
        self._free: list[int] = []
        self._tables: list[TableRecord] = []
        """Those that are not in use."""
        self.lists = (
            self.columns, self.columns.keys(), schema.position, list[ClassRecord](), self._free, self._tables,
        )  # fmt: skip
        """Objects that compiled code reads: see `entries.known_of`."""
        self.records: list[LeafRecord] = []
        """By slot."""
        self._n_rows = 0
        L, C = 64, len(labels)
        self.most_features = 1
        """Features that each leaf has room for."""
        self.arrays = aligned((L, offsets(C, 1)[4]), np.float64)
        self.marks = self.arrays.view(np.int64)
        """What is known of leaves, as floats and, in the same memory, as integers: see `offsets`."""
        self.tables = np.zeros((0, 0))
        self._learnt: list[float] = []
        self._heads: list[float] = []
        self._moved: list[float] = []
        self._counts: list[float] = []
        """What has been read and is not in the arrays yet: see `store_classes`."""
        self._news = Numbers()
        self._found: Array = np.zeros(0)
        self._same: tuple[float, ...] | None = None
        """The last news, and what they were of where nothing had been read."""
        self._room: Array = np.zeros(0)

    def follow_labels(self, tree: Any) -> None:
        """See `LeafStore`."""
        if not tree.classes <= self.columns.keys():
            raise NewLabelsError

    def put(self, leaf: Any, tree: Any, siblings: Sequence[Any] | None, place: int) -> int:
        """Return a slot for the leaf.

        Raises
        ------
        NotCoveredError
            The leaf is of an unknown kind.
        """
        rule = MAJORITY if leaf is None else RULES.get(type(leaf))
        if rule is None:
            raise NotCoveredError(f"a tree has a leaf of type {type(leaf).__qualname__}")
        self.watched |= rule in (THRESHOLD, ADAPTIVE)
        kept = LeafRecord(NoLeaf() if leaf is None else leaf, tree, rule, siblings, place)
        if self._free:
            s = self._free.pop()
            self.records[s] = kept
        else:
            s = self._new(kept)
        return s

    def _new(self, kept: LeafRecord) -> int:
        """Return one more slot."""
        s = len(self.records)
        self.records.append(kept)
        if s == len(self.arrays):
            self._allot(2 * s, self.most_features)
        return s

    def drop(self, slot: int) -> None:
        """Forget the leaf."""
        self._forget(self.records[slot])
        self.records[slot] = _empty()
        self._free.append(slot)

    def _forget(self, kept: LeafRecord) -> None:
        for observed in kept.classes:
            for table in observed.tables:
                table.codes.clear()
            self._tables += observed.tables
            observed.tables.clear()
        kept.classes, kept.features, kept.n_observers = [], [], -1

    def take_in(self, slot: int, weight: float | None, *, gone: bool, renewed: bool = False) -> bool:
        """See `LeafStore`."""
        kept = self.records[slot]
        leaf, seen, splitters = kept.leaf, kept.seen, kept.splitters
        has_others = leaf.splitters is not splitters
        if seen is None or (has_others and not renewed):
            return False
        now = [*kept.stats.values()]
        learnt = -1
        for i, (known, w) in enumerate(zip(seen, now)):  # noqa: B905 - a class may have come
            if known is not w and known != w:
                if learnt >= 0:
                    return False
                learnt = i
        is_new = len(now) != len(seen)
        if is_new:
            if learnt >= 0 or len(now) != len(seen) + 1:
                return False
            self.follow_labels(kept.tree)
            learnt = len(seen)
        rule, error = kept.rule, 0.0
        if weight is None:
            mean = leaf._mean_error
            # Each observation counts 1, whatever its weight.
            if mean is not kept.error or mean.n != kept.count + 1.0:
                return False
            error = mean._mean
        else:
            if learnt < 0:
                return False
            before = 0.0 if is_new else seen[learnt]
            if not (before + weight == now[learnt] or added(before, weight, now[learnt])):
                return False
        if gone:
            return True
        if has_others:
            self._load(slot, kept)
            return True
        if rule == BETTER:
            bayes = splitters is not None and leaf._nb_correct_weight >= leaf._mc_correct_weight
        else:
            bayes = rule != MAJORITY and self._by_settings(rule, leaf, sum(now), kept.tree)
        # Compiled code may have begun to read it, and left the rest.
        has_more = bayes and (kept.n_observers != len(splitters or ()) or learnt >= len(kept.classes))
        if is_new or learnt < 0 or has_more or bayes != (kept.mode == BAYES) or not now[learnt] > 0.0:
            self._load(slot, kept)
            return True
        if bayes:
            observed = kept.classes[learnt]
            if not observed.complete or observed.tables:
                self._load(slot, kept)
                return True
            news = self._learnt
            observed.weight = w = now[learnt]
            news += (slot, observed.column, w, BAYES, len(observed.variances), error)
            for variance in observed.variances:
                average = variance.mean
                news += (average.n, variance._S, average._mean)
        else:
            column = self.columns[[*kept.stats][learnt]]
            self._learnt += (slot, column, now[learnt], SHARES, 0, error)
        kept.seen = now
        if weight is None:
            kept.count = mean.n
        return True

    def room_for_news(self, n_trees: int) -> Array | None:
        """Return room for what so many trees have learnt; None where something that was read is to be stored first."""
        if self._learnt or self._heads or self._moved or self._counts:
            return None
        spare, n_nominal = self.lists[3], len(self.schema.codes)
        n_classes = n_trees * len(self.labels)
        if len(spare) < min(n_classes, _SPARE):
            spare += [ClassRecord(None, -1) for _ in range(_SPARE)]
        if len(self._tables) < min(n_classes * n_nominal, _SPARE):
            self._tables += [self._new_table() for _ in range(_SPARE)]
        if len(self._free) < n_trees:
            self._free += [self._new(_empty()) for _ in range(2 * n_trees)]
        size = room_for(n_trees, len(self.labels), self.most_features, n_nominal, self.tables.shape[1])
        if len(self._room) != size:
            self._room = np.zeros(size)
        return self._room

    def take_in_all(self, trees: Sequence[Any], structure: Known) -> list[int] | None:
        """See `LeafStore`."""
        table, room = structure.table, self.room_for_news(len(structure.table))
        if room is None:
            return None
        found = take_in_all(
            id(trees), structure.known, table, room, self.most_features, self.arrays, self.marks, self.tables
        )
        return table[: found - 1, 6].tolist() if found else None

    def forget(self) -> None:
        """Read all leaves again when they are reached next."""
        for kept in self.records:
            kept.seen = None

    def _allot(self, L: int, F: int) -> None:
        C = len(self.labels)
        old, most = self.arrays, self.most_features
        self.arrays = aligned((L, offsets(C, F)[4]), np.float64)
        self.marks, self.most_features = self.arrays.view(np.int64), F
        _, _, columns, gauss, _ = offsets(C, most)
        # Bits move as they are: a column would be no number as a float.
        self.marks[: len(old), : columns + most] = old.view(np.int64)[:, : columns + most]
        start = offsets(C, F)[3]
        self.arrays[: len(old), start : start + 4 * C * most] = old[:, gauss : gauss + 4 * C * most]

    def refresh(self, reached: Sequence[int]) -> None:
        """Read those of the leaves in these slots that have changed.

        Raises
        ------
        NotCoveredError
            A leaf observes features in a way that is not covered.
        """
        records = self.records
        for s in reached:
            kept = records[s]
            if [*kept.stats.values()] == kept.seen and kept.leaf.splitters is kept.splitters:
                if kept.rule != ADAPTIVE:
                    continue
                error = kept.leaf._mean_error
                if error is kept.error and error.n == kept.count:
                    continue
            self._load(s, kept)

    def news(self, front: Sequence[float], weights: Sequence[float]) -> Array:
        """Return what has been read since the last call, as `classify` takes it; the next call overwrites it."""
        learnt, heads, moved, counts = self._learnt, self._heads, self._moved, self._counts
        is_none = not (learnt or heads or moved or counts)
        same = (*front, self.most_features, *weights)
        if is_none and same == self._same:
            return self._found
        lengths = len(learnt), len(heads), len(moved), self.most_features
        found = self._found = self._news.write([*front, *lengths, *weights, *learnt, *heads, *moved, *counts])
        self._same = same if is_none else None
        learnt.clear()
        heads.clear()
        moved.clear()
        counts.clear()
        return found

    def _load(self, s: int, kept: LeafRecord) -> None:
        leaf, stats, rule = kept.leaf, kept.stats, kept.rule
        splitters = leaf.splitters
        if splitters is not kept.splitters:
            self._forget(kept)
            kept.splitters = splitters
        total = sum(stats.values())
        mode, n, error = SHARES, 0, 0.0
        get = stats.get
        weights = [get(label, _NAN) for label in self.labels]
        if rule == BETTER:
            bayes = splitters is not None and leaf._nb_correct_weight >= leaf._mc_correct_weight
        else:
            bayes = self._by_settings(rule, leaf, total, kept.tree)
        if rule == ADAPTIVE:
            kept.error, kept.count = leaf._mean_error, leaf._mean_error.n
            error = leaf._mean_error._mean
            if not stats:
                mode = NOTHING
        if bayes and stats:
            if total == 0:
                weights = [_NAN] * len(weights)
            else:
                mode, n = BAYES, self._load_observers(s, kept, splitters)
        if stats and min(stats.values()) < 0.0:
            raise NotCoveredError("a leaf has a negative weight")
        kept.mode = mode
        self._heads += (s, mode, n, error)
        self._heads += weights
        kept.seen = [*stats.values()]

    def _by_settings(self, rule: int, leaf: Any, total: float, tree: Any) -> bool:
        if leaf.splitters is None or rule == MAJORITY:
            return False
        if rule == THRESHOLD or tree._leaf_prediction == "nb":
            return bool(total >= tree.nb_threshold)
        return bool(tree._leaf_prediction != "mc" and leaf._nb_correct_weight >= leaf._mc_correct_weight)

    def _load_observers(self, s: int, kept: LeafRecord, splitters: dict[Any, Any]) -> int:
        moved, counts = self._moved, self._counts
        if kept.n_observers != len(splitters or ()):
            self._choose_features(s, kept, splitters)
        n = len(kept.features)
        classes = kept.classes
        if len(classes) < len(kept.stats):
            classes += [ClassRecord(label, self.columns[label]) for label in [*kept.stats][len(classes) :]]
        for observed, w in zip(classes, kept.stats.values(), strict=True):
            # The observers of a class are as they were read while its weight is.
            if not w > 0 or observed.weight == w:
                continue
            observed.weight = w
            if not observed.complete:
                self._find(kept, observed)
            moved += (s, observed.column, n)
            for variance in observed.variances:
                mean = variance.mean
                moved += (mean.n, variance._S, mean._mean)
            for table in observed.tables:
                shares, codes = table.splitter._att_dist_per_class.get(observed.label) or {}, table.codes
                if len(codes) != len(shares):
                    codes += self._codes(table.column, list(shares)[len(codes) :])
                counts += (s, observed.column, table.number, table.row, len(codes))
                counts += codes
                counts += shares.values()
        return n

    def _choose_features(self, s: int, kept: LeafRecord, splitters: dict[Any, Any]) -> None:
        self._forget(kept)
        position, coded = self.schema.position, self.schema.codes
        kinds: dict[type, bool] = {GaussianSplitter: False, NominalSplitterClassif: True}
        columns = []
        for feature, splitter in splitters.items():
            column = position.get(feature)
            if column is None:
                continue
            if type(splitter) not in kinds:
                raise NotCoveredError(f"a leaf with naive Bayes observes {feature!r} by {type(splitter).__qualname__}")
            if kinds[type(splitter)] != (column in coded):
                raise NotCoveredError(f"a leaf and the rows read {feature!r} differently: as categories and as numbers")
            columns.append(column)
            kept.features.append(splitter)
        kept.n_observers = len(splitters)
        if len(columns) > self.most_features:
            self._allot(len(self.arrays), len(columns))
        kept.columns = columns
        start = offsets(len(self.labels), 0)[2]
        self.marks[s, start : start + len(columns)] = columns

    def _find(self, kept: LeafRecord, observed: ClassRecord) -> None:
        """Look up the Gaussians and counts of a class; some may not be there before it is first learnt."""
        known, variances = observed.tables, list[Any]()
        observed.tables, observed.complete = [], True
        for f, splitter in enumerate(kept.features):
            variance = NO_GAUSSIAN
            if type(splitter) is NominalSplitterClassif:
                i = len(observed.tables)
                table = known[i] if i < len(known) else self._tables.pop() if self._tables else self._new_table()
                table.number, table.column, table.splitter = f, kept.columns[f], splitter
                observed.tables.append(table)
            elif (gaussian := splitter._att_dist_per_class.get(observed.label)) is None:
                observed.complete = False
            else:
                variance = gaussian._var
            variances.append(variance)
        observed.variances = variances

    def _new_table(self) -> TableRecord:
        row = self._n_rows
        self._n_rows += 1
        if row >= self.tables.shape[0] or not self.tables.shape[1]:
            self._widen(max(64, 2 * row), max(16, self.tables.shape[1]))
        return TableRecord(row)

    def _widen(self, n: int, width: int) -> None:
        self.tables = enlarged(self.tables, (n, width))

    def _codes(self, column: int, values: Sequence[Any]) -> list[float]:
        try:
            codes = [self.schema.code(column, value) for value in values]
        except NotEncodableError as reason:
            raise NotCoveredError(f"a leaf has seen {self.schema.features[column]!r}: {reason}") from None
        largest = int(max(codes, default=0))
        if largest >= _MOST_CATEGORIES:
            raise NotCoveredError(f"a leaf has seen more than {_MOST_CATEGORIES} categories of a feature")
        if largest >= self.tables.shape[1]:
            self._widen(self.tables.shape[0], 2 * largest)
        return codes


def _empty() -> LeafRecord:
    """Return what stands in a slot that is not in use."""
    return LeafRecord(NoLeaf(), None, MAJORITY, None, 0)
