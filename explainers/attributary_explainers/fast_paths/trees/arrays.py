"""Helpers for arrays and weights that grow."""

from __future__ import annotations

from typing import Any

import numpy as np


def enlarged(array: Any, shape: tuple[int, ...], fill: float = 0) -> Any:
    """Return a larger array with the entries of the old one."""
    new = np.full(shape, fill, array.dtype)
    new[tuple(map(slice, array.shape))] = array
    return new


def added(before: float, weight: float, now: float) -> bool:
    """Return whether `now` is `before` with a weight added, at once or by ones, to the bit."""
    if before + weight == now:
        return True
    if weight > 64.0 or weight != int(weight):
        return False
    for _ in range(int(weight)):
        before += 1.0
    return before == now
