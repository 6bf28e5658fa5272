"""Columns of features: a number's value and its hinges, a category's indicators, and products of two columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compiled import compiled
from ...typing import Array, Ints

VALUE, HINGE, LEVEL, PRODUCT = range(4)
"""Kinds of columns."""
FARTHEST = 100.0
"""Scaled numbers count as at most so far out: a single one would be all that a covariance knows."""


class Columns(NamedTuple):
    """Which columns there are, as the arrays that kernels read."""

    start: Ints
    """Shape (features + 1,): where the columns of each feature begin. Products follow behind the last one."""
    kind: Ints
    """Shape (columns,), as all that follow: what a column is."""
    of: Ints
    """The feature that a column is of; of a product, that of its first column."""
    number: Array
    """The knot of a hinge, in units of the scaled value; the level of an indicator; the first column of a product."""
    other: Ints
    """The second column of a product."""


def columns_of(knots: list[Array], levels: list[int], products: list[tuple[int, int]]) -> Columns:
    """Return the columns: per number its value and a hinge at each knot, per category all levels but one.

    Parameters
    ----------
    knots, levels
        By feature: its knots; its number of levels, 0 for a number.
    products
        Pairs of features, whose values, or first indicators, are multiplied; also the value of each with two hinges of
        the other one, so that what one tells may depend on where the other one is.
    """
    kind, of, number, start = [], [], [], [0]
    for j, (own, n) in enumerate(zip(knots, levels, strict=True)):
        numbers = [0.0, *own] if n == 0 else [float(level) for level in range(n - 1)]
        number += numbers
        kind += [VALUE, *[HINGE] * len(own)] if n == 0 else [LEVEL] * len(numbers)
        of += [j] * len(numbers)
        start.append(len(kind))
    other = [0] * len(kind)
    for a, b in products:
        if start[a] < start[a + 1] and start[b] < start[b + 1]:
            factors = [(start[a], start[b])]
            factors += [(hinge, start[b]) for hinge in _inner(start[a], len(knots[a]))]
            factors += [(start[a], hinge) for hinge in _inner(start[b], len(knots[b]))]
            kind += [PRODUCT] * len(factors)
            of += [a] * len(factors)
            number += [float(first) for first, _ in factors]
            other += [second for _, second in factors]
    ints = [np.array(values, dtype=np.int64) for values in (start, kind, of, other)]
    return Columns(ints[0], ints[1], ints[2], np.array(number, dtype=np.float64), ints[3])


def _inner(value: int, n: int) -> list[int]:
    """Return two hinges of n, a quarter of them outside of each, by the column of the value before them."""
    return sorted({value + 1 + n // 4, value + n - n // 4}) if n else []


@compiled
def scaled(value: float, center: float, scale: float) -> float:
    """Return a number in units of its feature's spread, not farther out than `FARTHEST`."""
    return min(max((value - center) / scale, -FARTHEST), FARTHEST)


@compiled
def expand(x: Any, kind: Any, of: Any, number: Any, other: Any, center: Any, scale: Any, out: Any) -> None:
    """Write the columns of one observation; those of a missing feature, which is NaN in x, are NaN.

    Parameters
    ----------
    x
        Shape (features,): numbers, and the numbers of categories' levels.
    kind, of, number, other
        See `Columns`.
    center, scale
        Shape (features,): a number becomes (x - center) / scale.
    """
    for c in range(len(kind)):
        j = of[c]
        if kind[c] == PRODUCT:
            out[c] = out[int(number[c])] * out[other[c]]
        elif np.isnan(x[j]):
            out[c] = np.nan
        elif kind[c] == LEVEL:
            out[c] = 1.0 if x[j] == number[c] else 0.0
        else:
            z = scaled(x[j], center[j], scale[j])
            out[c] = z if kind[c] == VALUE else max(z - number[c], 0.0)


@compiled
def expand_all(X: Any, kind: Any, of: Any, number: Any, other: Any, center: Any, scale: Any, out: Any) -> None:
    """Write the columns of some observations; see `expand`."""
    for r in range(len(X)):
        expand(X[r], kind, of, number, other, center, scale, out[r])


@compiled
def rounded(value: float, stored: Any, first: int, last: int) -> float:
    """Return the nearest of stored[first … last - 1], which ascend; the value itself where there are none."""
    if first == last:
        return value
    at = first + np.searchsorted(stored[first:last], value)
    if at == last or (at > first and value - stored[at - 1] <= stored[at] - value):
        return float(stored[at - 1])
    return float(stored[at])
