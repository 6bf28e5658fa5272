"""Fast path of stacking: the probabilities of the members are columns for the model that decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from river import base, compose, ensemble

from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import categories_of_all, make_member, numbers_of_all, read_as_categories, register
from ..evaluation.schema import Schema
from ..typing import Array
from .members import Members


class StackingEvaluator(Evaluator):
    """Evaluates `ensemble.StackingClassifier`.

    Raises
    ------
    NotCoveredError
        A member or the model that decides is not covered, or a member leaves out labels that it gives no weight.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._members = Members(schema)
        self._members.follow(model.data)
        if any(map(_leaves_out, _parts(model))):
            raise NotCoveredError("a member of a stack leaves out labels")
        self._seen: Any = None
        self._decides: Any = None
        self._check_what_is_there()

    def _check_what_is_there(self) -> None:
        """Refuse a model that decides by an uncovered type at once, where the rows have columns before it learns."""
        if self.model.include_features:
            self._build([() for _ in self.model.data])

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        model = self.model
        found = self._members.predict(X, model.data)
        labels = self._members.labels_of_each()
        if (labels, model.include_features) != self._seen or model.meta_classifier is not self._decides:
            self._build(labels)
        stacked = np.empty((len(X), len(self._places)))
        stacked[:, self._places] = np.hstack([*found, X] if model.include_features else found)
        P = self._last.predict(stacked)
        self.labels = self._last.labels
        return P

    def _build(self, labels: list[tuple[Any, ...]]) -> None:
        model, outer, self._seen = self.model, self.schema, None
        given: list[Any] = [f"oof_{i}_{label}" for i, of_one in enumerate(labels) for label in of_one]
        names = [*given, *(outer.features if model.include_features else ())]
        if len(set(names)) < len(names):
            raise NotCoveredError("two columns have the same name")
        if not names:
            raise NotCoveredError("no member of a stack predicts yet")
        kept = [name for name in names if name in outer.categorical] if model.include_features else []
        if not read_as_categories(model.meta_classifier) & set(names) <= set(kept):
            raise NotCoveredError("numbers that the last step reads as categories have no codes")
        inner = outer.for_columns(names, kept, outer.numbers)
        for name in kept:
            inner.share(inner.position[name], outer, outer.position[name])
        self._places = np.array([inner.position[name] for name in names])
        self._last = make_member(model.meta_classifier, inner)
        self._seen, self._decides = (labels, model.include_features), model.meta_classifier


def _parts(model: Any) -> Iterator[Any]:
    """Yield the members of a stack, and what is in them."""
    inner: list[Any] = []
    if isinstance(model, compose.Pipeline):
        inner = list(model.steps.values())
    elif isinstance(model, base.Ensemble):
        inner = list(model.data)
    elif isinstance(model, base.Wrapper):
        inner = [model._wrapped_model]
    for part in inner:
        yield part
        yield from _parts(part)


def _leaves_out(part: Any) -> bool:
    # It names the labels of those members alone that have a weight.
    return type(part) is ensemble.BOLEClassifier


def _models(model: Any) -> list[Any]:
    return [*model.data, model.meta_classifier]


register(
    ensemble.StackingClassifier,
    categorical=lambda model: categories_of_all(_models(model)),
    numbers=lambda model: numbers_of_all(_models(model)),
    gaps=True,
)(StackingEvaluator)
