"""Leaves of classifiers as arrays, which are read again when a row reaches a leaf that has changed."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from river.stats import Mean, Var
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from ...evaluation.evaluator import NotCoveredError
from ...evaluation.schema import NotEncodableError, Schema
from .arrays import added, enlarged
from .leaf_records import ADAPTIVE, BETTER, MAJORITY, RULES, THRESHOLD, ClassRecord, LeafRecord, NoLeaf
from .votes import BAYES, NOTHING, SHARES, store_classes

_MOST_CATEGORIES = 4096
_NAN = math.nan
_NO_GAUSSIAN = Var(), Mean()
"""Stands for a class that has not been seen, and in the place of a nominal feature."""


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
        self._column = {label: c for c, label in enumerate(labels)}
        self._kept: list[LeafRecord] = []
        """The record of each slot."""
        self._free: list[int] = []
        self._n_rows = 0
        self._free_rows: list[int] = []
        L, C = 64, len(labels)
        self.modes = np.zeros((L, 2), np.int64)
        self.columns = np.zeros((L, 1), np.int64)
        self.base = np.zeros((L, C))
        self.states = np.zeros((L, C), np.int8)
        self.errors = np.zeros(L)
        self.gauss = np.zeros((L, C, 1, 3))
        self.rows = np.full((1, 1, 1), -1, np.int64)
        self.tables = np.zeros((0, 0))

    def put(self, leaf: Any, tree: Any) -> int:
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
        kept = LeafRecord(NoLeaf() if leaf is None else leaf, tree, rule)
        if self._free:
            s = self._free.pop()
            self._kept[s] = kept
        else:
            s = len(self._kept)
            self._kept.append(kept)
            if s == len(self.modes):
                self._allot(2 * s, self.columns.shape[1])
        return s

    def drop(self, slot: int) -> None:
        """Forget the leaf."""
        self._forget(self._kept[slot])
        self._kept[slot] = LeafRecord(NoLeaf(), None, MAJORITY)
        self._free.append(slot)

    def _forget(self, kept: LeafRecord) -> None:
        for observed in kept.observed.values():
            self._free_rows += [row for _, _, _, row, _ in observed.tables]
        kept.observed, kept.features, kept.n_observers = {}, [], -1

    def gained(self, slot: int, weight: float) -> bool:
        """Return whether the leaf has learnt this weight since it was read, and nothing else has happened to it."""
        kept = self._kept[slot]
        seen = kept.seen
        if seen is None or kept.leaf.splitters is not kept.splitters:
            return False
        found = False
        for label, now in kept.stats.items():
            before = seen.get(label, 0.0)
            if before != now:
                if found or not added(before, weight, now):
                    return False
                found = True
        return found

    def forget(self) -> None:
        """Read all leaves again when they are reached next."""
        for kept in self._kept:
            kept.seen = None

    def _allot(self, L: int, F: int) -> None:
        C = len(self.labels)
        self.modes = enlarged(self.modes, (L, 2))
        self.columns = enlarged(self.columns, (L, F))
        self.base = enlarged(self.base, (L, C))
        self.states = enlarged(self.states, (L, C))
        self.errors = enlarged(self.errors, (L,))
        self.gauss = enlarged(self.gauss, (L, C, F, 3))
        if self.tables.shape[1]:
            self.rows = enlarged(self.rows, (L, C, F), -1)

    def refresh(self, reached: Sequence[int]) -> None:
        """Read those of the leaves in these slots that have changed.

        Raises
        ------
        NotCoveredError
            A leaf observes features in a way that is not covered.
        """
        all_kept = self._kept
        heads: list[float] = []
        moved: list[float] = []
        counts: list[float] = []
        for s in reached:
            kept = all_kept[s]
            if kept.stats == kept.seen and kept.leaf.splitters is kept.splitters:
                if kept.rule != ADAPTIVE:
                    continue
                error = kept.leaf._mean_error
                if error is kept.error and error.n == kept.count:
                    continue
            self._load(s, kept, heads, moved, counts)
        if heads:
            n_heads, n_moved = len(heads), len(moved)
            heads += moved
            heads += counts
            store_classes(
                np.frombuffer(array("d", heads)), n_heads, n_moved, len(self.labels),
                self.modes, self.base, self.states, self.errors, self.gauss, self.rows, self.tables,
            )  # fmt: skip

    def _load(self, s: int, kept: LeafRecord, heads: list[float], moved: list[float], counts: list[float]) -> None:
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
                mode, n = BAYES, self._load_observers(s, kept, splitters, moved, counts)
        if stats and min(stats.values()) < 0.0:
            raise NotCoveredError("a leaf has a negative weight")
        heads += (s, mode, n, total, error)
        heads += weights
        kept.seen = stats.copy()

    def _by_settings(self, rule: int, leaf: Any, total: float, tree: Any) -> bool:
        if leaf.splitters is None or rule == MAJORITY:
            return False
        if rule == THRESHOLD or tree._leaf_prediction == "nb":
            return bool(total >= tree.nb_threshold)
        return bool(tree._leaf_prediction != "mc" and leaf._nb_correct_weight >= leaf._mc_correct_weight)

    def _load_observers(
        self, s: int, kept: LeafRecord, splitters: dict[Any, Any], moved: list[float], counts: list[float]
    ) -> int:
        if kept.n_observers != len(splitters):
            self._choose_features(s, kept, splitters)
        n = len(kept.features)
        for label, w in kept.stats.items():
            observed = kept.observed.get(label)
            if observed is None:
                observed = kept.observed[label] = ClassRecord(self._column[label])
            # The observers of a class are as they were read while its weight is.
            if not w > 0 or observed.weight == w:
                continue
            observed.weight = w
            if not observed.complete:
                self._find(s, kept, label, observed)
            moved += (s, observed.column, n)
            for variance, mean in observed.pairs:
                moved += (mean.n, variance._S, mean._mean)
            for f, column, splitter, row, codes in observed.tables:
                shares = splitter._att_dist_per_class.get(label) or {}
                if len(codes) != len(shares):
                    codes += self._codes(column, list(shares)[len(codes) :])
                counts += (s, observed.column, f, row, sum(shares.values()), len(codes))
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
        if len(columns) > self.columns.shape[1]:
            self._allot(len(self.modes), len(columns))
        self.columns[s, : len(columns)] = columns

    def _find(self, s: int, kept: LeafRecord, label: Any, observed: ClassRecord) -> None:
        """Look up the Gaussians and counts of a class; some may not be there before it is first learnt."""
        known = observed.tables
        observed.pairs, observed.tables, observed.complete = [], [], True
        for f, splitter in enumerate(kept.features):
            pair = _NO_GAUSSIAN
            if type(splitter) is NominalSplitterClassif:
                i = len(observed.tables)
                column = int(self.columns[s, f])
                observed.tables.append(known[i] if i < len(known) else (f, column, splitter, self._table(), []))
            elif (gaussian := splitter._att_dist_per_class.get(label)) is None:
                observed.complete = False
            else:
                pair = gaussian._var, gaussian._var.mean
            observed.pairs.append(pair)

    def _table(self) -> int:
        if self._free_rows:
            return self._free_rows.pop()
        row = self._n_rows
        self._n_rows += 1
        if row >= self.tables.shape[0] or not self.tables.shape[1]:
            self._widen(max(64, 2 * row), max(16, self.tables.shape[1]))
        return row

    def _widen(self, n: int, width: int) -> None:
        if not self.tables.shape[1]:
            self.rows = np.full(self.gauss.shape[:3], -1, np.int64)
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
