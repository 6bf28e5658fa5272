"""Base of the configuration's sections, and types of numbers and times."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, GetPydanticSchema, WithJsonSchema
from pydantic_core import core_schema

PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Alpha = Annotated[float, Field(ge=1e-16, le=1)]
"""With the smallest nothing fades in any stream; whole numbers that follow from a smaller one would be too large."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*"


def seconds_of(value: Any) -> Any:
    """Return the seconds of a text such as 90s, 5m, 3h or 30d.

    Other values are returned as they are.

    Raises
    ------
    ValueError
        The text is no duration.
    """
    if not isinstance(value, str):
        return value
    if written := re.fullmatch(_DURATION, value):
        return float(written[1]) * _UNITS[written[2]]
    try:
        return float(value)
    except ValueError:
        said = f"expected a duration, such as 60s, 5m, 3h or 1d, or a number of seconds, got {value[:80]!r}"
        raise ValueError(said) from None


Duration = Annotated[
    float,
    BeforeValidator(seconds_of),
    Field(gt=0, allow_inf_nan=False),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": f"^{_DURATION}$"}]}
    ),
]
"""Seconds; written as a number of them, or as text with a unit: ms, s, m, h or d."""

Size = Annotated[
    ByteSize,
    Field(ge=10**7),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 10**7}, {"type": "string"}]}),
]
"""Bytes; written as a number of them, or as text with a unit, such as 500MB, 2GB or 2GiB."""


class Section(BaseModel):
    """A part of the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def one_of(choices: Iterable[str]) -> GetPydanticSchema:
    """Return the annotation of a text that has to be among the choices."""
    return GetPydanticSchema(lambda _type, _handler: core_schema.literal_schema(sorted(choices)))


def is_http(text: str) -> bool:
    """Return whether a text is the address of a server by HTTP."""
    try:
        parts = urlsplit(text)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_server and re.search(r"[\s\\\0]", text) is None
