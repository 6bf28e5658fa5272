"""Leaves of classifiers as arrays: read from the live leaf when a row reaches it and it is not what was read."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from river.tree.nodes.arf_htc_nodes import RandomLeafMajorityClass, RandomLeafNaiveBayes, RandomLeafNaiveBayesAdaptive
from river.tree.nodes.efdtc_nodes import EFDTLeafMajorityClass, EFDTLeafNaiveBayes, EFDTLeafNaiveBayesAdaptive
from river.tree.nodes.hatc_nodes import AdaLeafClassifier
from river.tree.nodes.htc_nodes import LeafMajorityClass, LeafNaiveBayes, LeafNaiveBayesAdaptive
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from .evaluator import NotCoveredError
from .growing import added, enlarged
from .schema import NotEncodableError, Schema
from .tree_votes import BAYES, NOTHING, SHARES, store_classes

MAJORITY, THRESHOLD, BETTER, ADAPTIVE = range(4)
"""When a leaf uses naive Bayes: never, from a weight on, while that is right more often, or as its tree says."""

RULES: dict[type, int] = {
    LeafMajorityClass: MAJORITY,
    RandomLeafMajorityClass: MAJORITY,
    EFDTLeafMajorityClass: MAJORITY,
    LeafNaiveBayes: THRESHOLD,
    RandomLeafNaiveBayes: THRESHOLD,
    EFDTLeafNaiveBayes: THRESHOLD,
    LeafNaiveBayesAdaptive: BETTER,
    RandomLeafNaiveBayesAdaptive: BETTER,
    EFDTLeafNaiveBayesAdaptive: BETTER,
    AdaLeafClassifier: ADAPTIVE,
}
_MOST_CATEGORIES = 4096
_NO_GAUSSIAN = (0.0, 0.0, 0.0)
_NAN = math.nan


class NoLeaf:
    """Stands for the leaf of a tree that has not learnt."""

    def __init__(self) -> None:
        self.stats: dict[Any, float] = {}
        self.splitters = None


_NO_LEAF = NoLeaf()


class ClassLeaves:
    """Leaves of classifiers.

    A leaf is as it was read while the weights of its classes and its observers of features are: before all else,
    learning adds the weight of the observation to that of its class. (Their sum would not do: weight may move from one
    class to another.) This takes weights that are not negative, as all of River's trees do. One of 0 changes nothing
    but the error of an adaptive leaf, which has a count of its own.

    Parameters
    ----------
    schema
        Of the rows.
    labels
        The classes, in the order of their columns.
    """

    def __init__(self, schema: Schema, labels: Sequence[Any]) -> None:
        self.schema = schema
        self.labels = tuple(labels)
        self.watched = False
        """Whether what some leaf says also depends on settings of its tree."""
        self._column = {label: c for c, label in enumerate(labels)}
        self._read: list[Any] = []
        """By slot: leaf, its weights (live), a copy of them when it was read, its observers then."""
        self._errors: list[Any] = []
        """By slot, of adaptive leaves: the estimate of the error and its count when it was read."""
        self._trees: list[Any] = []
        self._rules: list[int] = []
        self._observers: list[dict[Any, Any]] = []
        """By slot and class: variance and mean of each feature, and what its nominal features need."""
        self._moved: list[dict[Any, float]] = []
        """By slot and class: its weight when its observers were read."""
        self._features: list[list[Any]] = []
        """By slot: the observers whose features the rows have."""
        self._n_observers: list[int] = []
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
        """A slot for the leaf.

        Raises
        ------
        NotCoveredError
            It is of an unknown kind.
        """
        rule = MAJORITY if leaf is None else RULES.get(type(leaf))
        if rule is None:
            raise NotCoveredError(f"a tree has a leaf of type {type(leaf).__qualname__}")
        self.watched |= rule in (THRESHOLD, ADAPTIVE)
        leaf = _NO_LEAF if leaf is None else leaf
        if self._free:
            s = self._free.pop()
        else:
            s = len(self._read)
            for by_slot in (self._read, self._errors, self._trees, self._rules, self._observers, self._moved):
                by_slot.append(None)  # type: ignore[arg-type]
            self._features.append([])
            self._n_observers.append(-1)
            if s == len(self.modes):
                self._allot(2 * s, self.columns.shape[1])
        # Nothing equals None, so that it is read when it is first reached.
        self._read[s] = (leaf, leaf.stats, None, None)
        self._errors[s], self._trees[s], self._rules[s] = (None, 0.0), tree, rule
        self._observers[s], self._moved[s], self._n_observers[s] = {}, {}, -1
        return s

    def drop(self, slot: int) -> None:
        """Forget the leaf."""
        self._forget(slot)
        self._read[slot] = self._errors[slot] = self._trees[slot] = None
        self._free.append(slot)

    def _forget(self, s: int) -> None:
        for _, tables in self._observers[s].values():
            self._free_rows += [row for _, _, _, row, _ in tables]
        self._observers[s], self._moved[s], self._features[s], self._n_observers[s] = {}, {}, [], -1

    def gained(self, slot: int, weight: float) -> bool:
        """Whether all that has happened to the leaf since it was read is that it learnt so much."""
        leaf, weights, seen, splitters = self._read[slot]
        if seen is None or leaf.splitters is not splitters:
            return False
        found = False
        for label, now in weights.items():
            before = seen.get(label, 0.0)
            if before != now:
                if found or not added(before, weight, now):
                    return False
                found = True
        return found and len(weights) - len(seen) <= 1

    def forget(self) -> None:
        """All leaves are to be read again."""
        self._read = [entry and (entry[0], entry[1], None, entry[3]) for entry in self._read]

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
        read, rules = self._read, self._rules
        heads: list[float] = []
        moved: list[float] = []
        counts: list[float] = []
        for s in reached:
            leaf, weights, seen, splitters = read[s]
            if weights == seen and leaf.splitters is splitters:
                if rules[s] != ADAPTIVE:
                    continue
                error, n = self._errors[s]
                if leaf._mean_error is error and error.n == n:
                    continue
            self._load(s, heads, moved, counts)
        if heads:
            n_heads, n_moved = len(heads), len(moved)
            heads += moved
            heads += counts
            store_classes(
                np.frombuffer(array("d", heads)), n_heads, n_moved, len(self.labels),
                self.modes, self.base, self.states, self.errors, self.gauss, self.rows, self.tables,
            )  # fmt: skip

    def _load(self, s: int, heads: list[float], moved: list[float], counts: list[float]) -> None:
        leaf, stats, _, seen_splitters = self._read[s]
        splitters = leaf.splitters
        if splitters is not seen_splitters:
            self._forget(s)
        rule = self._rules[s]
        total = sum(stats.values())
        mode, n, error = SHARES, 0, 0.0
        get = stats.get
        weights = [get(label, _NAN) for label in self.labels]
        if rule == BETTER:
            bayes = splitters is not None and leaf._nb_correct_weight >= leaf._mc_correct_weight
        else:
            bayes = self._by_settings(rule, leaf, total, self._trees[s])
        if rule == ADAPTIVE:
            self._errors[s] = leaf._mean_error, leaf._mean_error.n
            error = leaf._mean_error._mean
            if not stats:
                mode = NOTHING
        if bayes and stats:
            if total == 0:
                weights = [_NAN] * len(weights)
            else:
                mode, n = BAYES, self._load_observers(s, stats, splitters, moved, counts)
        if stats and min(stats.values()) < 0.0:
            raise NotCoveredError("a leaf has a negative weight")
        heads += (s, mode, n, total, error)
        heads += weights
        self._read[s] = leaf, stats, stats.copy(), splitters

    def _by_settings(self, rule: int, leaf: Any, total: float, tree: Any) -> bool:
        if leaf.splitters is None or rule == MAJORITY:
            return False
        if rule == THRESHOLD or tree._leaf_prediction == "nb":
            return bool(total >= tree.nb_threshold)
        return bool(tree._leaf_prediction != "mc" and leaf._nb_correct_weight >= leaf._mc_correct_weight)

    def _load_observers(
        self, s: int, stats: dict[Any, float], splitters: dict[Any, Any], moved: list[float], counts: list[float]
    ) -> int:
        if self._n_observers[s] != len(splitters):
            self._choose_features(s, splitters)
        known, read, n = self._observers[s], self._moved[s], len(self._features[s])
        for label, w in stats.items():
            if not w > 0 or read.get(label) == w:
                continue
            read[label] = w
            found = known.get(label)
            if found is None or None in found[0]:
                found = known[label] = self._observers_of(s, label, found)
            c = self._column[label]
            moved += (s, c, n)
            for pair in found[0]:
                if pair:
                    variance, mean = pair
                    moved += (mean.n, variance._S, mean._mean)
                else:
                    moved += _NO_GAUSSIAN
            for f, column, splitter, row, codes in found[1]:
                weights = splitter._att_dist_per_class.get(label) or {}
                if len(codes) != len(weights):
                    codes += self._codes(column, list(weights)[len(codes) :])
                counts += (s, c, f, row, sum(weights.values()), len(codes))
                counts += codes
                counts += weights.values()
        return n

    def _choose_features(self, s: int, splitters: dict[Any, Any]) -> None:
        self._forget(s)
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
            self._features[s].append(splitter)
        self._n_observers[s] = len(splitters)
        if len(columns) > self.columns.shape[1]:
            self._allot(len(self.modes), len(columns))
        self.columns[s, : len(columns)] = columns

    def _observers_of(self, s: int, label: Any, found: Any) -> tuple[list[Any], list[Any]]:
        """Of a class at a leaf: its Gaussians, None before the first observation, and its tables."""
        pairs: list[Any] = []
        tables: list[Any] = [] if found is None else found[1]
        for f, splitter in enumerate(self._features[s]):
            if type(splitter) is GaussianSplitter:
                gaussian = splitter._att_dist_per_class.get(label)
                pairs.append(None if gaussian is None else (gaussian._var, gaussian._var.mean))
            else:
                pairs.append(())
                if found is None:
                    tables.append((f, int(self.columns[s, f]), splitter, self._table(), []))
        return pairs, tables

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
