"""Numbers for answers: null if unknown, and no meaningless digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attributary_explainers import loss_statement
from attributary_explainers.ranking import shares_of

from ..answers.base import Loss
from ..store.rows import DIGITS, rounded

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
