"""Collects the blocks that a reference is estimated from."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..typing import Array, Ints, Snapshot

FIRST, LARGEST = 40, 320
"""Blocks at the first estimate and at the last; each between is of twice as many as the one before."""


class Rows:
    """Mean increments of blocks, for later estimates."""

    def __init__(self) -> None:
        self.values: Array = np.zeros((0, 0))
        """Shape (blocks, features), oldest first."""
        self._next = FIRST

    @property
    def are_most(self) -> bool:
        """Whether there is no larger reference to come."""
        return len(self.values) == LARGEST

    def add(self, means: Array) -> bool:
        """Add a block; return whether it is time for an estimate."""
        n_new = len(means) - self.values.shape[1]
        self.values = np.vstack([np.pad(self.values, ((0, 0), (0, n_new))), means])
        return len(self.values) == self._next

    def halve(self) -> None:
        """Drop the older half."""
        self.values = self.values[len(self.values) // 2 :].copy()

    def grow(self) -> None:
        """Wait for twice as many blocks."""
        self._next = 2 * len(self.values)

    def keep(self, columns: Ints) -> None:
        """Drop all other features."""
        self.values = np.ascontiguousarray(self.values[:, columns])

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"values": self.values.tobytes(), "shape": list(self.values.shape), "next": self._next}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the rows that the snapshot was taken of."""
        rows = cls()
        rows.values = np.frombuffer(snapshot["values"], dtype=np.float64).reshape(snapshot["shape"]).copy()
        rows._next = snapshot["next"]
        return rows
