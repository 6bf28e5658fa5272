"""Rows with the same names and types of values, whose numbers are bytes in a row."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from ..typing import Array
from .kept import Kept, Layout, keep_apart


class Alike:
    """Holds `n` rows of one layout that have no objects: their numbers as bytes, one row behind the other."""

    __slots__ = ("data", "layout", "n")

    def __init__(self, layout: Layout, data: bytes, n: int) -> None:
        self.layout, self.data, self.n = layout, data, n

    def first(self, n: int) -> Alike:
        """Return the first rows, all where there are fewer."""
        n = min(n, self.n)
        return Alike(self.layout, self.data[: n * self.layout.length], n)

    def kept(self) -> list[Kept]:
        """Return the rows, one by one."""
        layout, data, length = self.layout, self.data, self.layout.length
        return [Kept(layout, data[i * length : (i + 1) * length]) for i in range(self.n)]

    def numbers(self) -> Array | None:
        """Return the values as floats, shape (rows, columns); None where some are neither floats nor integers."""
        layout = self.layout
        if not layout.are_numbers:
            return None
        floats: Array = np.frombuffer(self.data, dtype=np.float64).reshape(self.n, -1)
        return np.where(layout.are_integers, floats.view(np.int64), floats) if "q" in layout.codes else floats


def alike(rows: Sequence[Kept]) -> Alike | None:
    """Return rows, at least one, together; None where they have several layouts or hold objects."""
    layout = rows[0].layout
    if layout.places or any(row.layout is not layout for row in rows):
        return None
    return Alike(layout, b"".join([row.data for row in rows]), len(rows))


def keep_alike(rows: Sequence[dict[Any, Any]]) -> Alike | None:
    """Return what `alike` makes of rows that `keep_apart` has kept; None, too, where a value is no float."""
    layout, names = keep_apart(rows[0]).layout, tuple(rows[0])
    if not layout.are_numbers:
        return None
    values: list[Any] = []
    for row in rows:
        # Names that are no texts, as classes are, by identity: 1 and True are equal, and not the same.
        if len(row) != len(names) or not (tuple(row) == names if layout.are_texts else all(map(is_, row, names))):
            return None
        values += row.values()
    if {*map(type, values)} != {float}:
        return None
    return Alike(layout, array("d", values).tobytes(), len(rows))
