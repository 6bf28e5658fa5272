"""Fast paths of models that wrap another one: samplers, retraining, selection, scaled targets, clipped predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from river import active, compose, conf, drift, imblearn, model_selection, preprocessing

from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import categories_of_all, make_evaluator, make_member, numbers_of_all, register
from ..evaluation.schema import NUMBERS, Schema
from ..typing import Array, Ints


def _inner_classifier(model: Any) -> Any:
    return model.classifier


def _inner_regressor(model: Any) -> Any:
    return model.regressor


def _inner_model(model: Any) -> Any:
    return model.model


def _best_model(model: Any) -> Any:
    best = model.best_model
    return model.models[0] if best is None else best


_INNER: dict[type, Callable[[Any], Any]] = {
    imblearn.RandomUnderSampler: _inner_classifier,
    imblearn.RandomOverSampler: _inner_classifier,
    imblearn.RandomSampler: _inner_classifier,
    imblearn.HardSamplingClassifier: _inner_model,
    imblearn.HardSamplingRegressor: _inner_model,
    imblearn.ChebyshevUnderSampler: _inner_regressor,
    imblearn.ChebyshevOverSampler: _inner_regressor,
    drift.DriftRetrainingClassifier: _inner_model,
    active.EntropySampler: _inner_classifier,
    conf.RegressionJackknife: _inner_regressor,
    compose.TargetTransformRegressor: _inner_regressor,
    preprocessing.PredClipper: _inner_regressor,
    preprocessing.TargetStandardScaler: _inner_regressor,
    preprocessing.TargetMinMaxScaler: _inner_regressor,
    model_selection.GreedyRegressor: _best_model,
    model_selection.BanditRegressor: _best_model,
    model_selection.BanditClassifier: _best_model,
    model_selection.SuccessiveHalvingRegressor: _best_model,
    model_selection.SuccessiveHalvingClassifier: _best_model,
}
"""How the wrapped model is reached, by the type of the wrapper."""

_NAMING = frozenset((imblearn.RandomUnderSampler, imblearn.RandomOverSampler, imblearn.RandomSampler))
"""Wrappers that name the label that the wrapped model names, also where that has no probabilities."""


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


def _inverse(model: Any, P: Array) -> Array:
    """Apply the user's own function to each prediction, as the model does."""
    numbers = P[:, 0].tolist()
    if not all(map(math.isfinite, numbers)):
        raise NotCoveredError("the wrapped model predicts no finite number")
    try:
        found = [model.inverse_func(number) for number in numbers]
    except Exception as error:  # noqa: BLE001 - of the user's function: the model itself is to raise it
        raise NotCoveredError(f"the function of the targets raises {type(error).__name__}") from None
    if not NUMBERS.issuperset(map(type, found)):
        raise NotCoveredError("the function of the targets returns no number")
    return np.array(found, dtype=np.float64)[:, None]


_TURNS: dict[type, Callable[[Any, Array], Array]] = {
    compose.TargetTransformRegressor: _inverse,
    preprocessing.PredClipper: _clipped,
    preprocessing.TargetStandardScaler: _standard,
    preprocessing.TargetMinMaxScaler: _min_max,
}


class WrapperEvaluator(Evaluator):
    """Evaluates a model that predicts what one of the wrapped ones does, or that on another scale.

    Raises
    ------
    NotCoveredError
        The wrapped model is not covered, or the targets are scaled by another function.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._inner_of = _INNER[type(model)]
        self._turn = _TURNS.get(type(model))
        self._made: list[tuple[Any, Evaluator]] = []
        self._inner = self._current()
        self.names_label_alone = self._inner.names_label_alone

    def _current(self) -> Evaluator:
        """Return the path of the model that answers now; those of the others that may answer again are kept."""
        wrapped = self._inner_of(self.model)
        for model, evaluator in self._made:
            if model is wrapped:
                return evaluator
        inverse = getattr(self.model, "_unscale", None)
        if inverse is not None and self.model.inverse_func != inverse:
            raise NotCoveredError("the targets are scaled by another function")
        make = make_evaluator if type(self.model) in _NAMING else make_member
        made = make(wrapped, self.schema)
        there = {id(model) for model in _wrapped(self.model)}
        self._made = [(model, evaluator) for model, evaluator in self._made if id(model) in there]
        self._made.append((wrapped, made))
        return made

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        return self._predict(X, None)

    def predict_along(self, X: Array, order: Ints) -> Array:
        """See `Evaluator`."""
        return self._predict(X, order)

    def _predict(self, X: Array, order: Ints | None) -> Array:
        inner = self._inner = self._current()
        P = inner.predict(X) if order is None else inner.predict_along(X, order)
        self.labels, self.names_label_alone = inner.labels, inner.names_label_alone
        return P if self._turn is None else self._turn(self.model, P)


def _wrapped(model: Any) -> list[Any]:
    """Return the models of which one answers."""
    inner = _INNER[type(model)]
    return list(model.models) if inner is _best_model else [inner(model)]


register(
    *_INNER,
    categorical=lambda model: categories_of_all(_wrapped(model)),
    numbers=lambda model: numbers_of_all(_wrapped(model)),
    gaps=True,
)(WrapperEvaluator)
