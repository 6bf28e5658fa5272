"""What the sections of the configuration have in common: their base, and the types of numbers, times and sizes."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, WithJsonSchema

from attributary_explainers.wording import did_you_mean

PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Alpha = Annotated[float, Field(ge=1e-16, le=1)]
"""With the smallest nothing fades in any stream; whole numbers that follow from a smaller one would be too large."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*"


def seconds_of(value: Any) -> Any:
    """Return the seconds of a text such as 90s, 5m, 3h or 30d; what is no text as it is.

    Raises
    ------
    ValueError
        The text is no duration.
    """
    if not isinstance(value, str):
        return value
    if (written := re.fullmatch(_DURATION, value)) is None:
        raise ValueError(f"expected a duration, such as 60s, 5m, 3h or 1d, or a number of seconds, got {value[:80]!r}")
    return float(written[1]) * _UNITS[written[2] or "s"]


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


def one_of(value: str, choices: Any) -> str:
    """Return the value; raise ValueError where it is none of the choices."""
    if value not in choices:
        near = did_you_mean(value, choices)
        raise ValueError(f"expected one of {', '.join(sorted(choices))}, got {value!r}{near}")
    return value
