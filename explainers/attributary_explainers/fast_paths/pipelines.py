"""Fast paths of pipelines of transformers, and of wrappers around a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
from river import compose, drift, imblearn, preprocessing

from ..evaluation.evaluator import Evaluator, NotCoveredError, check_instance
from ..evaluation.registry import make_evaluator, number_types, numbers_of_all, read_as_categories, register
from ..evaluation.schema import NUMBERS, Schema
from ..ordering import sort_key
from ..typing import Array
from .linear import KINDS, LinearColumns
from .transformers import Columns, Transformers, encoded, is_plain_standard, like_a_float, parts_of, steps_of


class PipelineEvaluator(Evaluator):
    """Evaluates a pipeline of covered transformers and a covered last step.

    The steps and what they have learnt are read at each call. A standard scaler goes into the sums of a linear model
    right behind it; any other step gets transformed rows.

    Raises
    ------
    NotCoveredError
        A step is not covered, or pipelines learn while they predict.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._transformers = Transformers()
        self._last: Any = None
        self._inner: Any = None
        self._behind: Any = None
        """The columns that the inner evaluator was made for: names, and sources where they have codes."""
        self._order: Any = None
        self._plan: Any = None
        """What River has made of the steps, when they were looked at."""
        self._scaler: Any = None
        """The standard scaler, where the steps are that and a linear model."""
        self._evaluator_of(*self._columns_of(np.empty((0, len(schema)))))

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        if compose.Pipeline._LEARN_UNSUPERVISED_DURING_PREDICT:
            raise NotCoveredError("learn_during_predict: the rows would be learnt")
        plan = self.model._plan
        if plan is None or plan is not self._plan:  # until River has made its plan, steps may come without a trace
            self._look()
        if self._scaler is not None:
            P: Array = self._inner.predict(X, self.schema.features, self._scaler)
            self.labels = self._inner.labels
            return P
        last, columns = self._columns_of(X)
        inner = self._evaluator_of(last, columns)
        if type(last) in KINDS:
            hot = [(column.codes, len(column.values), column.name) for column in columns.hot]
            P = inner.predict(columns.Z, columns.names, None, hot, columns.lost)
        else:
            P = inner.predict(columns.Z if self._order is None else np.take(columns.Z, self._order, axis=1))
        self.labels = inner.labels
        return P

    def _look(self) -> None:
        """See whether the steps are a standard scaler and a linear model."""
        steps, self._plan, self._scaler = steps_of(self.model), self.model._plan, None
        if len(steps) == 2 and is_plain_standard(steps[0]) and type(steps[1]) in KINDS and not self.schema.codes:
            check_instance(steps[0])
            self._linear(steps[1])
            self._scaler = steps[0]

    def _linear(self, last: Any) -> LinearColumns:
        if last is not self._last:
            check_instance(last)
            self._inner, self._last = LinearColumns(last), last
        inner: LinearColumns = self._inner
        return inner

    def _columns_of(self, X: Array) -> tuple[Any, Columns]:
        """Return the last step and the columns that it gets."""
        *transformers, last = steps_of(self.model)
        columns = Columns.of(self.schema, X)
        for part in transformers:
            columns = self._transformers.apply(part, columns)
        return last, columns.expanded() if columns.hot and type(last) not in KINDS else columns

    def _evaluator_of(self, last: Any, columns: Columns) -> Any:
        """Return the last step's evaluator, the present if it still fits."""
        if type(last) in KINDS:
            if columns.has_codes:
                raise NotCoveredError("a linear model gets categories")
            if any(column.encoder.drop_first for column in columns.hot):
                raise NotCoveredError("drop_first before a linear model")
            return self._linear(last)
        if columns.lost:
            raise NotCoveredError("a scaler makes NaN of a number")
        if not columns.names:
            raise NotCoveredError("the transformers leave no column")
        behind = columns.names, columns.sources
        if last is not self._last or behind != self._behind:
            self._last = None  # until the end: what is not covered now is not covered the next time
            self._inner = self._made(last, columns)
            self._last, self._behind = last, behind
        return self._inner

    def _made(self, last: Any, columns: Columns) -> Evaluator:
        names, outer = columns.names, self.schema
        kept = dict(zip(names, columns.sources, strict=True))
        coded = {name: source for name, source in kept.items() if source in outer.codes}
        # What comes out of a scaler or an encoder has types of its own.
        numbers = NUMBERS if None in columns.sources else outer.numbers
        inner = outer.for_columns(names, coded, numbers)
        if not read_as_categories(last) & inner.keys <= inner.categorical:
            raise NotCoveredError("numbers that the last step reads as categories have no codes")
        for name, source in coded.items():
            inner.share(inner.position[name], outer, source)
        order = sorted(range(len(names)), key=lambda i: sort_key(names[i]))
        self._order = None if order == list(range(len(names))) else order
        return make_evaluator(last, inner)


def categories(pipeline: Any) -> frozenset[Any]:
    """Return input features, numeric or not, a pipeline reads as categories."""
    if not pipeline.steps:
        return frozenset()
    *transformers, last = steps_of(pipeline)
    return read_as_categories(last).union(*map(encoded, transformers))


def numbers(pipeline: Any) -> frozenset[type]:
    """Return the types of numbers that a pipeline treats like a float."""
    last = steps_of(pipeline)[-1:]
    return like_a_float(parts_of(pipeline)) & numbers_of_all(
        step for step in last if type(step) is not compose.Pipeline
    )


register(compose.Pipeline, categorical=categories, numbers=numbers, gaps=True)(PipelineEvaluator)


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
