"""Fast path of classification trees: one evaluation for a single tree, and for all trees of a forest together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from river.forest.adaptive_random_forest import BaseTreeClassifier
from river.tree import (
    ExtremelyFastDecisionTreeClassifier,
    HoeffdingAdaptiveTreeClassifier,
    HoeffdingTreeClassifier,
)
from river.tree.splitter import GaussianSplitter

from ...evaluation.changed_rows import ChangedRows, OneReplaced, Walked
from ...evaluation.evaluator import Evaluator, NotCoveredError
from ...evaluation.registry import register
from ...evaluation.schema import Schema
from ...ordering import sort_key
from ...typing import Array, Ints
from .at_once import NAMES, classify_at_once, vote_grid_at_once
from .changed_rows import vote_replaced, vote_walked
from .evaluator import NO_ORDER, Trees, TreesEvaluator, nominal
from .leaves.classes import ClassLeaves
from .routes import FINE, LISTED, UNUSUAL
from .structure import Structure
from .votes import classify

Metrics = Callable[[], list[Any] | None]

_READ = (list, type(None))
_SETTING = attrgetter("_leaf_prediction", "nb_threshold")
_OTHERWISE = "a leaf has seen nothing, or a value is too far from what it has seen"

CLASSIFIER_TREES: frozenset[type] = frozenset(
    (
        HoeffdingTreeClassifier,
        HoeffdingAdaptiveTreeClassifier,
        ExtremelyFastDecisionTreeClassifier,
        BaseTreeClassifier,
    )
)


def _settings(trees: Sequence[Any]) -> list[Any]:
    """Return the settings of trees by which leaves choose what they say."""
    return [*map(_SETTING, trees)]


class TreeClassifiers(TreesEvaluator[ClassLeaves]):
    """Evaluates classification trees: their votes, each with its weight.

    Parameters
    ----------
    trees
        Gives the live list of trees.
    schema
        The schema of the rows.
    metrics
        Gives the live metrics by which the votes are weighed, of which one that is not above 0 counts as 1; None where
        all weigh the same.
    normalises
        Whether the votes are made to sum to 1.
    """

    def __init__(
        self, trees: Trees, schema: Schema, metrics: Metrics | None = None, *, normalises: bool = False
    ) -> None:
        self.labels: tuple[Any, ...] = ()
        super().__init__(trees, schema)
        self._metrics, self._normalises = metrics, normalises
        self._settings: list[Any] = []
        self._shares: Sequence[float] = (1.0,)
        self._P: Array = np.zeros((0, 0))
        self._unusual: Structure | None = None  # in which a grid has come to a node that `vote_grid` cannot pass

    def predict_along(self, X: Array, order: Ints) -> Array:
        """See `Evaluator`."""
        return self._at_once(X, order, None)

    def predict_grid(self, X: Array, column: int, n_points: int) -> Array:
        """See `Evaluator`."""
        return self._at_once(X, NO_ORDER, (column, n_points))

    def _at_once(self, X: Array, order: Ints, grid: tuple[int, int] | None) -> Array:
        structure, leaves, trees = self._structure, self._leaves, self._trees()
        if structure is None or not structure.is_settled or not leaves.labels:
            return super().predict_along(X, order)
        metrics = None if self._metrics is None else self._metrics()
        room = leaves.room_for_news(len(structure.table))
        if room is None or type(metrics) not in _READ or (leaves.watched and self._settings != _settings(trees)):
            return super().predict_along(X, order)
        self._make_room(X)
        forest: Any = id(trees), 0 if metrics is None else id(metrics), self._normalises, NAMES
        known: Any = (
            self._P, structure.known, room, leaves.most_features, structure.table, structure.fields,
            structure.thresholds, structure.targets, structure.listed, leaves.arrays, leaves.marks, leaves.tables,
        )  # fmt: skip
        if grid is None or structure.adaptive or structure is self._unusual:
            found = classify_at_once(*forest, X, order, *known, structure.extras)  # type: ignore[call-arg]  # any length
        else:
            found = vote_grid_at_once(*forest, X, *grid, *known)  # type: ignore[call-arg]
            if found == 1 + UNUSUAL:
                self._unusual, found = structure, 1 + LISTED
        if not found:
            return super().predict_along(X, order)
        if found != 1 + FINE:
            self._shares = room[6 : 6 + len(trees)].tolist()
            try:
                self._complete(X, order, structure, found - 1)
            except NotCoveredError:
                self._structure = None
                raise
        return self._P

    def _evaluate(self, X: Array, order: Ints, structure: Structure) -> Array:
        leaves = self._leaves
        if not leaves.labels:
            return np.zeros((len(X), 0))
        self._make_room(X)
        self._complete(X, order, structure)
        return self._P

    def _make_room(self, X: Array) -> None:
        shape = len(X), len(self._leaves.labels)
        if self._P.shape != shape:
            self._P = np.zeros(shape)

    def _complete(self, X: Array, order: Ints, structure: Structure, found: int | None = None) -> None:
        """Have the rows predicted; they have been sent down the trees once where it is known what was found."""
        if not self._send(partial(self._ask, X, order), structure, found):
            raise NotCoveredError(_OTHERWISE)

    def _evaluate_changed(self, rows: ChangedRows, structure: Structure) -> Array | None:
        P = np.zeros((1 + rows.n_rows, len(self._leaves.labels)))
        if not P.shape[1]:
            return P
        if any(self._adaptive):
            return None
        kernel: Any
        given: tuple[Any, Any]
        if isinstance(rows, OneReplaced):
            kernel, given = vote_replaced, (rows.columns, rows.values)
        elif isinstance(rows, Walked):
            kernel, given = vote_walked, (rows.orders, rows.drawn)
        else:
            return None
        x = rows.x[None]

        def ask(structure: Structure, wanted: bool) -> int:
            return kernel(x, *given, *self._known(structure, wanted), P)  # type: ignore[no-any-return]

        if not self._send(ask, structure):
            raise NotCoveredError(_OTHERWISE)
        return P

    def _follow_settings(self, trees: Sequence[Any], structure: Structure) -> None:
        leaves = self._leaves
        metrics = None if self._metrics is None else self._metrics()
        if metrics is None:
            self._shares = [1.0] * len(trees)
        else:
            scores = [metric.get() for metric in metrics]
            self._shares = [score if score > 0.0 else 1.0 for score in scores]
        if leaves.watched:
            settings = _settings(trees)
            if settings != self._settings:
                self._settings = settings
                structure.forget()
                leaves.forget()

    def _ask(self, X: Array, order: Ints, structure: Structure, wanted: bool) -> int:
        known = self._known(structure, wanted)
        return classify(X, order, *known, structure.extras, self._P)  # type: ignore[call-arg]  # the tuple has any length

    def _known(self, structure: Structure, wanted: bool) -> tuple[Any, ...]:
        """Return what kernels need to know of trees and leaves."""
        leaves = self._leaves
        news = leaves.news((wanted, self._normalises), self._shares)
        return (
            news, structure.table, structure.fields, structure.thresholds, structure.targets, structure.listed,
            leaves.arrays, leaves.marks, leaves.tables,
        )  # fmt: skip

    def _check(self, tree: Any) -> None:
        if type(tree) not in CLASSIFIER_TREES:
            raise NotCoveredError(f"the ensemble has a member that is no Hoeffding tree: {type(tree).__qualname__}")
        if tree._leaf_prediction != "mc" and type(tree.splitter) is not GaussianSplitter:
            raise NotCoveredError(f"naive Bayes in leaves that observe numbers by {type(tree.splitter).__qualname__}")

    def _new_leaves(self) -> ClassLeaves:
        return ClassLeaves(self.schema, self.labels)

    def _has_new_labels(self, trees: Sequence[Any]) -> bool:
        labels = tuple(sorted(set().union(*(tree.classes for tree in trees)), key=sort_key))
        if labels == self.labels:
            return False
        self.labels = labels
        return True


@register(
    HoeffdingTreeClassifier,
    HoeffdingAdaptiveTreeClassifier,
    ExtremelyFastDecisionTreeClassifier,
    categorical=nominal,
    gaps=True,
)
def tree_classifier(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of one classification tree."""
    trees = [model]
    return TreeClassifiers(lambda: trees, schema)
