"""Fast paths of wrappers: samplers, retraining, scaled, clipped targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
from river import drift, imblearn, preprocessing

from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import make_evaluator, number_types, read_as_categories, register
from ..evaluation.schema import Schema
from ..typing import Array


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


_SAMPLERS = (imblearn.RandomUnderSampler, imblearn.RandomOverSampler, imblearn.RandomSampler)
_INNER: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys(_SAMPLERS, attrgetter("classifier")),
    drift.DriftRetrainingClassifier: attrgetter("model"),
    preprocessing.PredClipper: attrgetter("regressor"),
    preprocessing.TargetStandardScaler: attrgetter("regressor"),
    preprocessing.TargetMinMaxScaler: attrgetter("regressor"),
}
"""How the wrapped model is reached, by the type of the wrapper."""
_TURNS: dict[type, Callable[[Any, Array], Array]] = {
    preprocessing.PredClipper: _clipped,
    preprocessing.TargetStandardScaler: _standard,
    preprocessing.TargetMinMaxScaler: _min_max,
}


class WrapperEvaluator(Evaluator):
    """An evaluator of a wrapper that predicts as its model, or rescales it.

    Raises
    ------
    NotCoveredError
        The wrapped model is not covered, or the targets are scaled by another function.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._turn = _TURNS.get(type(model))
        self._wrapped: Any = None
        self._current()

    def _current(self) -> Evaluator:
        wrapped = _inner(self.model)
        if wrapped is not self._wrapped:
            inverse = getattr(self.model, "_unscale", None)
            if inverse is not None and self.model.inverse_func != inverse:
                raise NotCoveredError("the targets are scaled by another function")
            self._inner, self._wrapped = make_evaluator(wrapped, self.schema), wrapped
        return self._inner

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        inner = self._current()
        P = inner.predict(X)
        self.labels = inner.labels
        return P if self._turn is None else self._turn(self.model, P)


def _inner(model: Any) -> Any:
    return _INNER[type(model)](model)


register(
    *_INNER,
    categorical=lambda model: read_as_categories(_inner(model)),
    numbers=lambda model: number_types(_inner(model)),
    gaps=True,
)(WrapperEvaluator)
