"""Shares of importances, and by how much they have moved."""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from . import _cython as cython


def shares_of(values: Any) -> list:
    """Return shares of a sum, negative numbers counted as 0; 0s if it is 0."""
    value: cython.double
    total: cython.double = 0.0
    clipped: list = []
    for given in values:
        value = given
        if value < 0.0:
            value = 0.0
        total += value
        clipped.append(value)
    if not total > 0.0:
        return [0.0] * len(clipped)
    shares: list = []
    for given in clipped:
        value = given
        shares.append(value / total)
    return shares


def shift_of(before: list, after: list) -> float:
    """Return half the distance between two lists of features' shares.

    It is 1, as everything has moved, where only one of the lists is all 0.
    """
    i: cython.Py_ssize_t
    a: cython.double
    b: cython.double
    moved: cython.double = 0.0
    has_before: cython.bint = False
    has_after: cython.bint = False
    for i in range(len(before)):
        a, b = before[i], after[i]
        has_before, has_after = has_before or a != 0.0, has_after or b != 0.0
        moved += abs(a - b)
    if has_before != has_after:
        return 1.0
    return 0.5 * moved
