"""Reads durations: a number of seconds, or text such as 90s, 5m, 3h, 30d."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")


def seconds_of(value: Any) -> Any:
    """Return the seconds that a duration says; what is no text is left as it is.

    Raises
    ------
    ValueError
        The text is no duration.
    """
    if not isinstance(value, str):
        return value
    written = _WRITTEN.fullmatch(value)
    if written is not None:
        return float(written.group(1)) * _UNITS[written.group(2)]
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"expected a duration such as 90s, 5m, 3h or 30d, or a number of seconds, got {value!r}")
    return number


Duration = Annotated[
    float,
    BeforeValidator(seconds_of),
    Field(gt=0, allow_inf_nan=False),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}),
]
"""Seconds; written as a number of them, or as text with a unit: ms, s, m, h or d."""
