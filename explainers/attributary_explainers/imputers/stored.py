"""The stored observations of a reservoir as an array, with the order of their slots by each feature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..evaluation.schema import NotEncodableError, Schema
from ..ordering import sort_key
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
        # Where no feature is a category, values are their own keys.
        self._keys: Array = np.zeros((size, len(schema))) if schema.codes else self.matrix
        self._ranks: dict[int, list[float]] = {column: [] for column in schema.codes}
        self._strange: int | None = None
        self.is_stale = False
        """Whether the observation that could not be encoded is gone, so that a new mirror is complete again."""
        for slot, row in enumerate(rows):
            self.put(slot, row)

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
            row = self.schema.encode(x) if encoded is None else encoded
        except NotEncodableError:
            self._strange = slot
            return
        new = slot == self.n
        put(slot, new, self.n, row, self._keys_of(row), self.matrix, self._keys, self.order)
        self.n += new

    def _keys_of(self, row: Array) -> Array:
        if not self._ranks:
            return row
        keys = row.copy()
        for column, ranks in self._ranks.items():
            code = int(row[column])
            if code >= len(ranks):
                ranks = self._rank(column)
            keys[column] = ranks[code] if ranks else 0.0
        return keys

    def _rank(self, column: int) -> list[float]:
        # Numbers between which others fit would be used up; there are few categories, and new ones are rare.
        values = self.schema.values(column)
        in_order = sorted(range(len(values)), key=lambda code: sort_key(values[code]))
        ranks = [0.0] * len(values)
        for rank, code in enumerate(in_order):
            ranks[code] = float(rank)
        self._ranks[column] = ranks
        if ranks:
            for slot in range(self.n):
                self._keys[slot, column] = ranks[int(self.matrix[slot, column])]
        return ranks
