"""Conversion of JSON to and from bytes, for all topics."""

from __future__ import annotations

import json
import math
import re
from dataclasses import field, fields
from itertools import repeat
from typing import Any

import orjson

from .errors import InvalidRecordError

_MARK = "attributary-absent"


def absent() -> Any:
    """Return a dataclass field that is left out on the wire where it is None.

    It is given by its name alone."""
    return field(default=None, kw_only=True, metadata={_MARK: True})


class Values(tuple[str, ...]):
    """Values that a text has today, in its annotation.

    Further ones may come, and readers take them.
    """

    __slots__ = ()

    def __get_pydantic_json_schema__(self, *_: Any) -> dict[str, Any]:
        """Return the JSON Schema, by pydantic's protocol for annotations."""
        return {"type": "string", "enum": list(self)}


MODES = Values(("unlabelled", "mirror", "anomaly"))
"""Modes of a model whose observations have no labels that its loss is of."""

_KNOWN: dict[type, dict[str, bool]] = {}


def _fields(kind: type) -> dict[str, bool]:
    """Return the fields of a dataclass by name: whether each may be left out."""
    known = _KNOWN.get(kind)
    if known is None:
        known = _KNOWN[kind] = {one.name: bool(one.metadata.get(_MARK)) for one in fields(kind)}
    return known


def optional_fields(kind: type) -> frozenset[str]:
    """Return the names of the fields that are left out where they are None."""
    return frozenset(name for name, is_optional in _fields(kind).items() if is_optional)


def present_fields(data: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as on the wire, in their order.

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


_FIELDS = "__dataclass_fields__"
"""Where a dataclass has its fields by name: asked for directly, because `dataclasses.fields` is slow."""


_STRING_OR_NAN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|NaN', re.DOTALL)
"""A string, closed or not, or NaN outside of strings; its time is linear in the text, whatever that is."""


def decode_json(value: bytes, *, nan_is_null: bool = False) -> Any:
    """Decode strict JSON.

    Parameters
    ----------
    nan_is_null
        Whether NaN, as Python's `json` writes it, is read as null. It costs nothing where there is none.

    Raises
    ------
    InvalidRecordError
        `not_finite`, naming the field, where the only fault is a NaN or an infinity; `invalid_json` otherwise.
    """
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        if nan_is_null and b"NaN" in value:
            # The same strict parser reads what is left, so that its limits hold: depth, integers, UTF-8.
            without = _STRING_OR_NAN.sub(lambda found: b"null" if found[0] == b"NaN" else found[0], value)
            if without != value:
                return decode_json(without)
        field = _not_finite_field(value)
        if field is not None:
            raise InvalidRecordError("not_finite", field[0], "a finite number", field[1]) from None
        raise InvalidRecordError("invalid_json", "value", f"JSON ({error})", value) from None


def _not_finite_field(value: bytes) -> tuple[str, float] | None:
    # Python writes NaN and Infinity into JSON by default, so this is the commonest fault of producers.
    # The lenient parser is asked only after the strict one has refused, to say which field it was.
    try:
        return find_not_finite(json.loads(value))
    except (ValueError, RecursionError):
        return None


def find_not_finite(data: Any, path: str = "") -> tuple[str, float] | None:
    """Return path and value of the first number that is not finite.

    The data are decoded JSON or a dataclass."""
    if isinstance(data, float) and not math.isfinite(data):
        return path or "value", data
    if isinstance(data, dict):
        children = [(f"{path}.{key}" if path else str(key), item) for key, item in data.items()]
    elif isinstance(data, (list, tuple)):
        children = [(f"{path}[{i}]", item) for i, item in enumerate(data)]
    elif names := getattr(data, _FIELDS, ()):
        children = [(f"{path}.{name}" if path else name, getattr(data, name)) for name in names]
    else:
        return None
    return next((found for name, item in children if (found := find_not_finite(item, name))), None)


def encode_json(event: Any) -> bytes:
    """Encode a dataclass or plain data.

    Equal data in equal order gives equal bytes.

    The order of dicts is kept: it says which feature is the most important.

    Raises
    ------
    ValueError
        A number is NaN or infinite: orjson alone would write null in its place.
    """
    found = None if _is_finite(event) else find_not_finite(event)
    if found is not None:
        raise ValueError(f"{found[0]} must be finite or null, got {found[1]!r}")
    return orjson.dumps(event, default=present_fields, option=orjson.OPT_PASSTHROUGH_DATACLASS)


def _is_finite(data: Any) -> bool:
    """Return whether all numbers in `data` are finite."""
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, float):
            if not math.isfinite(value):
                return False
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
        elif names := getattr(value, _FIELDS, None):
            waiting += map(getattr, repeat(value), names)
    return True
