"""Forests and bags of Hoeffding trees: all trees in one evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
from river.ensemble import ADWINBaggingClassifier, BaggingClassifier, LeveragingBaggingClassifier
from river.forest import ARFClassifier, ARFRegressor
from river.metrics import Accuracy

from .evaluator import Evaluator, NotCoveredError
from .registry import register
from .schema import Array, Schema
from .trees import CLASSIFIERS, TreeClassifiers, TreeRegressors, nominal

BAGS = (BaggingClassifier, LeveragingBaggingClassifier, ADWINBaggingClassifier)


@register(ARFClassifier, categorical=nominal)
def forest_classifier(model: Any, schema: Schema) -> Evaluator:
    """The evaluator of an adaptive random forest for classification."""

    def weights() -> list[float]:
        if model.disable_weighted_vote:
            return [1.0] * len(model.data)
        return [value if value > 0.0 else 1.0 for value in map(_score, model._metrics)]

    return TreeClassifiers(lambda: model.data, schema, weights)  # type: ignore[no-any-return]


def _score(metric: Any) -> float:
    if type(metric) is Accuracy:
        matrix = metric.cm
        return matrix._total_true_positives / matrix.total_weight if matrix.total_weight else 0.0
    value: float = metric.get()
    return value


@register(ARFRegressor, categorical=nominal)
def forest_regressor(model: Any, schema: Schema) -> Evaluator:
    """The evaluator of an adaptive random forest for regression."""
    median = model.aggregation_method == "median"

    def combine(values: Array) -> Array:
        if not values.shape[1]:
            return np.zeros((len(values), 1))
        if median:
            return np.median(values, axis=1, keepdims=True)
        if not model.disable_weighted_vote:
            errors = np.array([metric.get() for metric in model._metrics])
            # River adds them up one by one.
            total = sum(errors.tolist(), 0.0)
            if total != 0:
                shares = total - errors
                with np.errstate(invalid="ignore", divide="ignore"):
                    shares /= shares.sum()
                values *= shares
        return values.mean(axis=1, keepdims=True)

    return TreeRegressors(lambda: model.data, schema, combine)


def forest_of_trees(model: Any, schema: Schema) -> Evaluator:
    """The evaluator of a bag whose members are Hoeffding trees.

    Raises
    ------
    NotCoveredError
        It is of another type, or its members are no such trees.
    """
    if type(model) not in BAGS:
        raise NotCoveredError(f"{type(model).__qualname__} is no bag of classifiers")
    if type(model.model) not in CLASSIFIERS:
        raise NotCoveredError("the members of the bag are no Hoeffding trees")
    return TreeClassifiers(lambda: model.data, schema, lambda: [1.0] * len(model.data))
