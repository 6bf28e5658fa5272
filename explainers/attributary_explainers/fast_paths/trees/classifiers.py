"""Fast path of classification trees: one evaluation for a single tree, and for all trees of a forest together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from river.forest.adaptive_random_forest import BaseTreeClassifier
from river.tree import (
    ExtremelyFastDecisionTreeClassifier,
    HoeffdingAdaptiveTreeClassifier,
    HoeffdingTreeClassifier,
)
from river.tree.splitter import GaussianSplitter

from ...evaluation.changed_rows import ChangedRows
from ...evaluation.evaluator import Evaluator, NotCoveredError
from ...evaluation.registry import register
from ...evaluation.schema import Schema
from ...ordering import sort_key
from ...typing import Array
from .changed_rows import normalise_votes, votes_for_changed
from .class_leaves import ClassLeaves
from .evaluator import Trees, TreesEvaluator, nominal
from .structure import Structure
from .votes import vote

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
        self._n_labels = 0
        self._settings: list[Any] = []
        self._ones = np.ones(1)
        self._P: Array = np.zeros((0, 0))

    def _evaluate(self, X: Array, trees: list[Any], structure: Structure) -> Array:
        leaves = self._leaves
        if not leaves.labels:
            return np.zeros((len(X), 0))
        self._read(X, trees, structure)
        shape = len(X), len(leaves.labels)
        if self._P.shape != shape:
            self._P = np.zeros(shape)
        if not vote(
            X, structure.fields, structure.ends, structure.extras, structure.extra_at, self._adaptive,
            self._vote_weights(), self._weights is not None,
            leaves.modes, leaves.columns, leaves.base, leaves.states, leaves.errors, leaves.gauss, leaves.rows,
            leaves.tables, self._P,
        ):  # fmt: skip
            raise NotCoveredError("a leaf has seen nothing, or a value is too far from what it has seen")
        return self._P

    def _read(self, X: Array, trees: list[Any], structure: Structure) -> None:
        """Read what the rows meet of the live trees."""
        leaves = self._leaves
        if leaves.watched:
            settings = [(tree._leaf_prediction, tree.nb_threshold) for tree in trees]
            if settings != self._settings:
                self._settings = settings
                structure.forget()
                leaves.forget()
        leaves.refresh(structure.follow(X, trees))

    def _vote_weights(self) -> Array:
        return self._ones if self._weights is None else np.array(self._weights(), np.float64)

    def _evaluate_changed(self, rows: ChangedRows, trees: list[Any], structure: Structure) -> Array | None:
        if not self.labels:
            return np.zeros((1 + rows.n_rows, 0))
        if self._adaptive.any():
            return None
        votes = votes_for_changed(
            rows,
            structure,
            self._leaves,
            lambda X: self._read(X, trees, structure),
            self._vote_weights(),
        )
        if votes is not None and self._weights is not None:
            normalise_votes(votes)
        return votes

    def _check(self, tree: Any) -> None:
        if type(tree) not in CLASSIFIER_TREES:
            raise NotCoveredError(f"the ensemble has a member that is no Hoeffding tree: {type(tree).__qualname__}")
        if tree._leaf_prediction != "mc" and type(tree.splitter) is not GaussianSplitter:
            raise NotCoveredError(f"naive Bayes in leaves that observe numbers by {type(tree.splitter).__qualname__}")

    def _new_leaves(self) -> ClassLeaves:
        return ClassLeaves(self.schema, self.labels)

    def _has_new_labels(self, trees: Sequence[Any], others: bool) -> bool:
        # Trees never forget a class: as many of the same trees are the same ones.
        n = 0
        for tree in trees:
            n += len(tree.classes)
        if n == self._n_labels and not others:
            return False
        self._n_labels = n
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
)
def tree_classifier(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of one classification tree."""
    trees = [model]
    return TreeClassifiers(lambda: trees, schema)
