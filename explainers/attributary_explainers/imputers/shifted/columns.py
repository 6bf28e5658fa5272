"""Columns of features: values, hinges, indicators and products."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...typing import Array, Ints

VALUE, HINGE, LEVEL, PRODUCT = range(4)
"""Kinds of columns, as `core.shifted.drawing` has them."""


class Columns(NamedTuple):
    """Which columns there are, as the arrays that the core reads."""

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
    """Return the columns of numbers and categories, and their products.

    A number has its value and a hinge at each knot, a category an indicator for all levels but one.

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
    """Return the columns of two inner hinges, a quarter of n from either end."""
    return sorted({value + 1 + n // 4, value + n - n // 4}) if n else []
