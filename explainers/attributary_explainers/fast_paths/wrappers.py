"""Models that wrap another one: samplers of training data, scaled targets, clipped predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import river.utils.math
from river import imblearn, preprocessing

from ..evaluation.evaluator import Evaluator, NotCoveredError, proved
from ..evaluation.registry import make_evaluator, read_as_categories, register
from ..evaluation.schema import Array, Schema

_MATH: Any = river.utils.math


def _inner_classifier(model: Any) -> Any:
    return model.classifier


def _inner_regressor(model: Any) -> Any:
    return model.regressor


def _inner_model(model: Any) -> Any:
    return model.model


_INNER: dict[type, tuple[Callable[[Any], Any], dict[tuple[Any, str], str]]] = {
    **{
        kind: (_inner_classifier, {(kind, "predict_proba_one"): "dfb63ff0ebaa"})
        for kind in (imblearn.RandomUnderSampler, imblearn.RandomOverSampler, imblearn.RandomSampler)
    },
    imblearn.HardSamplingClassifier: (
        _inner_model,
        {(imblearn.HardSamplingClassifier, "predict_proba_one"): "eaf8ffc2ea0c"},
    ),
    imblearn.HardSamplingRegressor: (_inner_model, {(imblearn.HardSamplingRegressor, "predict_one"): "227280c9f149"}),
    **{
        kind: (_inner_regressor, {(kind, "predict_one"): "07f0c4d4baaf"})
        for kind in (imblearn.ChebyshevUnderSampler, imblearn.ChebyshevOverSampler)
    },
    preprocessing.PredClipper: (
        _inner_regressor,
        {(preprocessing.PredClipper, "predict_one"): "cbf6e250b7d1", (_MATH, "clamp"): "40f38f96bb2f"},
    ),
    preprocessing.TargetStandardScaler: (
        _inner_regressor,
        {
            (preprocessing.TargetStandardScaler, "predict_one"): "f2471d74cf1c",
            (preprocessing.TargetStandardScaler, "_unscale"): "21511561b485",
        },
    ),
    preprocessing.TargetMinMaxScaler: (
        _inner_regressor,
        {
            (preprocessing.TargetMinMaxScaler, "predict_one"): "f2471d74cf1c",
            (preprocessing.TargetMinMaxScaler, "_unscale"): "3e9df6b8346a",
        },
    ),
}


def _clipped(model: Any, P: Array) -> Array:
    clipped: Array = np.clip(P, model.y_min, model.y_max)
    return clipped


def _standard(model: Any, P: Array) -> Array:
    _check_inverse(model, preprocessing.TargetStandardScaler._unscale)
    turned: Array = P * model.var.get() ** 0.5 + model.var.mean.get()
    return turned


def _min_max(model: Any, P: Array) -> Array:
    _check_inverse(model, preprocessing.TargetMinMaxScaler._unscale)
    low = model.min.get()
    turned: Array = P if low == math.inf else P * (model.max.get() - low) + low
    return turned


def _check_inverse(model: Any, function: Any) -> None:
    inverse = model.inverse_func
    if getattr(inverse, "__self__", None) is not model or inverse.__func__ is not function:
        raise NotCoveredError("the targets are scaled by another function")


_TURNS: dict[type, Callable[[Any, Array], Array]] = {
    preprocessing.PredClipper: _clipped,
    preprocessing.TargetStandardScaler: _standard,
    preprocessing.TargetMinMaxScaler: _min_max,
}


class WrapperEvaluator(Evaluator):
    """A model that predicts what the wrapped one does, or that on another scale.

    Raises
    ------
    NotCoveredError
        The wrapped model is not covered, or the targets are scaled by another function.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._inner_of, hashes = _INNER[type(model)]
        self._turn = _TURNS.get(type(model))
        self._proved = proved(hashes)
        self._wrap()

    def _wrap(self) -> None:
        self._wrapped = self._inner_of(self.model)
        self._inner = make_evaluator(self._wrapped, self.schema)
        self.relies_on = self._proved + self._inner.relies_on

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        model = self.model
        if self._inner_of(model) is not self._wrapped:
            self._wrap()
        P = self._inner.predict(X)
        self.labels = self._inner.labels
        return P if self._turn is None else self._turn(model, P)


def _categories(model: Any) -> frozenset[Any]:
    return read_as_categories(_INNER[type(model)][0](model))


register(*_INNER, categorical=_categories)(WrapperEvaluator)
