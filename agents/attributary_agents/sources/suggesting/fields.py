"""Fields of sampled records: names, a level deep, and their values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from attributary_explainers.wording import printable

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    ((int, float), "number"),
    (str, "text"),
    (dict, "object"),
    ((list, tuple), "array"),
)


def expression_of(path: Sequence[str]) -> str:
    """Return the expression that reads a path; unusual names are quoted.

    Examples
    --------
    >>> expression_of(["after", "zip-code"])
    'after."zip-code"'
    """
    return ".".join(name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in path)


@dataclass
class Field:
    """A single field of the sampled records.

    Attributes
    ----------
    path
        Its names, from the object that the roles read.
    values
        Of each record; None where it has none.
    places
        Of each record its topic and partition, to see what rises with the offset.
    """

    path: tuple[str, ...]
    values: list[Any]
    places: Sequence[tuple[str, int]]

    @property
    def name(self) -> str:
        """The names, joined by dots: the feature's name."""
        return ".".join(self.path)

    @property
    def shown(self) -> str:
        """The name as it is printed."""
        return printable(self.name)

    @property
    def last(self) -> str:
        """Last name in lower case with underscores, as rules compare it."""
        inner = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.path[-1])  # customerId
        return re.sub(r"[^a-z0-9]+", "_", inner.lower()).strip("_")

    @property
    def expression(self) -> str:
        """The expression that reads it."""
        return expression_of(self.path)

    @cached_property
    def there(self) -> list[Any]:
        """The values without null."""
        return [value for value in self.values if value is not None]

    @cached_property
    def kinds(self) -> set[str]:
        """Kinds of the values: boolean, number, text, object, array or other."""
        return {kind_of(value) for value in self.there}

    @property
    def is_plain(self) -> bool:
        """Whether all values can be a feature."""
        return not self.kinds & {"object", "array", "other"}

    @cached_property
    def n_distinct(self) -> int:
        """Number of distinct values; 0 unless all can be a feature."""
        return len({(type(value).__name__ == "bool", value) for value in self.there}) if self.is_plain else 0

    @property
    def is_unique(self) -> bool:
        """Whether all records have a value, each a different value."""
        return len(self.there) == len(self.values) == self.n_distinct > 1

    @property
    def is_constant(self) -> bool:
        """Whether all records have the same value, or none has any."""
        return not self.there or (self.is_plain and self.n_distinct == 1 and len(self.there) == len(self.values))

    def rises(self, values: Sequence[Any] | None = None) -> bool:
        """Return whether values nearly never fall in a partition, nor all equal."""
        rising, steps = 0, 0
        last: dict[tuple[str, int], Any] = {}
        of = self.values if values is None else values
        for place, value in zip(self.places, of, strict=True):
            if value is None:
                continue
            if place in last:
                steps += 1
                rising += value >= last[place]
            last[place] = value
        return steps > 0 and rising >= 0.98 * steps and len(set(map(repr, of))) > 1


def kind_of(value: Any) -> str:
    """Return in a word of which kind a value is."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "other")


def fields_of(objects: Sequence[dict[str, Any]], places: Sequence[tuple[str, int]]) -> list[Field]:
    """Return the fields of objects in order, flattened by a level."""
    paths = dict.fromkeys(path for one in objects for path in _paths(one))
    return [Field(path, [_at(one, path) for one in objects], places) for path in paths]


def _paths(one: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in one.items():
        if isinstance(value, dict):
            for inner in value:
                yield name, inner
        else:
            yield (name,)


def _at(one: Any, path: Iterable[str]) -> Any:
    for name in path:
        if not isinstance(one, dict):
            return None
        one = one.get(name)
    return one
