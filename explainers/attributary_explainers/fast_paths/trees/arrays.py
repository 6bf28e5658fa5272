"""Arrays and weights that grow."""

from __future__ import annotations

from typing import Any

import numpy as np


def enlarged(array: Any, shape: tuple[int, ...], fill: float = 0) -> Any:
    """A larger array with the same entries where the old one has them."""
    new = np.full(shape, fill, array.dtype)
    new[tuple(map(slice, array.shape))] = array
    return new


def added(before: float, weight: float, now: float) -> bool:
    """Whether `now` is what comes of adding a weight, at once or one by one, bit by bit."""
    if before + weight == now:
        return True
    if weight > 64.0 or weight != int(weight):
        return False
    for _ in range(int(weight)):
        before += 1.0
    return before == now
