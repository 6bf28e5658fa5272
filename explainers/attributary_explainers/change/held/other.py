"""Asks a third model about observations, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...typing import Array
from .comparing import Batch
from .rows import HeldRows, Row, batch_of, column_of


class Other:
    """Remembers the losses of a frozen model on the observations that it was asked about last.

    Parameters
    ----------
    losses
        Returns the model's losses on observations; NaN where it has no prediction.
    """

    def __init__(self, losses: Callable[[Batch], Sequence[float]]) -> None:
        self._losses = losses
        self._known: dict[int, float] = {}
        """By number of the observation."""

    def losses(self, rows: Sequence[Row], latest: int | None = None) -> Array:
        """Return the losses on observations; the model is asked about those that are not among the last ones.

        Parameters
        ----------
        latest
            From 0 on; only so many of the rows count, the last ones. None: all.
        """
        first = 0 if latest is None else max(len(rows) - latest, 0)
        numbers, known = column_of(rows, "n")[first:], self._known
        if unknown := [i for i, n in enumerate(numbers, start=first) if n not in known]:
            new = unknown[0]
            if isinstance(rows, HeldRows) and len(unknown) == len(rows) - new:  # as nearly always, those at the end
                batch, of = rows.batch_from(new), numbers[new - first :]
            else:
                batch, of = batch_of([rows[i] for i in unknown]), [numbers[i - first] for i in unknown]
            known.update(zip(of, self._losses(batch), strict=True))
        self._known = {n: known[n] for n in numbers}
        return np.array(list(self._known.values()), dtype=np.float64)
