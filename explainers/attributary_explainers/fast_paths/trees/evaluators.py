"""Hoeffding trees: one evaluator for a single tree and for all trees of a forest together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from river.forest.adaptive_random_forest import BaseTreeClassifier, BaseTreeRegressor
from river.linear_model import LinearRegression
from river.tree import (
    ExtremelyFastDecisionTreeClassifier,
    HoeffdingAdaptiveTreeClassifier,
    HoeffdingAdaptiveTreeRegressor,
    HoeffdingTreeClassifier,
    HoeffdingTreeRegressor,
)
from river.tree.splitter import GaussianSplitter

from ...compiled import HAS_NUMBA
from ...evaluation.evaluator import Evaluator, NotCoveredError, check_instance
from ...evaluation.registry import register
from ...evaluation.schema import Array, Schema
from ...ordering import sort_key
from . import numpy_kernels as tree_numpy
from . import votes as tree_votes
from .class_leaves import ClassLeaves
from .number_leaves import NumberLeaves
from .proofs import CLASSIFIERS, REGRESSORS, TREES, Hashes, relied_on
from .structure import Structure

CLASSIFIER_TREES: frozenset[type] = frozenset(
    (
        HoeffdingTreeClassifier,
        HoeffdingAdaptiveTreeClassifier,
        ExtremelyFastDecisionTreeClassifier,
        BaseTreeClassifier,
    )
)
REGRESSOR_TREES: frozenset[type] = frozenset(
    (HoeffdingTreeRegressor, HoeffdingAdaptiveTreeRegressor, BaseTreeRegressor)
)
_ADAPTIVE = (HoeffdingAdaptiveTreeClassifier, HoeffdingAdaptiveTreeRegressor)

Trees = Callable[[], list[Any]]

vote, estimate = (tree_votes.vote, tree_votes.estimate) if HAS_NUMBA else (tree_numpy.vote, tree_numpy.estimate)
_fewest_rows = 0 if HAS_NUMBA else tree_numpy.FEWEST_ROWS


def nominal(model: Any) -> frozenset[Any]:
    """The features that a tree, or all trees of a forest, read as categories whatever they are."""
    return frozenset(model.nominal_attributes or ())


def _check_rows(X: Array) -> None:
    if len(X) < _fewest_rows:
        raise NotCoveredError(
            "without numba, the model itself is as fast for so few rows: pip install 'attributary[fast]'"
        )


def _check_classifiers(trees: Sequence[Any]) -> None:
    for tree in trees:
        check_instance(tree)
        if type(tree) not in CLASSIFIER_TREES:
            raise NotCoveredError(f"the ensemble has a member that is no Hoeffding tree: {type(tree).__qualname__}")
        if tree._leaf_prediction != "mc" and type(tree.splitter) is not GaussianSplitter:
            raise NotCoveredError(f"naive Bayes in leaves that observe numbers by {type(tree.splitter).__qualname__}")


def _check_regressors(trees: Sequence[Any]) -> None:
    for tree in trees:
        check_instance(tree)
        if type(tree) not in REGRESSOR_TREES:
            raise NotCoveredError(f"the ensemble has a member that is no Hoeffding tree: {type(tree).__qualname__}")
        if tree._leaf_prediction != "mean" and type(tree.leaf_model) is not LinearRegression:
            raise NotCoveredError(f"leaves whose model is {type(tree.leaf_model).__qualname__}")


class TreeClassifiers(Evaluator):
    """Votes of trees, each with its weight.

    Parameters
    ----------
    trees
        Gives the live list of trees.
    schema
        Of the rows.
    weights
        Gives the live weights of the votes; None: a single tree, whose votes are not made to sum to 1.
    groups
        What else the path relies on.
    """

    def __init__(
        self, trees: Trees, schema: Schema, weights: Callable[[], Sequence[float]] | None = None, *groups: Hashes
    ) -> None:
        self.relies_on = relied_on(TREES, CLASSIFIERS, *groups)
        _check_classifiers(trees())
        self.schema = schema
        self._trees = trees
        self._weights = weights
        self._members: list[Any] = []
        self._n_labels = -1
        self._settings: list[Any] = []
        self._structure: Structure | None = None
        self._leaves = ClassLeaves(schema, ())
        self._adaptive = np.zeros(0, np.bool_)
        self._ones = np.ones(1)
        self._P: Array = np.zeros((0, 0))
        self.labels: tuple[Any, ...] = ()

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        _check_rows(X)
        trees = self._trees()
        try:
            return self._predict(X, trees)
        except NotCoveredError:
            # It may have stopped half-way: nothing of it is to be used again.
            self._structure = None
            raise

    def _predict(self, X: Array, trees: list[Any]) -> Array:
        structure = self._prepared(trees)
        leaves = self._leaves
        if not leaves.labels:
            return np.zeros((len(X), 0))
        if leaves.watched:
            settings = [(tree._leaf_prediction, tree.nb_threshold) for tree in trees]
            if settings != self._settings:
                self._settings = settings
                structure.forget()
                leaves.forget()
        leaves.refresh(structure.follow(X, trees))
        shape = len(X), len(leaves.labels)
        if self._P.shape != shape:
            self._P = np.zeros(shape)
        if not vote(
            X, structure.fields, structure.ends, structure.extras, structure.extra_at, self._adaptive,
            self._ones if self._weights is None else np.array(self._weights(), np.float64), self._weights is not None,
            leaves.modes, leaves.columns, leaves.base, leaves.states, leaves.errors, leaves.gauss, leaves.rows,
            leaves.tables, self._P,
        ):  # fmt: skip
            raise NotCoveredError("a leaf has seen nothing, or a value is too far from what it has seen")
        return self._P

    def _prepared(self, trees: list[Any]) -> Structure:
        """The structure for these trees and for the classes that they know now."""
        structure = self._structure
        if structure is not None and structure.worn:
            structure = None
        if structure is None or trees != self._members:
            _check_classifiers(trees)
            self._members, self._n_labels = list(trees), -1
            adaptive = np.array([type(tree) in _ADAPTIVE for tree in trees], np.bool_)
            if adaptive.any() != self._adaptive.any():
                structure = None
            self._adaptive = adaptive
        # Trees never forget a class.
        n = 0
        for tree in trees:
            n += len(tree.classes)
        if n != self._n_labels:
            self._n_labels = n
            labels = tuple(sorted(set().union(*(tree.classes for tree in trees)), key=sort_key))
            if labels != self.labels:
                self.labels, structure = labels, None
        if structure is None:
            self._leaves = ClassLeaves(self.schema, self.labels)
            self._structure = structure = Structure(self.schema, self._leaves, bool(self._adaptive.any()))
        return structure


class TreeRegressors(Evaluator):
    """Numbers of trees.

    Parameters
    ----------
    trees
        Gives the live list of trees.
    schema
        Of the rows.
    combine
        From numbers of shape (rows, trees) to shape (rows, 1).
    groups
        What else the path relies on.
    """

    def __init__(
        self, trees: Trees, schema: Schema, combine: Callable[[Array], Array] | None = None, *groups: Hashes
    ) -> None:
        self.relies_on = relied_on(TREES, REGRESSORS, *groups)
        _check_regressors(trees())
        self.schema = schema
        self._trees = trees
        self._combine = combine
        self._members: list[Any] = []
        self._structure: Structure | None = None
        self._V: Array = np.zeros((0, 0))

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        _check_rows(X)
        trees = self._trees()
        try:
            return self._predict(X, trees)
        except NotCoveredError:
            self._structure = None
            raise

    def _predict(self, X: Array, trees: list[Any]) -> Array:
        structure = self._structure
        if structure is None or structure.worn or trees != self._members:
            _check_regressors(trees)
            self._members = list(trees)
            if structure is None or structure.worn:
                adaptive = any(type(tree) in _ADAPTIVE for tree in trees)
                self._leaves = NumberLeaves(self.schema)
                self._structure = structure = Structure(self.schema, self._leaves, adaptive)
        leaves = self._leaves
        leaves.refresh(structure.follow(X, trees))
        shape = len(X), len(trees)
        if self._V.shape != shape:
            self._V = np.zeros(shape)
        if not estimate(
            X,
            structure.fields,
            structure.ends,
            structure.extras,
            structure.extra_at,
            leaves.modes,
            leaves.base,
            leaves.linear,
            self._V,
        ):
            raise NotCoveredError("so much cancels in a linear leaf that the order in which it adds up shows")
        return self._V if self._combine is None else self._combine(self._V)


@register(
    HoeffdingTreeClassifier,
    HoeffdingAdaptiveTreeClassifier,
    ExtremelyFastDecisionTreeClassifier,
    categorical=nominal,
)
def tree_classifier(model: Any, schema: Schema) -> Evaluator:
    """The evaluator of one classification tree."""
    trees = [model]
    return TreeClassifiers(lambda: trees, schema)


@register(HoeffdingTreeRegressor, HoeffdingAdaptiveTreeRegressor, categorical=nominal)
def tree_regressor(model: Any, schema: Schema) -> Evaluator:
    """The evaluator of one regression tree."""
    trees = [model]
    return TreeRegressors(lambda: trees, schema)
