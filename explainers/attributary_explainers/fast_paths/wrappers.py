"""Fast paths of models that wrap another one: samplers of training data, scaled targets, clipped predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from river import imblearn, preprocessing

from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import make_evaluator, read_as_categories, register
from ..evaluation.schema import Schema
from ..typing import Array


def _inner_classifier(model: Any) -> Any:
    return model.classifier


def _inner_regressor(model: Any) -> Any:
    return model.regressor


def _inner_model(model: Any) -> Any:
    return model.model


_INNER: dict[type, Callable[[Any], Any]] = {
    imblearn.RandomUnderSampler: _inner_classifier,
    imblearn.RandomOverSampler: _inner_classifier,
    imblearn.RandomSampler: _inner_classifier,
    imblearn.HardSamplingClassifier: _inner_model,
    imblearn.HardSamplingRegressor: _inner_model,
    imblearn.ChebyshevUnderSampler: _inner_regressor,
    imblearn.ChebyshevOverSampler: _inner_regressor,
    preprocessing.PredClipper: _inner_regressor,
    preprocessing.TargetStandardScaler: _inner_regressor,
    preprocessing.TargetMinMaxScaler: _inner_regressor,
}
"""How the wrapped model is reached, by the type of the wrapper."""


def _clipped(model: Any, P: Array) -> Array:
    clipped: Array = np.clip(P, model.y_min, model.y_max)
    return clipped


def _standard(model: Any, P: Array) -> Array:
    turned: Array = P * model.var.get() ** 0.5 + model.var.mean.get()
    return turned


def _min_max(model: Any, P: Array) -> Array:
    low = model.min.get()
    turned: Array = P if low == math.inf else P * (model.max.get() - low) + low
    return turned


_TURNS: dict[type, Callable[[Any, Array], Array]] = {
    preprocessing.PredClipper: _clipped,
    preprocessing.TargetStandardScaler: _standard,
    preprocessing.TargetMinMaxScaler: _min_max,
}


class WrapperEvaluator(Evaluator):
    """Evaluates a model that predicts what the wrapped one does, or that on another scale.

    Raises
    ------
    NotCoveredError
        The wrapped model is not covered, or the targets are scaled by another function.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._inner_of = _INNER[type(model)]
        self._turn = _TURNS.get(type(model))
        self._wrap()

    def _wrap(self) -> None:
        inverse = getattr(self.model, "inverse_func", None)
        if inverse is not None and inverse != getattr(self.model, "_unscale", None):
            raise NotCoveredError("the targets are scaled by another function")
        self._wrapped = self._inner_of(self.model)
        self._inner = make_evaluator(self._wrapped, self.schema)

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        model = self.model
        if self._inner_of(model) is not self._wrapped:
            self._wrap()
        P = self._inner.predict(X)
        self.labels = self._inner.labels
        return P if self._turn is None else self._turn(model, P)


def _categories(model: Any) -> frozenset[Any]:
    return read_as_categories(_INNER[type(model)](model))


register(*_INNER, categorical=_categories)(WrapperEvaluator)
