"""Exponentially weighted importance with its standard error."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..compiled import HAS_NUMBA
from ..typing import Importance, Snapshot
from .influence import RowInfluence
from .kernels import MEAN, SEEN, VARIANCE
from .means import Weights, memory_of

Array = npt.NDArray[np.float64]
_Room: TypeAlias = tuple[npt.NDArray[np.intp], tuple[int, int, Array, Array]]

_LEAST = 2.0 / 3.0


class SmoothedImportance:
    """Exponentially weighted mean of importance increments with its standard error, per feature.

    All features share their weights, so that sums over features are kept: the iSAGE efficiency identity
    holds for the mean whenever it holds for each increment. A feature that an observation lacks has the
    increment 0 there: removing what is absent changes nothing. A feature first seen late has the increment 0
    before. One that has not been seen while its weight faded below 1e-12, and for 1000 observations at least, is
    forgotten: a stream of ever new names has bounded state.

    Parameters
    ----------
    alpha
        Valid range (0, 1]; see `Weights`.
    n_slots
        Valid range >= 0; size of the reservoir that increments draw from, so that `std_error` takes into account the
        rows that they share (see `RowInfluence`). 0: increments are taken as uncorrelated.

    Examples
    --------
    >>> smoothed = SmoothedImportance(alpha=0.5)
    >>> smoothed.update({"age": 1.0, "salary": 3.0})
    >>> smoothed.update({"age": 4.0, "salary": 3.0})
    >>> smoothed.mean()
    {'age': 3.0, 'salary': 3.0}
    >>> smoothed.raw_mean()
    {'age': 2.25, 'salary': 2.25}
    """

    def __init__(self, alpha: float, n_slots: int = 0) -> None:
        self.weights = Weights(alpha)
        self._index: dict[Any, int] = {}
        self.moments: Array = np.zeros((3, 0))
        """Shape (3, features): see `step_kernels`."""
        self.influence = RowInfluence(n_slots) if n_slots else None
        self._memory = memory_of(self.weights.alpha)
        self._names: tuple[Any, ...] | None = None
        self._columns: npt.NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def update(
        self,
        increments: Mapping[Any, float],
        parts: Array | None = None,
        slots: npt.NDArray[np.intp] | None = None,
    ) -> None:
        """Add the increments of one observation; features known but not named get the increment 0.

        Parameters
        ----------
        increments
            Feature or group to increment.
        parts
            Shape (increments, draws): each draw's part; an increment is the mean of its parts. None: not known.
        slots
            Shape (increments, draws), or (draws,) where all share them: the slots that the draws came from.
        """
        self.update_arrays(
            tuple(increments), np.fromiter(increments.values(), dtype=np.float64, count=len(increments)), parts, slots
        )
        self.counted()

    def update_arrays(
        self,
        names: tuple[Any, ...],
        increments: Array,
        parts: Array | None,
        slots: npt.NDArray[np.intp] | None,
        times: int = 1,
    ) -> float:
        """`update` with the increments as an array, shape (names,), that stand for so many observations.

        `counted` has to follow. Returns their share in the mean.
        """
        columns = self.columns_of(names)
        rate, n = self.weights.rate(times), self.weights.n + 1
        if HAS_NUMBA and self.influence is not None:
            self.influence.update_compiled(rate, columns, increments, parts, slots, n, self.moments)
        else:
            self._update_plain(rate, columns, increments, parts, slots)
            self.moments[SEEN, columns] = n
        return rate

    def counted(self, times: int = 1) -> None:
        """Say that the increments of one observation, which stand for so many, are in the mean."""
        self.weights.step(times)
        if self.weights.n % self._memory == 0:
            self._forget()

    def means_of(self, names: tuple[Any, ...]) -> Array:
        """The mean so far of each of these, shape (names,); 0 where there is none."""
        if names == self._names:
            found: Array = self.moments[MEAN, self._columns]
            return found
        return np.array([self.moments[MEAN, i] if (i := self._index.get(name, -1)) >= 0 else 0.0 for name in names])

    def columns_of(self, names: tuple[Any, ...]) -> npt.NDArray[np.intp]:
        """The columns of `moments` and of the influences, shape (names,); new names get one."""
        if names != self._names:
            if any(name not in self._index for name in names):
                self._add([name for name in names if name not in self._index])
            self._names = names
            self._columns = np.fromiter((self._index[name] for name in names), dtype=np.intp, count=len(names))
        return self._columns

    def room(self, names: tuple[Any, ...]) -> _Room | None:
        """For a compiled step, which `counted` has to follow, too; None where some of these names are new."""
        if self.influence is None or (names != self._names and not self._index.keys() >= set(names)):
            return None
        self.columns_of(names)
        return self._columns, (self.weights.n + 1, self.influence.width, self.moments, self.influence.table)

    def _update_plain(
        self,
        rate: float,
        columns: npt.NDArray[np.intp],
        increments: Array,
        parts: Array | None,
        slots: npt.NDArray[np.intp] | None,
    ) -> None:
        values = np.zeros(len(self._index))
        values[columns] = increments
        # West's update with normalised weights: exact, and without the cancellation of E[v^2] - E[v]^2.
        mean, first = self.moments[MEAN], self.weights.n == 0
        difference = values - mean
        if self.influence is not None:
            # The first increment is the mean itself: there is nothing yet to deviate from.
            known = parts is not None and not first
            self.influence.update(
                rate,
                np.zeros(len(values)) if first else difference,
                columns,
                parts - mean[columns, None] if known and parts is not None else None,
                slots,
            )
        step = rate * difference
        mean += step
        self.moments[VARIANCE] = (1.0 - rate) * (self.moments[VARIANCE] + difference * step)

    def stored(self, slot: int | None) -> None:
        """Say in which slot the observation of the last `update` is stored now; None for none."""
        if self.influence is not None:
            self.influence.stored(slot)

    def _add(self, names: list[Any]) -> None:
        for name in names:
            self._index[name] = len(self._index)
        self.moments = np.pad(self.moments, ((0, 0), (0, len(names))))
        if self.influence is not None:
            self.influence.grow(len(self._index))

    def _forget(self) -> None:
        kept = np.flatnonzero(self.weights.n - self.moments[SEEN] < self._memory)
        if len(kept) == len(self._index):
            return
        names, self._names = list(self._index), None
        self._index = {names[old]: new for new, old in enumerate(kept.tolist())}
        self.moments = np.ascontiguousarray(self.moments[:, kept])
        if self.influence is not None:
            self.influence.select(kept)

    @property
    def names(self) -> Collection[Any]:
        """What there is a mean of."""
        return self._index.keys()

    def mean(self) -> Importance:
        """The weighted mean, with weights that sum to 1 (bias-corrected)."""
        return dict(zip(self._index, self.moments[MEAN].tolist(), strict=True))

    def raw_mean(self) -> Importance:
        """The recursion from 0 as the papers print it: `mean()` times 1 - (1 - alpha)^n."""
        return dict(zip(self._index, (self.moments[MEAN] * self.weights.total).tolist(), strict=True))

    def std_error(self) -> Importance:
        """Standard error of `mean()`; NaN before the second observation.

        The root of the variance that takes shared rows into account; but since that estimate is a difference, which
        can come out too small in few observations, at least of two thirds of that of uncorrelated increments, weighted
        variance / (1 - q) * q with q the sum of the squared weights. Without a reservoir it is the latter.
        """
        if self.weights.n < 2:
            return dict.fromkeys(self._index, math.nan)
        q = self.weights.squares
        # With alpha = 1 only the last value counts: its spread cannot be known.
        variance = self.moments[VARIANCE] * (q / (1.0 - q) if q < 1.0 else math.nan)
        if self.influence is not None:
            variance = np.maximum(_LEAST * variance, self.influence.variance())
        return dict(zip(self._index, np.sqrt(variance).tolist(), strict=True))

    def snapshot(self) -> Snapshot:
        """Plain data to restore from."""
        return {
            "weights": self.weights.snapshot(),
            "names": list(self._index),
            "mean": self.moments[MEAN].tolist(),
            "variance": self.moments[VARIANCE].tolist(),
            "last_seen": self.moments[SEEN].astype(np.int64).tolist(),
            "influence": None if self.influence is None else self.influence.snapshot(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> SmoothedImportance:
        """The means that the snapshot was taken of."""
        smoothed = cls(snapshot["weights"]["alpha"])
        smoothed.weights = Weights.from_snapshot(snapshot["weights"])
        smoothed._index = {name: i for i, name in enumerate(snapshot["names"])}
        smoothed.moments = np.array([snapshot[name] for name in ("mean", "variance", "last_seen")], dtype=np.float64)
        if snapshot["influence"] is not None:
            smoothed.influence = RowInfluence.from_snapshot(snapshot["influence"])
        return smoothed
