"""Checks and conversions of values that expressions find in records.

They are features, labels, predictions and ids; an error says how a value is wrong.

What formats decode beside plain JSON becomes a number: a decimal a float, dates and times milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from attributary_topics import InvalidRecordError
from attributary_topics.errors import shorten

LEAST, MOST = -(2**63), 2**64 - 1
"""Integers outside are not written as JSON."""

SCALAR = "a number, string or boolean"

_TRUE, _FALSE = frozenset(("true", "yes", "1", "t", "y")), frozenset(("false", "no", "0", "f", "n"))


def gave(value: Any) -> str:
    """Return in words the value that an expression has given.

    Examples
    --------
    >>> gave(None), gave({}), gave(True), gave("a"), gave(2)
    ('nothing', 'an object', 'true', "'a'", '2')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (dict, "an object"),
        ((list, tuple), "an array"),
        ((bytes, bytearray, memoryview), "bytes"),
    )
    return next((said for kind, said in kinds if isinstance(value, kind)), shorten(value, 60))


def wrong(reason: str, field: str, expected: str, expression: str, value: Any) -> InvalidRecordError:
    """Return the error for an expression that gives an unexpected value."""
    message = f"{field}: expected {expected}, {expression!r} gave {gave(value)}"
    return InvalidRecordError(reason, field, expected, value, message)


def as_plain(value: Any) -> Any:
    """Return decimals, dates and times as numbers; everything else as it is."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return round((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(value, date):
        return round(datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp() * 1000)
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    return value


def scalar(value: Any, field: str, expression: str) -> str | int | float | bool | None:
    """Return a feature, label or part of a prediction; None if null or NaN.

    Raises
    ------
    InvalidRecordError
        `wrong_type` or `not_finite`.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value  # type: ignore[no-any-return]
    if kind is int:
        if LEAST <= value <= MOST:
            return value  # type: ignore[no-any-return]
        raise wrong("wrong_type", field, "an integer of 64 bits", expression, value)
    if kind is float:
        if math.isfinite(value):
            return value  # type: ignore[no-any-return]
        if math.isnan(value):
            return None
        raise wrong("not_finite", field, "a finite number", expression, value)
    plain = as_plain(value)
    if type(plain) in (int, float):
        return scalar(plain, field, expression)
    raise wrong("wrong_type", field, SCALAR, expression, value)


def an_id(value: Any, field: str, expression: str) -> str | int | None:
    """Return an id; None where there is none.

    Raises
    ------
    InvalidRecordError
        `wrong_type`.
    """
    if value is None or type(value) is str or (type(value) is int and LEAST <= value <= MOST):
        return value or None if type(value) is str else value
    raise wrong("wrong_type", field, "text or an integer", expression, value)


def a_prediction(value: Any, field: str, expression: str) -> Any:
    """Return a logged prediction; None if there is none.

    It is a number, a label, or an object of label to probability.

    Raises
    ------
    InvalidRecordError
        `wrong_type` or `not_finite`.
    """
    if type(value) is not dict:
        return scalar(value, field, expression)
    for label, probability in value.items():
        found = scalar(probability, f"{field}.{label}", expression)
        if type(found) not in (int, float):
            raise wrong("wrong_type", f"{field}.{label}", "a number as probability", expression, probability)
    return value or None


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _to_number(value: Any) -> int | float:
    if isinstance(value, (bool, int, float)):
        return int(value) if isinstance(value, bool) else value
    try:
        return int(value)
    except ValueError:
        return float(value)


def _to_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        lower = value.strip().lower()
        if lower in _TRUE or lower in _FALSE:
            return lower in _TRUE
    elif value in (0, 1):
        return bool(value)
    raise ValueError


CASTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "text": (_to_text, "text"),
    "number": (_to_number, "a number, or text that is one"),
    "boolean": (_to_boolean, "true, false, yes, no, 1 or 0"),
}
"""By the name of a cast, how a value is turned into it, and what it takes in words."""


def cast(value: Any, kind: str, field: str, expression: str) -> Any:
    """Return a feature's value turned into another type; None stays None.

    Raises
    ------
    InvalidRecordError
        `wrong_type` or `not_finite`.
    """
    if value is None:
        return None
    turn, expected = CASTS[kind]
    try:
        return scalar(turn(value), field, expression)
    except ValueError:
        raise wrong("wrong_type", field, expected, expression, value) from None
