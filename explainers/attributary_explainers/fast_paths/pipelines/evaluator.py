"""Fast path of pipelines: transformers act on all rows at once, then the fast path of the last step takes over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from river import compose, preprocessing

from ...evaluation.evaluator import Evaluator, NotCoveredError, check_instance
from ...evaluation.registry import make_evaluator, numbers_of_all, read_as_categories, register
from ...evaluation.schema import Schema
from ...typing import Array, Ints
from .columns import CHOOSING, choice, like_a_float, steps_of, types_of
from .linear import LinearEvaluator
from .linear_models import KINDS
from .transforms import Plan


class PipelineEvaluator(Evaluator):
    """Evaluates a pipeline of covered transformers and a covered last step.

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
        return self._predict(X, None)

    def predict_along(self, X: Array, order: Ints) -> Array:
        """See `Evaluator`."""
        return self._predict(X, order)

    def _predict(self, X: Array, order: Ints | None) -> Array:
        if compose.Pipeline._LEARN_UNSUPERVISED_DURING_PREDICT:
            raise NotCoveredError("learn_during_predict: the rows would be learnt")
        # Nearly always one comparison says it all.
        is_as_built = self._alone is not None and self.model._plan is self._alone
        if not is_as_built and (
            not self._is_built or self._is_stale() or (self._plan is not None and self._plan.is_stale())
        ):
            self._build()
        inner = self._inner
        if self._plan is not None:
            X = self._plan.apply(X)
        P = inner.predict(X) if order is None else inner.predict_along(X, order)
        self.labels = inner.labels
        return P

    def _build(self) -> None:
        self._is_built = False  # until the end: what is not covered now is not covered the next time
        self._alone: Any = None
        """What River has made of the steps, where nothing else can change which columns the last one gets."""
        self._pipelines: list[tuple[Any, Any]] = []
        self._unions: list[tuple[dict[Any, Any], list[Any]]] = []
        self._selects: list[Any] = []
        self._choices: list[tuple[Any, Any]] = []
        self._note(self.model)
        self._types = self._types_now()
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
        self.names_label_alone = self._inner.names_label_alone
        if self._plan is None and len(self._pipelines) == 1 and not (self._unions or self._selects or self._choices):
            self._alone = self._pipelines[0][1]
        self._is_built = True

    def _note(self, part: Any) -> None:
        """Remember what the pipeline is made of, so that a step that is added or replaced is seen."""
        check_instance(part)
        if type(part) is compose.Pipeline:
            self._pipelines.append((part, part._plan))
            for step in steps_of(part):
                self._note(step)
        elif type(part) is compose.TransformerUnion:
            self._unions.append((part.transformers, list(part.transformers.values())))
            for step in part.transformers.values():
                self._note(step)
        elif type(part) is compose.SelectType:
            self._selects.append(part)
        elif type(part) in CHOOSING:
            self._choices.append((part, choice(part)))

    def _types_now(self) -> dict[int, tuple[int, frozenset[type]]]:
        """Return how many categories each coded column has, and their types, where a step selects by type."""
        schema = self.schema
        return {c: (len(codes), types_of(c, schema)) for c, codes in schema.codes.items()} if self._selects else {}

    def _types_changed(self) -> bool:
        seen, codes = self._types, self.schema.codes
        if all(len(codes[column]) == n for column, (n, _) in seen.items()):
            return False
        now = self._types_now()
        if any(now[column][1] != kinds for column, (_, kinds) in seen.items()):
            return True
        self._types = now
        return False

    def _is_stale(self) -> bool:
        if self._selects and self._types_changed():
            return True
        if self._choices and any(choice(part) != chosen for part, chosen in self._choices):
            return True
        # Until River has made its plan, steps may come without a trace.
        for pipeline, plan in self._pipelines:  # without a generator: it is asked at each observation
            if plan is None or pipeline._plan is not plan:
                return True
        return bool(self._unions) and any(
            len(parts) != len(seen) or any(a is not b for a, b in zip(parts.values(), seen, strict=True))
            for parts, seen in self._unions
        )


def categories(pipeline: Any) -> frozenset[Any]:
    """Return the features that a pipeline reads as categories even where they are numbers, by their names before it."""
    if not pipeline.steps:
        return frozenset()
    *transformers, last = steps_of(pipeline)
    found = set(read_as_categories(last))
    for transformer in transformers:
        found |= _encoded(transformer)
    return frozenset(found)


_ENCODERS = (preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder)


def _encoded(part: Any) -> set[Any]:
    """Return the features that go to encoders: those seen, those to be known, those selected for one."""
    if type(part) in _ENCODERS:
        return set(part.values)
    if type(part) is compose.TransformerUnion:
        return {feature for inner in part.transformers.values() for feature in _encoded(inner)}
    if type(part) is compose.Pipeline:
        steps = steps_of(part)
        found = {feature for step in steps for feature in _encoded(step)}
        if steps and type(steps[0]) is compose.Select and any(type(s) in _ENCODERS for s in steps):
            found |= steps[0].keys
        return found
    return set()


def numbers(pipeline: Any) -> frozenset[type]:
    """Return the types of numbers that no step of a pipeline tells apart from a float."""
    last = steps_of(pipeline)[-1:]
    return like_a_float(_selects(pipeline)) & numbers_of_all(
        step for step in last if type(step) is not compose.Pipeline
    )


def _selects(part: Any) -> Iterator[Any]:
    if type(part) is compose.SelectType:
        yield part
    elif type(part) is compose.Pipeline:
        for step in steps_of(part):
            yield from _selects(step)
    elif type(part) is compose.TransformerUnion:
        for inner in part.transformers.values():
            yield from _selects(inner)


register(compose.Pipeline, categorical=categories, numbers=numbers, gaps=True)(PipelineEvaluator)
