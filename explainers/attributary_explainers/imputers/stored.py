"""The stored observations of a reservoir as an array, with the order of their slots by each feature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..evaluation.schema import NotEncodableError, Schema
from ..ordering import OrderNumbers
from ..typing import Array, Features
from .kernels import put


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
        self.order: npt.NDArray[np.int64] = np.zeros((len(schema), size), dtype=np.int64)
        self.n = 0
        # Where no feature is a category or may be absent, values are their own keys.
        are_keys = not schema.codes and not schema.takes_gaps
        self._keys: Array = self.matrix if are_keys else np.zeros((size, len(schema)))
        self._numbers: dict[int, OrderNumbers] = {column: OrderNumbers() for column in schema.codes}
        self._strange: int | None = None
        self.is_stale = False
        """Whether the observation that could not be encoded is gone, so that a new mirror is complete again."""
        if rows:
            self._put_all(rows)

    @property
    def is_complete(self) -> bool:
        """Whether every stored observation could be encoded; after one that could not, nothing is taken in."""
        return self._strange is None

    def put(self, slot: int, x: Features, encoded: Array | None = None) -> None:
        """Store an observation in a slot; `encoded` is the observation as an array, where the caller has it."""
        if self._strange is not None:
            self.is_stale |= slot == self._strange
            return
        try:
            row = self.schema.encode_known((x,))[0] if encoded is None else encoded
        except NotEncodableError:
            self._strange = slot
            return
        new = slot == self.n
        put(slot, new, self.n, row, self._keys_of(row), self.matrix, self._keys, self.order)
        self.n += new

    def _put_all(self, rows: Sequence[Features]) -> None:
        """Store observations in the first slots, as `put` would one after the other, in a twentieth of the time."""
        try:
            encoded = self.schema.encode_known(rows)
        except NotEncodableError:
            self._strange = self._first_strange(rows)
            return
        self.n = n = len(rows)
        self.matrix[:n] = encoded
        for column, order_numbers in self._numbers.items():
            order_numbers.extend(self.schema.values(column))
            self._keys[:n, column] = _keys_of(encoded[:, column], order_numbers)
        numbers = [column for column in range(len(self.schema)) if column not in self._numbers]
        self._keys[:n, numbers] = encoded[:, numbers]
        if self.schema.takes_gaps:
            self._keys[:n][encoded != encoded] = -np.inf  # what is absent comes before all values
        self.order[:, :n] = np.argsort(self._keys[:n].T, axis=1, kind="stable")

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
                self._keys[: self.n, column] = _keys_of(self.matrix[: self.n, column], order_numbers)
            keys[column] = order_numbers.numbers[code]
        return keys


def _keys_of(codes: Array, order_numbers: OrderNumbers) -> Array:
    """Return the numbers that codes are sorted by; one that is NaN comes first."""
    there = codes == codes
    keys = np.full(len(codes), -np.inf)
    keys[there] = np.array(order_numbers.numbers)[codes[there].astype(np.intp)]
    return keys
