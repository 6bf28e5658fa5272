"""A reservoir's rows as an array, with the order of slots by feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.reservoir import SortedRows
from ..evaluation.schema import NotEncodableError, Schema
from ..ordering import OrderNumbers
from ..typing import Array, Features


class StoredRows:
    """Mirrors a reservoir's rows as an array, and is part of no saved state.

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
        self._sorted = SortedRows(size, len(schema))
        self.matrix: Array = self._sorted.matrix
        self.order: npt.NDArray[np.int32] = self._sorted.order
        self.n = 0
        """How many observations are stored: in the first slots."""
        self._columns = schema.reader()
        self._numbers: dict[int, OrderNumbers] = {column: OrderNumbers() for column in schema.codes}
        self._strange: int | None = None
        self.is_complete = True
        """Whether every stored observation could be encoded; after one that could not, nothing is taken in."""
        self.is_stale = False
        """Whether the observation that could not be encoded is gone, so that a new mirror is complete again."""
        if rows:
            self._put_all(rows)

    def put(self, slot: int, x: dict[Any, Any]) -> None:
        """Store an observation in a slot."""
        if self._strange is not None:
            self.is_stale |= slot == self._strange
            return
        if self._columns.read(x):
            row = self._columns.row
        else:
            try:
                row = self.schema.encode_known((x,))[0]
            except NotEncodableError:
                self._strange, self.is_complete = slot, False
                return
        self._sorted.put(slot, row, self._keys_of(row))
        self.n = self._sorted.n

    def _put_all(self, rows: Sequence[Features]) -> None:
        """Store rows in the first slots at once, as repeated `put` would."""
        try:
            encoded = self.schema.encode_known(rows)
        except NotEncodableError:
            self._strange, self.is_complete = self._first_strange(rows), False
            return
        keys = encoded.T.copy()
        for column, order_numbers in self._numbers.items():
            order_numbers.extend(self.schema.values(column))
            keys[column] = _keys_of(encoded[:, column], order_numbers)
        keys[keys != keys] = -np.inf  # what is absent comes before all values
        self._sorted.put_all(encoded, keys)
        self.n = len(rows)

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
                self._sorted.keys[column, : self.n] = _keys_of(self.matrix[: self.n, column], order_numbers)
            keys[column] = order_numbers.numbers[code]
        return keys


def _keys_of(codes: Array, order_numbers: OrderNumbers) -> Array:
    """Return the sort keys of codes; NaN sorts first."""
    there = codes == codes
    keys = np.full(len(codes), -np.inf)
    keys[there] = np.array(order_numbers.numbers)[codes[there].astype(np.intp)]
    return keys
