"""An order in which values of all types can be sorted."""

from __future__ import annotations

from typing import Any

import numpy as np

ABSENT = object()
"""Stands for a feature that is absent, and sorts before all values."""


def sort_key(value: Any) -> tuple[Any, ...]:
    """Return a key that sorts values of all types: absent, numbers, NaN, text, then the rest by type and text."""
    if value is ABSENT:
        return (0,)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return (2,) if value != value else (1, value)
    return (3, value) if isinstance(value, str) else (4, type(value).__name__, repr(value))
