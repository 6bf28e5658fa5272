"""Helpers for arrays and weights that grow."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...typing import Array

_MOST_KEPT = 1024


class Numbers:
    """Memory that is written anew at each call, with as many numbers as there are: faster than numpy from a list."""

    def __init__(self) -> None:
        self._room: Array = np.zeros(256)
        self._bytes = self._room.data.cast("B")
        self._packers: dict[int, Callable[..., None]] = {}
        """By length, for the shorter ones."""

    def write(self, values: Sequence[float]) -> Array:
        """Return the numbers as an array; the next call overwrites it."""
        n = len(values)
        pack = self._packers.get(n)
        if pack is None:
            if n > len(self._room):
                self._room = np.zeros(2 * n)
                self._bytes = self._room.data.cast("B")
            pack = struct.Struct(f"{n}d").pack_into
            if n <= _MOST_KEPT:
                self._packers[n] = pack
        pack(self._bytes, 0, *values)
        return self._room[:n]


def enlarged(array: Any, shape: tuple[int, ...], fill: float = 0) -> Any:
    """Return a larger array with the entries of the old one."""
    new = aligned(shape, array.dtype)
    new.fill(fill)
    new[tuple(map(slice, array.shape))] = array
    return new


def aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array of zeros that begins at a cache line: 64 bytes, as its rows do where they are of so many."""
    size = np.dtype(dtype).itemsize * math.prod(shape)
    room = np.zeros(size + 64, np.uint8)
    start = -room.__array_interface__["data"][0] % 64
    return room[start : start + size].view(dtype).reshape(shape)


def added(before: float, weight: float, now: float) -> bool:
    """Return whether `now` is `before` with a weight added, at once or by ones, to the bit."""
    if before + weight == now:
        return True
    if weight > 64.0 or weight != int(weight):
        return False
    for _ in range(int(weight)):
        before += 1.0
    return before == now
