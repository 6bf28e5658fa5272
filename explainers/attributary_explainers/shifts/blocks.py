"""Adds up increments to blocks with a column for each feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.shifts import FILLED, SEEN, SUM, N, add
from ..snapshots import Stored
from ..typing import Array, Ints
from ..validation import LARGEST as LARGEST_NUMBER

BLOCK = 128
"""Observations whose increments are averaged before anything looks at them."""
FIRST, LARGEST = 40, 320
"""Blocks at the first estimate and at the last; each between is of twice as many as the one before."""


class Blocks(Stored):
    """The block that is being filled, and the column of each feature."""

    def __init__(self) -> None:
        self.counts: Ints = np.zeros(4, dtype=np.int64)
        """Shape (4,): see `core.shifts`."""
        self._index: dict[Any, int] = {}
        self._block: Array = np.zeros((2, 0))
        self._names: tuple[Any, ...] | None = None
        self._columns: npt.NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    @property
    def names(self) -> tuple[Any, ...]:
        """Features and groups, in the order of the columns."""
        return tuple(self._index)

    def column(self, name: Any) -> int | None:
        """Return a feature's column, or None if it is unknown or forgotten."""
        return self._index.get(name)

    def update(self, names: tuple[Any, ...], increments: Array, number: int) -> Array | None:
        """Add an observation; return the block's means, (features,), at its end."""
        if names != self._names:
            self._find(names)
        increments = np.ascontiguousarray(increments, np.float64)
        if add(self._block, self._columns, increments, self.counts, number, LARGEST_NUMBER) < BLOCK:
            return None
        means: Array = self._block[SUM] / BLOCK
        self.clear()
        return means

    def _find(self, names: tuple[Any, ...]) -> None:
        for name in names:
            self._index.setdefault(name, len(self._index))
        self._block = np.pad(self._block, ((0, 0), (0, len(self._index) - self._block.shape[1])))
        self._names = names
        self._columns = np.fromiter((self._index[name] for name in names), dtype=np.intp, count=len(names))

    def clear(self) -> None:
        """Begin a block."""
        self._block[SUM] = 0.0
        self.counts[FILLED] = 0

    def unseen_for(self) -> Array:
        """Return how many observations ago each name came, shape (features,)."""
        found: Array = self.counts[N] - self._block[SEEN]
        return found

    def keep(self, columns: Ints) -> None:
        """Forget all other features."""
        names = self.names
        self._index = {names[old]: new for new, old in enumerate(columns.tolist())}
        self._block = np.ascontiguousarray(self._block[:, columns])
        self._names = None


class Rows(Stored):
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
