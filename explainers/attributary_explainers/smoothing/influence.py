"""Standard errors of smoothed importances whose increments share stored rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..typing import Snapshot
from .kernels import LIVE, OWN, RETIRED, TWICE, stored_in

Array = npt.NDArray[np.float64]


class RowInfluence:
    """The influence of each stored observation on a smoothed importance, and the variance that follows from it.

    `kernels.smooth` adds an observation.

    An observation takes part twice: it is explained once, and as long as it is stored it is drawn, so that
    consecutive increments are correlated and their plain variance says too little. With a(x) the part of an increment
    that is due to the observation explained, b(z) that due to one stored row, e the rest, w_t the weight of increment t
    and n draws each, the importance is

        phi = sum_t w_t (mu + a(x_t) + mean over draws of [b(z) + e]),
        I_i = w_i (lambda_i - mu) + sum over the draws of observation i of w_t (g - mu) / n,

    I_i the influence of observation i in both roles, g the part of one draw (an increment is the mean of its n). In
    the sum of I_i^2 over all observations each draw is counted in both roles, so that

        Var(phi) = E[ sum_i I_i^2 ] - E[ sum_t sum over rows drawn at t of (sum of its draws' w_t (g - mu) / n)^2 ].

    That holds for every reservoir and every alpha; it is the incremental form of the standard error of `batch_pfi`. mu
    is replaced by the importance so far. Memory: one number per slot of the reservoir and feature.

    Parameters
    ----------
    n_slots
        Valid range >= 0; the size of the reservoir. 0: increments draw from nothing that is stored.
    """

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self.width = 0
        """Number of features: columns of `table` that are in use."""
        self.table: Array = np.zeros((LIVE + n_slots, 0))

    @property
    def _live(self) -> Array:
        """Shape (slots, features): influence so far of the observation in each slot."""
        return self.table[LIVE:, : self.width]

    def _of(self, row: int) -> Array:
        """Return a row of the table, shape (features,)."""
        return self.table[row, : self.width]

    def grow(self, n_columns: int) -> None:
        """Make room for features that were not there before: nothing has influenced them yet."""
        if n_columns > self.table.shape[1]:
            # Room for as many again: names that keep coming one at a time would copy everything each time.
            more = 2 * n_columns - self.width
            self.table = np.pad(self.table[:, : self.width], ((0, 0), (0, more)))
        self.width = n_columns

    def select(self, columns: npt.NDArray[np.intp]) -> None:
        """Keep these features only."""
        self.table = np.ascontiguousarray(self.table[:, columns])  # one order of memory: one compiled kernel
        self.width = len(columns)

    def stored(self, slot: int | None) -> None:
        """Say where the observation that was smoothed last is stored now; None for nowhere."""
        stored_in(-1 if slot is None else slot, self.width, self.table)

    def variance(self) -> Array:
        """Return the variance of the mean, per feature; an estimate that can come out negative in small samples."""
        total: Array = self._of(RETIRED) + (self._live**2).sum(axis=0) + self._of(OWN) ** 2 - self._of(TWICE)
        return total

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        rows = {name: self._of(row).tolist() for name, row in _ROWS.items()}
        return {"n_slots": self.n_slots, "live": self._live.tobytes(), **rows}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> RowInfluence:
        """Return the influences that the snapshot was taken of."""
        influence = cls(snapshot["n_slots"])
        influence.grow(len(snapshot["own"]))
        for name, row in _ROWS.items():
            influence._of(row)[:] = snapshot[name]
        live = np.frombuffer(snapshot["live"], dtype=np.float64)
        influence._live[:] = live.reshape(influence.n_slots, influence.width)
        return influence


_ROWS = {"retired": RETIRED, "twice": TWICE, "own": OWN}
