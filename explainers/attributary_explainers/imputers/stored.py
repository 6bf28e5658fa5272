"""The stored observations of a reservoir as an array, with the order of their slots by each feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.reservoir import put, put_numbers
from ..evaluation.schema import LARGEST_EXACT, NotEncodableError, Schema
from ..keeping.kept import Kept, Layout
from ..ordering import OrderNumbers
from ..typing import Array, Features

_MOST_LAYOUTS = 16
"""A number that is now a float and now an integer makes two; ever new ones are not kept."""


class StoredRows:
    """Mirrors a reservoir's rows under a schema; it follows from them alone, and is part of no saved state.

    Parameters
    ----------
    schema
        The schema of the observations.
    size
        The number of slots of the reservoir.
    rows
        The observations that are stored now.
    """

    def __init__(self, schema: Schema, size: int, rows: Sequence[Features]) -> None:
        self.schema = schema
        self.matrix: Array = np.zeros((size, len(schema)))
        self.order: npt.NDArray[np.int32] = np.zeros((len(schema), size), dtype=np.int32)
        self.n = 0
        # By feature, as one order is looked at in a call. Keys are values, but for categories and what is absent.
        self._keys: Array = np.zeros((len(schema), size))
        self._numbers: dict[int, OrderNumbers] = {column: OrderNumbers() for column in schema.codes}
        self._strange: int | None = None
        self.is_complete = True
        """Whether every stored observation could be encoded; after one that could not, nothing is taken in."""
        self._places: dict[Layout, npt.NDArray[np.intp]] = {}
        """By how rows are kept where the columns are in them, as `put_numbers` reads it; none where it cannot."""
        self._row: Array = np.empty(len(schema))
        self._numbers_kept: Array = np.empty(len(schema))
        self._integers_kept = self._numbers_kept.view(np.int64)
        self._bytes = self._numbers_kept.data.cast("B")
        self.is_stale = False
        """Whether the observation that could not be encoded is gone, so that a new mirror is complete again."""
        if rows:
            self._put_all(rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_bytes", "_integers_kept")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._integers_kept = self._numbers_kept.view(np.int64)
        self._bytes = self._numbers_kept.data.cast("B")

    def put(self, slot: int, x: Kept) -> None:
        """Store an observation in a slot."""
        if self._strange is not None:
            self.is_stale |= slot == self._strange
            return
        n = self.n
        places = self._places.get(x.layout)
        if places is None:
            places = self._places_of(x.layout)
        if places.size:
            self._bytes[:] = x.data
            numbers = self._numbers_kept, self._integers_kept, places, LARGEST_EXACT, self._row
            if put_numbers(slot, n, *numbers, self.matrix, self._keys, self.order):
                self.n += slot == n
                return
        try:
            row = self.schema.encode_known((x.row(),))[0]
        except NotEncodableError:
            self._strange, self.is_complete = slot, False
            return
        put(slot, n, row, self._keys_of(row), self.matrix, self._keys, self.order)
        self.n += slot == n

    def _places_of(self, layout: Layout) -> npt.NDArray[np.intp]:
        """Find where the columns are in rows that are kept so; none where some are no numbers, or no such numbers."""
        if len(self._places) == _MOST_LAYOUTS:
            self._places.clear()
        schema, types = self.schema, layout.types
        is_plain = not schema.codes and layout.are_numbers and schema.keys == set(layout.names)
        is_plain = is_plain and types is not None and schema.plain.issuperset(types)
        order = list(map(layout.names.index, schema.features)) if is_plain else []
        found = [-1 - place if layout.codes[place] == "q" else place for place in order]
        places = self._places[layout] = np.array(found, dtype=np.intp)
        return places

    def _put_all(self, rows: Sequence[Features]) -> None:
        """Store observations in the first slots, as `put` would one after the other, in a twentieth of the time."""
        try:
            encoded = self.schema.encode_known(rows)
        except NotEncodableError:
            self._strange, self.is_complete = self._first_strange(rows), False
            return
        self.n = n = len(rows)
        self.matrix[:n] = encoded
        for column, order_numbers in self._numbers.items():
            order_numbers.extend(self.schema.values(column))
            self._keys[column, :n] = _keys_of(encoded[:, column], order_numbers)
        numbers = [column for column in range(len(self.schema)) if column not in self._numbers]
        self._keys[numbers, :n] = encoded[:, numbers].T
        if self.schema.takes_gaps:
            self._keys[:, :n][encoded.T != encoded.T] = -np.inf  # what is absent comes before all values
        self.order[:, :n] = np.argsort(self._keys[:, :n], axis=1, kind="stable")

    def _first_strange(self, rows: Sequence[Features]) -> int:
        for slot, row in enumerate(rows):
            try:
                self.schema.encode_known((row,))
            except NotEncodableError:
                return slot
        return len(rows) - 1

    def _keys_of(self, row: Array) -> Array:
        if not self._numbers:
            return row
        keys = row.copy()
        for column, order_numbers in self._numbers.items():
            if row[column] != row[column]:
                continue
            code = int(row[column])
            if code >= len(order_numbers.numbers) and order_numbers.extend(self.schema.values(column)):
                self._keys[column, : self.n] = _keys_of(self.matrix[: self.n, column], order_numbers)
            keys[column] = order_numbers.numbers[code]
        return keys


def _keys_of(codes: Array, order_numbers: OrderNumbers) -> Array:
    """Return the numbers that codes are sorted by; one that is NaN comes first."""
    there = codes == codes
    keys = np.full(len(codes), -np.inf)
    keys[there] = np.array(order_numbers.numbers)[codes[there].astype(np.intp)]
    return keys
