"""Fast path of pipelines: all rows transformed, then the last step's path."""

from __future__ import annotations

from typing import Any

import numpy as np
from river import compose

from ..evaluation.evaluator import Evaluator, NotCoveredError, check_instance
from ..evaluation.registry import make_evaluator, numbers_of_all, read_as_categories, register
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
