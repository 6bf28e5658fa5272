"""Watches for a shift from a reference, for as long as the stream goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ..core.shifts import BLOCKS, MEAN, MOVED, N_RATES, ONSET, SCALE, gather
from ..snapshots import Stored
from ..typing import Array, Ints
from .events import Level, Shift
from .reference import Reference

_ALSO = 0.05
_DOUBT = 0.01
_QUANTILE = 0.975


class Watch(Stored):
    """Evidence for each feature's shift from a reference, up and down.

    Parameters
    ----------
    reference
        What is compared with.
    block
        Observations in a block.
    once_in
        Observations per false shift that this explainer may tell.
    number
        The number of the first observation that is watched.
    """

    def __init__(self, reference: Reference, block: int, once_in: float, number: int) -> None:
        self.reference = reference
        self._block = block
        self._once_in = once_in
        n_features = reference.table.shape[1]
        self._evidence: Array = np.zeros((n_features, 2, N_RATES))
        self._path: Array = np.zeros((4, n_features, 2))
        self._path[ONSET] = number
        self._sum = 0.0
        self._next = number
        self.n_known = n_features
        """Features that the reference has; the columns of others come after theirs."""

    @property
    def level(self) -> float:
        """Least observations per false alarm at this evidence, over all features."""
        return self._sum / self._evidence.size * self._block if self._evidence.size else 0.0

    @property
    def in_doubt(self) -> bool:
        """Whether a shift may have begun, so that no larger reference is made."""
        return self.level >= _DOUBT * self._once_in

    def update(self, means: Array, next_number: int) -> bool:
        """Take in a block; return whether a shift is to be told."""
        self._widen(len(means) - self._evidence.shape[0])
        self._next = next_number
        self._sum = gather(means, self.reference.table, next_number, self._evidence, self._path)
        return self.level >= self._once_in

    def shift(self, names: Sequence[Any], number: int, n_explainers: int) -> Shift:
        """Return the shift with most evidence, told at observation `number`."""
        of_each = self._evidence.sum(axis=(1, 2))
        order = np.argsort(-of_each, kind="stable")
        j = int(order[0])
        side = int(self._evidence[j].sum(axis=1).argmax())
        n_blocks = max(self._path[BLOCKS, j, side], 1.0)
        reference = self.reference
        before, error = float(reference.table[MEAN, j]), float(reference.errors[j])
        change = float(self._path[MOVED, j, side] / n_blocks)
        error_after = float(reference.table[SCALE, j] / math.sqrt(n_blocks))
        quantile = float(stdtrit(reference.degrees_of_freedom, _QUANTILE))
        return Shift(
            feature=names[j],
            also=tuple(names[i] for i in order[1:].tolist() if of_each[i] > _ALSO * self._sum),
            direction="up" if side == 0 else "down",
            before=level_around(before, quantile * error),
            after=level_around(before + change, quantile * error_after),
            share=change / reference.total,
            z=change / math.hypot(error, error_after),
            level=self.level / n_explainers,
            onset=int(self._path[ONSET, j, side]),
            n_observations=number,
            n_since_onset=int(n_blocks) * self._block,
            n_reference=reference.n,
        )

    def _widen(self, n_new: int) -> None:
        """Add features whose importance was 0 so far."""
        if not n_new:
            return
        self.reference = self.reference.widened(n_new)
        self._evidence = np.pad(self._evidence, ((0, n_new), (0, 0), (0, 0)))
        self._path = np.pad(self._path, ((0, 0), (0, n_new), (0, 0)))
        self._path[ONSET, self._path.shape[1] - n_new :] = self._next

    def keep(self, columns: Ints) -> None:
        """Drop all other features."""
        self.reference = self.reference.kept(columns)
        self._evidence = np.ascontiguousarray(self._evidence[columns])
        self._path = np.ascontiguousarray(self._path[:, columns])


def level_around(value: float, half_width: float) -> Level:
    """Return the level of this value and half width of its interval."""
    return Level(value, value - half_width, value + half_width)
