"""What the sections of the configuration have in common: their base, and the types of numbers."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from attributary_explainers.wording import did_you_mean

PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Alpha = Annotated[float, Field(ge=1e-16, le=1)]
"""With the smallest nothing fades in any stream; whole numbers that follow from a smaller one would be too large."""

_DURATION = r"(\d+(?:\.\d+)?) ?([smhd]?)"
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _in_seconds(value: Any) -> Any:
    """Return the seconds that a text such as `3h` means; any other value as it is, for the type to judge."""
    if not isinstance(value, str):
        return value
    found = re.fullmatch(_DURATION, value.strip())
    if found is None:
        raise ValueError(f"expected a duration, such as 60s, 5m, 3h or 1d, or a number of seconds, got {value[:80]!r}")
    return float(found[1]) * _SECONDS[found[2]]


Duration = Annotated[
    float,
    BeforeValidator(_in_seconds),
    Field(gt=0, allow_inf_nan=False),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": f"^{_DURATION}$"}]}
    ),
]
"""Seconds, written as a number or as a text with a unit: s, m, h or d."""


class Section(BaseModel):
    """A part of the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def one_of(value: str, choices: Any) -> str:
    """Return the value; raise ValueError where it is none of the choices."""
    if value not in choices:
        raise ValueError(f"expected one of {', '.join(sorted(choices))}{did_you_mean(value, choices)}")
    return value
