"""Probabilities by class, as a model gives them: a dict."""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from . import _cython as cython

_TOLERANCE = cython.declare(cython.double, 1e-6)


def most_probable(probabilities: Any) -> Any:
    """Return the most probable label, the first of equals as in River."""
    p: cython.double
    largest: cython.double = 0.0
    is_first: cython.bint = True
    found: object = None
    for label, value in probabilities.items():
        p = value
        if is_first or p > largest:
            is_first, largest, found = False, p, label
    if is_first:
        raise ValueError("there is no probability")
    return found


def two_most_probable(probabilities: Any) -> tuple[Any, Any]:
    """Return the two most probable labels, the first of equals first.

    None stands for one that there is not.
    """
    p: cython.double
    largest: cython.double = -1.0
    second: cython.double = -1.0
    found: object = None
    next_found: object = None
    for label, value in probabilities.items():
        p = value
        if p > largest:
            largest, second, found, next_found = p, largest, label, found
        elif p > second:
            second, next_found = p, label
    return found, next_found


def are_finite(probabilities: Any) -> bool:
    """Return whether all are numbers that are neither NaN nor infinite."""
    p: cython.double
    for value in probabilities.values():
        p = value
        if p - p != 0.0:
            return False
    return True


def are_probabilities(probabilities: Any) -> bool:
    """Return whether none is below 0 and the sum is 1, to within 1e-6.

    Where one is NaN or infinite, which `are_finite` tells, they pass.
    """
    p: cython.double
    total: cython.double = 0.0
    least: cython.double = 0.0
    for value in probabilities.values():
        p = value
        total += p
        least = min(least, p)
    return total - total != 0.0 or (abs(total - 1.0) <= _TOLERANCE and least >= -_TOLERANCE)
