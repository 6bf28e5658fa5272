"""Asks a third model about observations, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...typing import Array
from .rows import Row


class Other:
    """Remembers the losses of a frozen model on the observations that it was asked about last.

    Parameters
    ----------
    losses
        Returns the model's losses on observations; NaN where it has no prediction.
    """

    def __init__(self, losses: Callable[[Sequence[Row]], Array]) -> None:
        self._losses = losses
        self._known: dict[int, float] = {}
        """By number of the observation."""

    def losses(self, rows: Sequence[Row]) -> Array:
        """Return the losses on observations; the model is asked about those that are not among the last ones."""
        if unknown := [row for row in rows if row.n not in self._known]:
            self._known.update(zip([row.n for row in unknown], self._losses(unknown).tolist(), strict=True))
        self._known = {row.n: self._known[row.n] for row in rows}
        return np.array(list(self._known.values()), dtype=np.float64)
