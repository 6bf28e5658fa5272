"""Measures how far a feature's distribution moved beyond chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from ..missing import is_missing
from ..typing import Array

MISSING, NUMBER = ("missing",), ("number",)
"""What missing values and numbers count as."""


def moved(before: Sequence[Any], after: Sequence[Any], level: float) -> float:
    """Return how far two samples are apart beyond chance, in [0, 1].

    It is the larger of two lower bounds of the total variation distance. For numbers it is the largest difference of
    the shares of any interval (Kuiper, 1960), which sees a wider spread as well as a shift. For all other values, each
    of which counts as itself (by its `repr` where it is not hashable), it is the total variation distance, with all
    numbers as one value and all missing ones (None and NaN) as another.

    Two samples of the same distribution come out above 0 with the probability `level`, in (0, 1), at most.
    """
    n, m = len(before), len(after)
    if not n or not m:
        return 0.0
    kinds_before, numbers_before = _split(before)
    kinds_after, numbers_after = _split(after)
    spread = 1.0 / n + 1.0 / m
    found = 0.0
    if numbers_before or numbers_after:
        apart = kuiper(np.sort(numbers_before), n, np.sort(numbers_after), m)
        found = apart - kuiper_quantile(level / 2.0) * math.sqrt(spread)
    values = dict.fromkeys((*kinds_before, *kinds_after))
    if len(values) > 1:
        differences = sum(abs(kinds_before[value] / n - kinds_after[value] / m) for value in values)
        pooled = ((kinds_before[value] + kinds_after[value]) / (n + m) for value in values)
        # The expectation of each difference is at most its standard deviation; the distance is within the second term
        # of its expectation with this probability, since one value moves it by 1 / n (McDiarmid, 1989).
        expected = sum(math.sqrt(share * (1.0 - share) * spread) for share in pooled) / 2.0
        found = max(found, differences / 2.0 - expected - math.sqrt(math.log(2.0 / level) * spread / 2.0))
    return min(max(found, 0.0), 1.0)


def kind_of(value: Any) -> tuple[Any, float]:
    """Return `NUMBER`, `MISSING` or the value as a key, and its number or 0."""
    if is_missing(value):
        return MISSING, 0.0
    if type(value) is not bool and isinstance(value, (Real, Decimal)):
        return NUMBER, _as_float(value)
    return _as_key(value), 0.0


def _split(values: Sequence[Any]) -> tuple[Counter[Any], list[float]]:
    """Return the counts of values by kind, and the numbers among them."""
    found = [kind_of(value) for value in values]
    return Counter(kind for kind, _ in found), [number for kind, number in found if kind is NUMBER]


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of 400 digits
        return math.inf if value > 0 else -math.inf


def _as_key(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return type(value), value  # True is not 1


def kuiper(before: Array, n: int, after: Array, m: int) -> float:
    """Return Kuiper's distance of two sorted samples among n and m values."""
    ends = np.concatenate([before, after])
    difference = np.searchsorted(before, ends, side="right") / n - np.searchsorted(after, ends, side="right") / m
    return float(max(difference.max(), 0.0) - min(difference.min(), 0.0))


def kuiper_quantile(level: float) -> float:
    """Return the quantile q of Kuiper's distance at this level.

    Samples of n and m values of one distribution are further apart than q sqrt(1 / n + 1 / m) with this probability.
    It uses the first term of the limit's series, 2 (4 q^2 - 1) exp(-2 q^2), which is right for levels below .1 to 1 %.
    """
    low, high = 1.0, 40.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = 2.0 * (4.0 * middle * middle - 1.0) * math.exp(-2.0 * middle * middle) > level
        low, high = (middle, high) if above else (low, middle)
    return high
