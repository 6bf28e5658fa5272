"""Fast paths of Hoeffding trees and forests: all trees at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from river.ensemble import ADWINBaggingClassifier, BaggingClassifier, BaggingRegressor, LeveragingBaggingClassifier
from river.forest import ARFClassifier, ARFRegressor
from river.tree import (
    ExtremelyFastDecisionTreeClassifier,
    HoeffdingAdaptiveTreeClassifier,
    HoeffdingAdaptiveTreeRegressor,
    HoeffdingTreeClassifier,
    HoeffdingTreeRegressor,
)

from ..core.evaluators.trees import CLASSIFIERS, REGRESSORS, ClassTrees, NumberTrees, UnknownStateError, write_medians
from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import register
from ..evaluation.schema import NotEncodableError, Schema
from ..typing import Array

BAGS = (BaggingClassifier, LeveragingBaggingClassifier, ADWINBaggingClassifier)

_REFUSALS = UnknownStateError, NotEncodableError


class _TreesEvaluator(Evaluator):
    """The base of tree evaluators: a native evaluator and its refusals.

    Parameters
    ----------
    model
        A tree, or an ensemble whose `data` is a list of trees.
    schema
        The schema of the rows.
    make
        Makes the native evaluator.
    """

    def __init__(self, model: Any, schema: Schema, make: Callable[[], Any]) -> None:
        self.model, self.schema = model, schema
        try:
            self._native = make()
        except _REFUSALS as reason:
            raise NotCoveredError(str(reason)) from None

    def _ask(self, X: Array) -> Array:
        try:
            found: Array = self._native.predict(X)
        except _REFUSALS as reason:
            self._native.forget()
            raise NotCoveredError(str(reason)) from None
        except BaseException:
            self._native.forget()
            raise
        return found


class TreeClassifiers(_TreesEvaluator):
    """Evaluates classification trees: their votes, each with its weight.

    Parameters
    ----------
    model, schema
        As for the base.
    is_ensemble, is_weighted, normalises
        See `ClassTrees`.
    """

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        is_ensemble: bool = False,
        is_weighted: bool = False,
        normalises: bool = False,
    ) -> None:
        super().__init__(model, schema, lambda: ClassTrees(model, schema, is_ensemble, is_weighted, normalises))
        self.labels: tuple[Any, ...] = ()

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        found = self._ask(X)
        self.labels = self._native.labels
        return found


class TreeRegressors(_TreesEvaluator):
    """Evaluator of regression trees, single or combined by an ensemble.

    Parameters
    ----------
    model, schema
        As for the base.
    combine
        From numbers of shape (rows, trees) to shape (rows, 1); None for a single tree.
    """

    def __init__(self, model: Any, schema: Schema, combine: Callable[[Array], Array] | None = None) -> None:
        super().__init__(model, schema, lambda: NumberTrees(model, schema, combine is not None))
        self._combine = combine

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        found = self._ask(X)
        return found if self._combine is None else self._combine(found)


def nominal(model: Any) -> frozenset[Any]:
    """Return the features a tree or forest always reads as categories."""
    return frozenset(model.nominal_attributes or ())


@register(
    HoeffdingTreeClassifier,
    HoeffdingAdaptiveTreeClassifier,
    ExtremelyFastDecisionTreeClassifier,
    categorical=nominal,
    gaps=True,
)
def tree_classifier(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of a classification tree."""
    return TreeClassifiers(model, schema)


@register(HoeffdingTreeRegressor, HoeffdingAdaptiveTreeRegressor, categorical=nominal, gaps=True)
def tree_regressor(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of a regression tree."""
    return TreeRegressors(model, schema)


@register(ARFClassifier, categorical=nominal, gaps=True)
def forest_classifier(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of an adaptive random forest for classification."""
    return TreeClassifiers(model, schema, is_ensemble=True, is_weighted=True, normalises=True)


@register(ARFRegressor, categorical=nominal, gaps=True)
def forest_regressor(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of an adaptive random forest for regression."""

    def combine(values: Array) -> Array:
        if not values.shape[1]:
            return np.zeros((len(values), 1))
        if model.aggregation_method == "median":
            medians = np.empty((len(values), 1))
            write_medians(values, medians)
            return medians
        if not model.disable_weighted_vote:
            errors = np.array([metric.get() for metric in model._metrics])
            # River adds them up one by one.
            total = sum(errors.tolist(), 0.0)
            if total != 0:
                shares = total - errors
                with np.errstate(invalid="ignore", divide="ignore"):
                    shares /= shares.sum()
                values *= shares
        mean: Array = values.mean(axis=1, keepdims=True)
        return mean

    return TreeRegressors(model, schema, combine)


def forest_of_trees(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of a bag whose members are Hoeffding trees.

    Raises
    ------
    NotCoveredError
        The model is no such bag, or its members are no Hoeffding trees.
    """
    if type(model) not in BAGS:
        raise NotCoveredError(f"{type(model).__qualname__} is no bag of classifiers")
    if type(model.model) not in CLASSIFIERS:
        raise NotCoveredError("the members of the bag are no Hoeffding trees")
    return TreeClassifiers(model, schema, is_ensemble=True, normalises=True)


def mean_of_trees(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of a bagging regressor with Hoeffding trees.

    Raises
    ------
    NotCoveredError
        The model is no such bag, or its members are no Hoeffding trees.
    """
    if type(model) is not BaggingRegressor:
        raise NotCoveredError(f"{type(model).__qualname__} is no bag of regressors")
    if type(model.model) not in REGRESSORS:
        raise NotCoveredError("the members of the bag are no Hoeffding trees")
    return TreeRegressors(model, schema, exact_mean)


def exact_mean(values: Array) -> Array:
    """Return the mean of each row as `statistics.mean`: shape (rows, 1).

    Raises
    ------
    NotCoveredError
        A value is not finite.
    """
    if not np.isfinite(values).all():
        raise NotCoveredError("a member of the ensemble predicts no finite number")
    return np.array([[math.fsum(row) / len(row)] for row in values.tolist()])
