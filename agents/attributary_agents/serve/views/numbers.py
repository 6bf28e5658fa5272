"""Puts numbers as they go into answers: what is not known is null, and no digit is sent that says nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attributary_explainers import loss_statement
from attributary_explainers.ranking import shares_of

from ..answers.base import Loss

POINT_DIGITS = 5
"""Significant digits of the points of charts, at least: more than is ever shown, and half the bytes."""


SHARE_DIGITS = 4
FLOAT_DIGITS = 7
"""Significant digits that a number has as float32."""

_LARGE = 1e37
"""Beyond this the store keeps numbers as float32 and a common factor."""


def known(value: float | None) -> float | None:
    """Return a number; None where it is not known: null, NaN or infinite."""
    return None if value is None or not math.isfinite(value) else float(value)


def stored(value: float | None) -> float | None:
    """Return a number that the store keeps as float32 with the digits that it has as such; None where not known."""
    if (number := known(value)) is None:
        return None
    return number if abs(number) > _LARGE else float(str(np.float32(number)))


def points(values: NDArray[np.float64], digits: int = POINT_DIGITS) -> list[float | None]:
    """Return the numbers of a chart, rounded to so many significant digits; None for those that are not known."""
    is_known = np.isfinite(values)
    sizes = np.abs(np.where(is_known & (values != 0.0), values, 1.0))
    places = digits - 1 - np.floor(np.log10(sizes)).astype(np.int64)
    # Multiplied or divided by whole powers of ten, so that 0.24 is 0.24.
    up, down = 10.0 ** np.clip(places, 0, 300), 10.0 ** np.clip(-places, 0, 300)
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = np.round(values / down * up) / up * down
    found: list[float] = np.where(np.isfinite(rounded), rounded, values).tolist()
    return [number if good else None for number, good in zip(found, is_known.tolist(), strict=True)]


def digits_of(*edges: NDArray[np.float64]) -> int:
    """Return with how many significant digits the numbers of one line of a chart are sent, and the edges of its band.

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
    return min(max(math.ceil(math.log10(size / span)) + POINT_DIGITS - 1, POINT_DIGITS), FLOAT_DIGITS)


def dated(time_ms: int | None) -> int | None:
    """Return a time; None where there is none, for which the store keeps 0."""
    return None if time_ms is None or time_ms <= 0 else time_ms


def shares(importance: NDArray[np.float64] | Sequence[float]) -> list[float | None]:
    """Return the share of each importance in the sum of those that are known; None for the others."""
    numbers = np.asarray(importance, dtype=np.float64)
    is_known = np.isfinite(numbers)
    found = points(np.asarray(shares_of(np.where(is_known, numbers, 0.0).tolist())))
    return [share if good else None for share, good in zip(found, is_known.tolist(), strict=True)]


def loss_of(name: str, unit: str, largest: float | None) -> Loss:
    """Return a loss with its words."""
    return Loss(name=name, unit=unit, largest=known(largest), text=loss_statement(name, unit, known(largest)))
