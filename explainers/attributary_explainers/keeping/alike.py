"""Kept rows that are alike, many at once."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..typing import Array
from .kept import Kept, Layout, keep_apart


class Alike:
    """Holds `n` rows of one layout that have no objects: their numbers as bytes, one row behind the other."""

    __slots__ = ("data", "layout", "n")

    def __init__(self, layout: Layout, data: bytes, n: int) -> None:
        self.layout, self.data, self.n = layout, data, n

    def kept(self) -> list[Kept]:
        """Return the rows, one by one."""
        layout, data, length = self.layout, self.data, self.layout.length
        return [Kept(layout, data[i * length : (i + 1) * length]) for i in range(self.n)]

    def floats(self) -> list[float] | None:
        """Return the values, one row behind the other; None where some are no floats."""
        return array("d", self.data).tolist() if self.layout.are_numbers and "q" not in self.layout.codes else None


class Numbers(NamedTuple):
    """Holds rows that have the same features, all of them numbers.

    Attributes
    ----------
    names
        The features, in the order of the columns.
    values
        Shape (rows, columns): the values as floats.
    """

    names: tuple[Any, ...]
    values: Array


def numbers_of(rows: Sequence[Kept]) -> Numbers | None:
    """Return rows, at least one, as numbers; None where their features, or the order of these, are not the same."""
    kinds = {row.layout: i for i, row in enumerate(rows)}
    names = rows[0].layout.names
    if not all(layout.are_numbers and layout.names == names for layout in kinds):
        return None
    floats: Array = np.frombuffer(b"".join([row.data for row in rows]), dtype=np.float64).reshape(len(rows), -1)
    if len(kinds) == 1:
        return Numbers(names, as_numbers(floats, rows[0].layout.are_integers))
    place = {layout: i for i, layout in enumerate(kinds)}
    are_integers = np.array([layout.are_integers for layout in kinds])[[place[row.layout] for row in rows]]
    return Numbers(names, as_numbers(floats, are_integers))


def as_numbers(as_floats: Array, are_integers: npt.NDArray[np.bool_]) -> Array:
    """Return numbers as floats, of which bytes have been read as floats that are integers in some places."""
    return np.where(are_integers, as_floats.view(np.int64), as_floats)


def keep_alike(rows: Sequence[dict[Any, Any]]) -> Alike | None:
    """Return rows, at least one, as `keep_apart` keeps them, together; None where they are not alike, or no floats."""
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
