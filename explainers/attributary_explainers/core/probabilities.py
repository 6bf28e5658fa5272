"""Probabilities by class, as a model gives them: a dict."""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from . import _cython as cython


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


def are_finite(probabilities: Any) -> bool:
    """Return whether all are numbers that are neither NaN nor infinite."""
    p: cython.double
    for value in probabilities.values():
        p = value
        if p - p != 0.0:
            return False
    return True
