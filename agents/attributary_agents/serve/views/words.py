"""Words, numbers and errors of answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attributary_explainers import loss_statement
from attributary_explainers.ranking import shares_of
from attributary_explainers.wording import printable, show_count

from ...errors import AttributaryError
from ..answers import Loss
from ..store.rows import DIGITS, rounded

NAME_LENGTH = 48
"""Longest name within a sentence; a longer one is cut in its middle."""


def name(text: object, most: int = NAME_LENGTH) -> str:
    """Return a name for a sentence: control characters out, length limited.

    A long name is cut in the middle.
    """
    shown = printable(text)
    if len(shown) <= most:
        return shown
    head = (most - 1) // 2
    return f"{shown[: most - 1 - head]}…{shown[len(shown) - head :]}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun in the right number.

    Examples
    --------
    >>> counted(1, "dead letter"), counted(3, "dead letter"), counted(2, "waits", "wait")
    ('1 dead letter', '3 dead letters', '2 wait')
    """
    return f"{show_count(n)} {one if n == 1 else many or one + 's'}"


def duration(ms: int) -> str:
    """Return a duration in words, in the largest unit that gives two or more.

    The smallest unit is the minute.

    Examples
    --------
    >>> [duration(n * 60_000) for n in (0, 1, 12, 90, 180, 1440, 3000)]
    ['less than a minute', '1 minute', '12 minutes', '90 minutes', '3 hours', '24 hours', '2 days']
    """
    minutes = ms // 60_000
    if minutes < 1:
        return "less than a minute"
    if minutes < 120:
        return counted(minutes, "minute")
    if minutes < 2880:
        return counted(minutes // 60, "hour")
    return counted(minutes // 1440, "day")


def when(time_ms: int | None, observation: int, now_ms: int) -> str:
    """Return how long ago something was, or its observation without a time."""
    if time_ms is None:
        return f"at observation {show_count(observation)}"
    return "just now" if now_ms - time_ms < 60_000 else f"{duration(now_ms - time_ms)} ago"


class ViewError(AttributaryError):
    """A question cannot be answered.

    Parameters
    ----------
    title
        What kind of fault it is, the same each time.
    detail
        What was asked, what of it is wrong, and what helps.
    suggestion
        The name that was probably meant, as it is written; empty where none is like what was asked for.
    """

    def __init__(self, title: str, detail: str, suggestion: str = "") -> None:
        super().__init__(f"{detail} Did you mean '{name(suggestion)}'?" if suggestion else detail)
        self.title = title
        self.detail = detail
        self.suggestion = suggestion


class NotFoundError(ViewError):
    """There is nothing of the name that was asked for."""


class WrongQuestionError(ViewError):
    """A question that cannot be parsed."""


POINT_DIGITS = 5
"""Significant digits of the points of charts, at least: more than is ever shown, and half the bytes."""


SHARE_DIGITS = 4


def known(value: float | None) -> float | None:
    """Return a number; None where it is not known: null, NaN or infinite."""
    return None if value is None or not math.isfinite(value) else float(value)


def stored(value: float | None) -> float | None:
    """Return a number with the store's digits; None if unknown."""
    return None if (number := known(value)) is None else float(f"{number:.{DIGITS}g}")


def points(values: NDArray[np.float64], digits: int = POINT_DIGITS) -> list[float | None]:
    """Return a chart's numbers in so many significant digits.

    None stands for numbers that are not known.
    """
    found: list[float] = rounded(values, digits).tolist()
    return [number if good else None for number, good in zip(found, np.isfinite(values).tolist(), strict=True)]


def digits_of(*edges: NDArray[np.float64]) -> int:
    """Return the significant digits needed by a chart's line and its band.

    Five, and more where it moves little: a step is at most a thousandth of what the line usually spans.
    """
    values = np.concatenate(edges)
    values = values[np.isfinite(values)]
    if not values.size:
        return POINT_DIGITS
    low, high = np.quantile(values, (0.05, 0.95)).tolist()
    size, span = max(abs(low), abs(high)), high - low
    if span <= 0.0 or size <= 0.0:
        return POINT_DIGITS
    return min(max(math.ceil(math.log10(size / span)) + POINT_DIGITS - 1, POINT_DIGITS), DIGITS)


def dated(time_ms: int | None) -> int | None:
    """Return a time; None where there is none, for which the store keeps 0."""
    return None if time_ms is None or time_ms <= 0 else time_ms


def shares(importance: NDArray[np.float64] | Sequence[float]) -> list[float | None]:
    """Return each importance's share in the sum of the known; None if unknown."""
    numbers = np.asarray(importance, dtype=np.float64)
    is_known = np.isfinite(numbers)
    found = points(np.asarray(shares_of(np.where(is_known, numbers, 0.0).tolist())))
    return [share if good else None for share, good in zip(found, is_known.tolist(), strict=True)]


def loss_of(name: str, unit: str, largest: float | None) -> Loss:
    """Return a loss with its words."""
    return Loss(name=name, unit=unit, largest=known(largest), text=loss_statement(name, unit, known(largest)))
