"""Fast paths of forests and bags of Hoeffding trees: all trees in one evaluation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from river.ensemble import ADWINBaggingClassifier, BaggingClassifier, BaggingRegressor, LeveragingBaggingClassifier
from river.forest import ARFClassifier, ARFRegressor

from ...evaluation.evaluator import Evaluator, NotCoveredError
from ...evaluation.registry import register
from ...evaluation.schema import Schema
from ...typing import Array
from .classifiers import CLASSIFIER_TREES, TreeClassifiers
from .estimates import middle
from .evaluator import nominal
from .regressors import REGRESSOR_TREES, TreeRegressors

BAGS = (BaggingClassifier, LeveragingBaggingClassifier, ADWINBaggingClassifier)


@register(ARFClassifier, categorical=nominal, gaps=True)
def forest_classifier(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of an adaptive random forest for classification."""

    def metrics() -> Any:
        return None if model.disable_weighted_vote else model._metrics

    return TreeClassifiers(lambda: model.data, schema, metrics, normalises=True)


@register(ARFRegressor, categorical=nominal, gaps=True)
def forest_regressor(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of an adaptive random forest for regression."""

    def combine(values: Array) -> Array:
        if not values.shape[1]:
            return np.zeros((len(values), 1))
        if model.aggregation_method == "median":
            medians = np.empty((len(values), 1))
            middle(values, medians)
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

    return TreeRegressors(lambda: model.data, schema, combine)


def mean_of_trees(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of a bagging regressor whose members are Hoeffding trees.

    Raises
    ------
    NotCoveredError
        The model is no such bag, or its members are no Hoeffding trees.
    """
    if type(model) is not BaggingRegressor:
        raise NotCoveredError(f"{type(model).__qualname__} is no bag of regressors")
    if type(model.model) not in REGRESSOR_TREES:
        raise NotCoveredError("the members of the bag are no Hoeffding trees")
    return TreeRegressors(lambda: model.data, schema, exact_mean)


def exact_mean(values: Array) -> Array:
    """Return the mean of each row, as `statistics.mean` has it: shape (rows, 1).

    Raises
    ------
    NotCoveredError
        A value is not finite.
    """
    if not np.isfinite(values).all():
        raise NotCoveredError("a member of the ensemble predicts no finite number")
    return np.array([[math.fsum(row) / len(row)] for row in values.tolist()])


def forest_of_trees(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of a bag whose members are Hoeffding trees.

    Raises
    ------
    NotCoveredError
        The model is no such bag, or its members are no Hoeffding trees.
    """
    if type(model) not in BAGS:
        raise NotCoveredError(f"{type(model).__qualname__} is no bag of classifiers")
    if type(model.model) not in CLASSIFIER_TREES:
        raise NotCoveredError("the members of the bag are no Hoeffding trees")
    return TreeClassifiers(lambda: model.data, schema, normalises=True)
