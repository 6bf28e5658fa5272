"""Arrays that grow and keep what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np


def enlarged(array: Any, shape: tuple[int, ...], fill: float = 0) -> Any:
    """A larger array with the same entries where the old one has them."""
    new = np.full(shape, fill, array.dtype)
    new[tuple(map(slice, array.shape))] = array
    return new
