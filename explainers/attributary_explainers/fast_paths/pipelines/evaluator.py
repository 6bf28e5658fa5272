"""Pipelines: transformers for all rows at once, and the fast path of the last step on what they give."""

from __future__ import annotations

from typing import Any

from river import compose, preprocessing, stats

from ...evaluation.evaluator import Evaluator, NotCoveredError, check_instance, proved
from ...evaluation.registry import make_evaluator, read_as_categories, register
from ...evaluation.schema import Array, Schema
from .columns import steps_of
from .linear import LinearEvaluator
from .linear_models import KINDS
from .transforms import Plan

_HASHES: dict[type, dict[tuple[Any, str], str]] = {
    compose.Pipeline: {
        (compose.Pipeline, "predict_one"): "f36e4d1a4459",
        (compose.Pipeline, "predict_proba_one"): "27f04640d2f3",
        (compose.Pipeline, "transform_one"): "4d94a8d28b5b",
        (compose.Pipeline, "_transform_one"): "8aeeadc04d40",
        (compose.Pipeline, "_build_plan"): "0f8530dda2fd",
    },
    compose.TransformerUnion: {(compose.TransformerUnion, "transform_one"): "93dd79560cde"},
    compose.Select: {(compose.Select, "transform_one"): "8e60b678e265"},
    compose.Discard: {(compose.Discard, "transform_one"): "fbb9b2c75082"},
    compose.Prefixer: {(compose.Prefixer, "transform_one"): "d02bacada6b9"},
    compose.Suffixer: {(compose.Suffixer, "transform_one"): "74b5d0bc439f"},
    preprocessing.StandardScaler: {(preprocessing.StandardScaler, "transform_one"): "c7dbf785f266"},
    preprocessing.MinMaxScaler: {
        (preprocessing.MinMaxScaler, "transform_one"): "2b1b14e856fb",
        (stats.Min, "get"): "206d4234b932",
        (stats.Max, "get"): "d19d6c682243",
    },
    preprocessing.MaxAbsScaler: {
        (preprocessing.MaxAbsScaler, "transform_one"): "a2973cba360d",
        (stats.AbsMax, "get"): "eaafef587119",
    },
    preprocessing.OneHotEncoder: {(preprocessing.OneHotEncoder, "transform_one"): "08e1bb57ba1d"},
}
"""By the type of a step."""


class PipelineEvaluator(Evaluator):
    """A pipeline of covered transformers and a covered last step.

    A linear last step takes scalers and one-hot encoders into its kernel; any other one gets the transformed rows.

    Raises
    ------
    NotCoveredError
        A step is not covered, or pipelines learn while they predict.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._build()

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        if compose.Pipeline._LEARN_UNSUPERVISED_DURING_PREDICT:
            raise NotCoveredError("learn_during_predict: the rows would be learnt")
        if self._is_stale() or (self._plan is not None and self._plan.is_stale()):
            self._build()
        inner = self._inner
        P = inner.predict(X if self._plan is None else self._plan.apply(X))
        self.labels = inner.labels
        return P

    def _build(self) -> None:
        self._pipelines: list[tuple[Any, Any]] = []
        self._unions: list[tuple[dict[Any, Any], list[Any]]] = []
        self._hashes: dict[tuple[Any, str], str] = {}
        self._note(self.model)
        *transformers, last = steps_of(self.model)
        plan = Plan(self.schema, transformers)
        self._plan: Plan | None = None
        if type(last) in KINDS:
            self._inner: Evaluator = LinearEvaluator(last, self.schema, plan)
        else:
            inner = plan.inner_schema()
            if not read_as_categories(last) & inner.keys <= inner.categorical:
                raise NotCoveredError("numbers that the last step reads as categories have no codes")
            self._inner, self._plan = make_evaluator(last, inner), plan
        self.relies_on = tuple(dict.fromkeys(proved(self._hashes) + self._inner.relies_on))

    def _note(self, part: Any) -> None:
        """Remember what the pipeline is made of, so that a step that is added or replaced is seen."""
        check_instance(part)
        self._hashes.update(_HASHES.get(type(part), {}))
        if type(part) is compose.Pipeline:
            self._pipelines.append((part, part._plan))
            for step in steps_of(part):
                self._note(step)
        elif type(part) is compose.TransformerUnion:
            self._unions.append((part.transformers, list(part.transformers.values())))
            for step in part.transformers.values():
                self._note(step)

    def _is_stale(self) -> bool:
        # Until River has made its plan, steps may come without a trace.
        if any(plan is None or pipeline._plan is not plan for pipeline, plan in self._pipelines):
            return True
        return any(
            len(parts) != len(seen) or any(a is not b for a, b in zip(parts.values(), seen, strict=True))
            for parts, seen in self._unions
        )


def categories(pipeline: Any) -> frozenset[Any]:
    """Features that a pipeline reads as categories even where they are numbers, by their names before it."""
    if not pipeline.steps:
        return frozenset()
    *transformers, last = steps_of(pipeline)
    found = set(read_as_categories(last))
    for transformer in transformers:
        found |= _encoded(transformer)
    return frozenset(found)


def _encoded(part: Any) -> set[Any]:
    """Features that go to a one-hot encoder: those that it has seen or is to know, or that are selected for it."""
    if type(part) is preprocessing.OneHotEncoder:
        return set(part.values)
    if type(part) is compose.TransformerUnion:
        return {feature for inner in part.transformers.values() for feature in _encoded(inner)}
    if type(part) is compose.Pipeline:
        steps = steps_of(part)
        found = {feature for step in steps for feature in _encoded(step)}
        if steps and type(steps[0]) is compose.Select and any(type(s) is preprocessing.OneHotEncoder for s in steps):
            found |= steps[0].keys
        return found
    return set()


register(compose.Pipeline, categorical=categories)(PipelineEvaluator)
