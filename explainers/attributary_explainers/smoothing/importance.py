"""Exponentially weighted importance with its standard error."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..typing import Importance, Snapshot
from .influence import RowInfluence
from .kernels import MEAN, SEEN, VARIANCE, smooth
from .means import Weights, memory_of

Array = npt.NDArray[np.float64]

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
        rows that they share (see `RowInfluence`). 0: increments count as uncorrelated.

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
        """Shape (3, features): see `kernels`."""
        self.influence = RowInfluence(n_slots)
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
        values = np.fromiter(increments.values(), dtype=np.float64, count=len(increments))
        self.update_arrays(tuple(increments), values, parts, slots)

    def update_arrays(
        self,
        names: tuple[Any, ...],
        increments: Array,
        parts: Array | None,
        slots: npt.NDArray[np.intp] | None,
        times: int = 1,
    ) -> float:
        """Do what `update` does, with the increments as an array of shape (names,); return their share in the mean.

        Parameters
        ----------
        times
            The increments have the weight of as many observations, see `Weights.step`.
        """
        if parts is None or slots is None:
            parts, slots = np.zeros((len(names), 0)), np.zeros((1, 0), dtype=np.intp)
        elif slots.ndim == 1:
            slots = slots[None]
        columns, influence = self.columns_of(names), self.influence
        rate = self.weights.step(times)
        n = self.weights.n
        smooth(rate, columns, increments, parts, slots, n, influence.width, self.moments, influence.table)
        if n % self._memory == 0:
            self._forget()
        return rate

    def means_of(self, names: tuple[Any, ...]) -> Array:
        """Return the mean so far of each of these, shape (names,); 0 where there is none."""
        if names == self._names:
            found: Array = self.moments[MEAN, self._columns]
            return found
        return np.array([self.moments[MEAN, i] if (i := self._index.get(name, -1)) >= 0 else 0.0 for name in names])

    def columns_of(self, names: tuple[Any, ...]) -> npt.NDArray[np.intp]:
        """Return the columns of `moments` and of the influences, shape (names,); new names get one."""
        if names != self._names:
            if any(name not in self._index for name in names):
                self._add([name for name in names if name not in self._index])
            self._names = names
            self._columns = np.fromiter((self._index[name] for name in names), dtype=np.intp, count=len(names))
        return self._columns

    def stored(self, slot: int | None) -> None:
        """Say in which slot the observation of the last `update` is stored now; None for none."""
        self.influence.stored(slot)

    def _add(self, names: list[Any]) -> None:
        for name in names:
            self._index[name] = len(self._index)
        self.moments = np.pad(self.moments, ((0, 0), (0, len(names))))
        self.influence.grow(len(self._index))

    def _forget(self) -> None:
        kept = np.flatnonzero(self.weights.n - self.moments[SEEN] < self._memory)
        if len(kept) == len(self._index):
            return
        names, self._names = list(self._index), None
        self._index = {names[old]: new for new, old in enumerate(kept.tolist())}
        self.moments = np.ascontiguousarray(self.moments[:, kept])
        self.influence.select(kept)

    @property
    def names(self) -> Collection[Any]:
        """The features and groups that there is a mean of."""
        return self._index.keys()

    def mean(self) -> Importance:
        """Return the weighted mean, with weights that sum to 1 (bias-corrected)."""
        return dict(zip(self._index, self.moments[MEAN].tolist(), strict=True))

    def raw_mean(self) -> Importance:
        """Return the recursion from 0 as the papers print it: `mean()` times 1 - (1 - alpha)^n."""
        return dict(zip(self._index, (self.moments[MEAN] * self.weights.total).tolist(), strict=True))

    def std_error(self) -> Importance:
        """Return the standard error of `mean()`; NaN before the second observation.

        The root of the variance that takes shared rows into account; but since that estimate is a difference, which
        can come out too small in few observations, at least of two thirds of that of uncorrelated increments, weighted
        variance / (1 - q) * q with q the sum of the squared weights. Without a reservoir it is the latter.
        """
        if self.weights.n < 2:
            return dict.fromkeys(self._index, math.nan)
        q = self.weights.squares
        # With alpha = 1 only the last value counts: its spread cannot be known.
        variance = self.moments[VARIANCE] * (q / (1.0 - q) if q < 1.0 else math.nan)
        if self.influence.n_slots:
            variance = np.maximum(_LEAST * variance, self.influence.variance())
        return dict(zip(self._index, np.sqrt(variance).tolist(), strict=True))

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "weights": self.weights.snapshot(),
            "names": list(self._index),
            "mean": self.moments[MEAN].tolist(),
            "variance": self.moments[VARIANCE].tolist(),
            "last_seen": self.moments[SEEN].astype(np.int64).tolist(),
            "influence": self.influence.snapshot(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> SmoothedImportance:
        """Return the means that the snapshot was taken of."""
        smoothed = cls(snapshot["weights"]["alpha"])
        smoothed.weights = Weights.from_snapshot(snapshot["weights"])
        smoothed._index = {name: i for i, name in enumerate(snapshot["names"])}
        smoothed.moments = np.array([snapshot[name] for name in ("mean", "variance", "last_seen")], dtype=np.float64)
        smoothed.influence = RowInfluence.from_snapshot(snapshot["influence"])
        return smoothed
