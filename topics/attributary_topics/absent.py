"""Marks of fields of events: left out where they do not apply, and the values that they have today."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

_MARK = "attributary-absent"


def absent() -> Any:
    """Return the field of a dataclass that is not on the wire where it is None; given by its name alone."""
    return field(default=None, kw_only=True, metadata={_MARK: True})


class Values(tuple[str, ...]):
    """Values that a text has today, in its annotation: further ones may come, and readers take them."""

    __slots__ = ()

    def __get_pydantic_json_schema__(self, *_: Any) -> dict[str, Any]:
        """Return the JSON Schema, by pydantic's protocol for annotations."""
        return {"type": "string", "enum": list(self)}


MODES = Values(("unlabelled", "mirror", "anomaly"))
"""Modes of a model whose observations have no labels that its loss is of."""

_KNOWN: dict[type, dict[str, bool]] = {}


def _fields(kind: type) -> dict[str, bool]:
    """Return the fields of a dataclass by name, and whether each may be left out; what is known is not asked again."""
    known = _KNOWN.get(kind)
    if known is None:
        known = _KNOWN[kind] = {one.name: bool(one.metadata.get(_MARK)) for one in fields(kind)}
    return known


def optional_fields(kind: type) -> frozenset[str]:
    """Return the names of the fields of a dataclass that are left out where they are None."""
    return frozenset(name for name, is_optional in _fields(kind).items() if is_optional)


def present_fields(data: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as they go over the wire, in their order.

    Raises
    ------
    TypeError
        It is no dataclass: the encoder says which type it cannot write.
    """
    return {
        name: value
        for name, is_optional in _fields(type(data)).items()
        if (value := getattr(data, name)) is not None or not is_optional
    }
