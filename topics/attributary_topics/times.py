"""Reading of event times: numbers since 1970, or RFC 3339.

A number is of seconds, milliseconds, microseconds or nanoseconds."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

_SCALES = ((1e11, 1000.0), (1e14, 1.0), (1e17, 1e-3), (math.inf, 1e-6))
"""Up to which size a number has which unit, as the factor to milliseconds; seconds reach the year 5138 like this."""

UNITS = {1000.0: "s", 1.0: "ms", 1e-3: "µs", 1e-6: "ns"}


def scale_of(number: float) -> float:
    """Return the factor to milliseconds of a number since 1970, by its size."""
    return next(factor for most, factor in _SCALES if abs(number) < most or most == math.inf)


def read_time(value: Any) -> int:
    """Return an event time in milliseconds since 1970.

    Parameters
    ----------
    value
        A number, whose unit is guessed by its size, or a text in RFC 3339 (a time zone left out is UTC).

    Raises
    ------
    ValueError
        It is none of these.
    """
    if isinstance(value, bool) or value is None:
        raise ValueError("expected a time")
    if isinstance(value, int):
        factor = scale_of(value)
        return value * 1000 if factor == 1000 else value if factor == 1 else value // round(1 / factor)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("expected a time")
        return round(value * scale_of(value))
    if isinstance(value, str):
        at = datetime.fromisoformat(value)
        try:
            return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
        except OverflowError:  # a time zone moves the first or last day of all years out of them
            raise ValueError("expected a time") from None
    raise ValueError("expected a time")
