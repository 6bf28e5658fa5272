"""Which evaluator a model has, by its exact type and not by inheritance."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .evaluator import Evaluator, Factory, NotCoveredError, check_instance
from .schema import NUMBERS, Schema

_FACTORIES: dict[type, Factory] = {}
_CATEGORICAL: dict[type, Callable[[Any], frozenset[Any]]] = {}
_NUMBERS: dict[type, Callable[[Any], frozenset[type]]] = {}
_GAPS: set[type] = set()


def register(
    *kinds: type,
    categorical: Callable[[Any], frozenset[Any]] | None = None,
    numbers: Callable[[Any], frozenset[type]] | None = None,
    gaps: bool = False,
) -> Callable[[Factory], Factory]:
    """Register an evaluator class, or other factory, for these exact types.

    Parameters
    ----------
    categorical
        The features that a model of this type reads as categories even where they are numbers: these need codes.
    numbers
        The types of numbers that a model of this type does not tell apart from a float.
    gaps
        Whether evaluators of this type take rows that lack features, with NaN for these. The models inside such a
        model have to take them, too.
    """

    def decorate(factory: Factory) -> Factory:
        for kind in kinds:
            _FACTORIES[kind] = factory
            if categorical is not None:
                _CATEGORICAL[kind] = categorical
            if gaps:
                _GAPS.add(kind)
            if numbers is not None:
                _NUMBERS[kind] = numbers
        return factory

    return decorate


def make_evaluator(model: Any, schema: Schema) -> Evaluator:
    """Return the fast path of a model.

    Raises
    ------
    NotCoveredError
        The model has no fast path; the message says why.
    """
    factory = _FACTORIES.get(type(model))
    if factory is None:
        raise NotCoveredError(f"there is no fast path for {type(model).__module__}.{type(model).__qualname__}")
    if schema.takes_gaps and type(model) not in _GAPS:
        raise NotCoveredError(f"there is no fast path of {type(model).__name__} for rows that lack features")
    check_instance(model)
    return factory(model, schema)


def takes_gaps(model: Any) -> bool:
    """Return whether there may be a fast path for rows that lack features."""
    return type(model) in _GAPS


def has_factory(model: Any) -> bool:
    """Return whether there may be a fast path for the model."""
    return type(model) in _FACTORIES


def read_as_categories(model: Any) -> frozenset[Any]:
    """Return the features, numeric or not, that a model reads as categories."""
    found = _CATEGORICAL.get(type(model))
    return frozenset() if found is None else found(model)


def number_types(model: Any) -> frozenset[type]:
    """Return the types of numbers that the model treats like a float."""
    found = _NUMBERS.get(type(model))
    return NUMBERS if found is None else found(model)


def categories_of_all(models: Iterable[Any]) -> frozenset[Any]:
    """Return the features, numeric or not, any model reads as categories."""
    return frozenset().union(*map(read_as_categories, models))


def numbers_of_all(models: Iterable[Any]) -> frozenset[type]:
    """Return the types of numbers that all these models treat like a float."""
    return NUMBERS.intersection(*map(number_types, models))
