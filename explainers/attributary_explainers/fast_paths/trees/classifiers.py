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
from ...typing import Array
from .changed_rows import vote_replaced, vote_walked
from .evaluator import Trees, TreesEvaluator, nominal
from .leaves.classes import ClassLeaves
from .structure import Structure
from .votes import classify

_SETTINGS = attrgetter("_leaf_prediction", "nb_threshold")
_OTHERWISE = "a leaf has seen nothing, or a value is too far from what it has seen"

CLASSIFIER_TREES: frozenset[type] = frozenset(
    (
        HoeffdingTreeClassifier,
        HoeffdingAdaptiveTreeClassifier,
        ExtremelyFastDecisionTreeClassifier,
        BaseTreeClassifier,
    )
)


class TreeClassifiers(TreesEvaluator[ClassLeaves]):
    """Evaluates classification trees: their votes, each with its weight.

    Parameters
    ----------
    trees
        Gives the live list of trees.
    schema
        The schema of the rows.
    weights
        Gives the live weights of the votes; None for a single tree, whose votes are not made to sum to 1.
    """

    def __init__(self, trees: Trees, schema: Schema, weights: Callable[[], Sequence[float]] | None = None) -> None:
        self.labels: tuple[Any, ...] = ()
        super().__init__(trees, schema)
        self._weights = weights
        self._settings: list[Any] = []
        self._shares: Sequence[float] = (1.0,)
        self._P: Array = np.zeros((0, 0))

    def _evaluate(self, X: Array, structure: Structure) -> Array:
        leaves = self._leaves
        if not leaves.labels:
            return np.zeros((len(X), 0))
        shape = len(X), len(leaves.labels)
        if self._P.shape != shape:
            self._P = np.zeros(shape)
        if not self._send(partial(self._ask, X), structure):
            raise NotCoveredError(_OTHERWISE)
        return self._P

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
        if self._weights is not None:
            self._shares = self._weights()
        if leaves.watched:
            settings = [*map(_SETTINGS, trees)]
            if settings != self._settings:
                self._settings = settings
                structure.forget()
                leaves.forget()

    def _ask(self, X: Array, structure: Structure, wanted: bool) -> int:
        known = self._known(structure, wanted)
        return classify(X, *known, structure.extras, self._P)  # type: ignore[call-arg]  # the tuple has any length

    def _known(self, structure: Structure, wanted: bool) -> tuple[Any, ...]:
        """Return what kernels need to know of trees and leaves."""
        leaves = self._leaves
        news = leaves.news((wanted, self._weights is not None), self._shares)
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
