"""Exponentially weighted importance with its standard error."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from ..core.smoothing import (
    EXPECTED_SPREAD,
    FAST_FAST,
    FAST_SLOW,
    MEAN,
    SEEN,
    SLOW_SLOW,
    SPREAD,
    SPREAD_SQUARES,
    VARIANCE,
    Smoother,
    Weights,
    twice_smoothed,
)
from ..typing import Array, Importance, Snapshot


def t_quantile(degrees_of_freedom: float) -> float:
    """Return half of a 95 % interval in standard errors; NaN for NaN.

    Parameters
    ----------
    degrees_of_freedom
        Valid range > 0; need not be an integer.

    Examples
    --------
    >>> [round(t_quantile(nu), 2) for nu in (1, 2, 5, 20, 1000)]
    [12.71, 4.3, 2.57, 2.09, 1.96]
    """
    return float(stdtrit(degrees_of_freedom, 0.975))


_N_MOMENTS, _N_WEIGHTS = 5, 7
SLOWER = 6.0
"""How many times slower than the mean the second mean of a standard error is."""


FADED = 1e-12
_SHORTEST_MEMORY = 1000
_LONGEST_MEMORY = 2.0**62
"""No stream has so many observations; an alpha below 1e-307 would ask for more than a float can hold."""


def memory_of(alpha: float) -> int:
    """Return after how many observations without it a name is forgotten.

    Its weight has then faded below 1e-12, and at least 1000 observations have passed: a stream of ever new names has
    bounded state.
    """
    faded = math.log(FADED) / math.log1p(-alpha) if alpha < 1.0 else 0.0
    return max(_SHORTEST_MEMORY, math.ceil(min(faded, _LONGEST_MEMORY)))


class SmoothedImportance:
    """Exponentially weighted importances with standard errors, by feature.

    All features share their weights, so that sums over features are kept: the iSAGE efficiency identity
    holds for the mean whenever it holds for each increment. A feature that an observation lacks has the
    increment 0 there: removing what is absent changes nothing. A feature first seen late has the increment 0
    before. One that has not been seen while its weight faded below 1e-12, and for 1000 observations at least, is
    forgotten (see `memory_of`): a stream of ever new names has bounded state.

    **Standard error.** Consecutive increments depend on each other: observations do, and they draw from the same stored
    rows. So beside the mean phi, of rate alpha, there is a slower one s, of rate alpha / 6. Both are weighted means of
    the same increments, with weights w and v that sum to 1, so that with sigma^2 the long-run variance of the
    increments, the sum of all their autocovariances,

        E (phi - s)^2 = sigma^2 (w.w - 2 w.v + v.v),      Var phi = sigma^2 w.w,

    whatever makes the increments depend on each other, as long as that is short beside 6 / alpha: the stored rows, from
    which all draws are made, change over some 3 / alpha. With S the smoothed (phi - s)^2 and Q the smoothed bracket,
    both of rate alpha / 10 from the 21st observation on,

        std_error^2 = S / Q w.w,      degrees of freedom = 1 + 2 w.w / ((1 + w.w) u.u),

    with u the weights of S. In a long stream 2 w.w / (1 + w.w) is alpha, because the differences of about 1 / alpha
    observations say the same; at its beginning those of about half of the observations so far do. A 95 % interval is
    the mean plus or minus `half_width`, the t quantile times the standard error. Until the 21st observation the
    increments count as uncorrelated, and the degrees of freedom are one less than the observations.

    Parameters
    ----------
    alpha
        Valid range (0, 1]; see `Weights`.
    slower
        Valid range > 1; how many times slower than the mean the second one is. Larger sees what changes more slowly,
        and an interval stays wide for longer after a sudden change.
    memory
        Valid range >= 1; updates without its name after which a feature is forgotten. None: `memory_of(alpha)`.

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

    def __init__(self, alpha: float, *, slower: float = SLOWER, memory: int | None = None) -> None:
        self.latest: tuple[tuple[Any, ...], Array] = ((), np.empty(0))
        """Names and increments of the last update; no part of the state."""
        self.weights = Weights(alpha)
        self.slower = slower
        self._index: dict[Any, int] = {}
        self.moments: Array = np.zeros((_N_MOMENTS, 0))
        """Shape (5, features): see `core.smoothing`."""
        self._contrast: Array = _start_of_weights()
        self.memory = memory_of(self.weights.alpha) if memory is None else memory
        self._names: tuple[Any, ...] = ()
        self._room: Array = np.empty(0)
        """Shape (names,): room for their increments."""
        self._smoother: Smoother | None = None
        """Adds these; None where they are of other names than the last ones, or `moments` is another."""

    def update(self, increments: Mapping[Any, float], times: int = 1) -> None:
        """Add an observation's increments; other known features get 0.

        Parameters
        ----------
        increments
            Feature or group to increment.
        times
            The increments have the weight of as many observations, see `Weights.step`.
        """
        values = np.fromiter(increments.values(), dtype=np.float64, count=len(increments))
        self.update_arrays(tuple(increments), values, times)

    def update_arrays(self, names: tuple[Any, ...], increments: Array, times: int = 1) -> float:
        """Update by an array of shape (names,); return its share in the mean."""
        self.room_for(names)[:] = increments
        return self.add(times)

    def room_for(self, names: tuple[Any, ...]) -> Array:
        """Return room for increments of these, shape (names,), which `add` adds."""
        if names is not self._names and names != self._names:
            self._names, self._smoother = names, None
            self._room = np.zeros(len(names))
        return self._room

    def add(self, times: int = 1) -> float:
        """Add the increments in `room_for`; return their share in the mean."""
        if self._smoother is None:
            self._smoother = Smoother(self._contrast, *self._columns_of(self._names), self._room)
        rate: float = self._smoother.smooth(self.weights, self.slower, times)
        self.latest = self._names, self._room
        if self.weights.n % self.memory == 0:
            self._forget()
        return rate

    def means_of(self, names: tuple[Any, ...]) -> Array:
        """Return the mean of each name so far, shape (names,); 0 if unknown."""
        return np.array([self.moments[MEAN, i] if (i := self._index.get(name, -1)) >= 0 else 0.0 for name in names])

    def _columns_of(self, names: tuple[Any, ...]) -> tuple[Array, npt.NDArray[np.intp]]:
        """Return `moments` and the columns of names; add new names."""
        new = [name for name in names if name not in self._index]
        if new:
            self._add(new)
        return self.moments, np.fromiter((self._index[name] for name in names), dtype=np.intp, count=len(names))

    def _add(self, names: list[Any]) -> None:
        for name in names:
            self._index[name] = len(self._index)
        self.moments = np.pad(self.moments, ((0, 0), (0, len(names))))

    def _forget(self) -> None:
        self._keep(np.flatnonzero(self.weights.n - self.moments[SEEN] < self.memory))

    def forget(self, names: Collection[Any]) -> None:
        """Forget these features at once; unknown ones do not matter."""
        gone = set(names)
        self._keep(np.array([i for name, i in self._index.items() if name not in gone], dtype=np.intp))

    def _keep(self, kept: npt.NDArray[np.intp]) -> None:
        if len(kept) == len(self._index):
            return
        names = list(self._index)
        self._smoother = None
        self._index = {names[old]: new for new, old in enumerate(kept.tolist())}
        self.moments = np.ascontiguousarray(self.moments[:, kept])

    @property
    def names(self) -> Collection[Any]:
        """Features and groups that have a mean."""
        return self._index.keys()

    def mean(self) -> Importance:
        """Return the weighted mean, with weights that sum to 1 (bias-corrected)."""
        return dict(zip(self._index, self.moments[MEAN].tolist()))  # noqa: B905 - as many, and the check takes time

    def raw_mean(self) -> Importance:
        """Return the papers' recursion from 0: `mean()` * (1 - (1 - alpha)^n)."""
        return dict(zip(self._index, (self.moments[MEAN] * self.weights.total).tolist(), strict=True))

    def variances(self) -> Array:
        """Return squared standard errors, shape (names,); NaN for n < 2."""
        if self.weights.n < 2:
            return np.full(len(self._index), math.nan)
        expected, q = self._contrast[EXPECTED_SPREAD], self.weights.squares
        found: Array
        if expected > 0.0:
            found = self.moments[SPREAD] * (self._contrast[FAST_FAST] / expected)
        else:
            # With alpha = 1 only the last value counts: its spread cannot be known from a few.
            found = self.moments[VARIANCE] * (q / (1.0 - q) if q < 1.0 else math.nan)
        return found

    def twice_smoothed(self) -> tuple[Array, Array]:
        """Return the mean smoothed twice and its error, each of shape (names,).

        It is (k s - phi) / (k - 1), k for `slower`: the mean phi smoothed once more, by alpha / k. What swings with the
        angular frequency w is left by 1 / ((1 + iw / alpha) (1 + kiw / alpha)). No increment has a negative weight, and
        the newest ones have little. The standard error is 0 before the second increment.
        """
        found = np.empty((2, len(self._index)))
        twice_smoothed(self.slower, self.weights.n, self.weights.squares, self._contrast, self.moments, found)
        return found[0], found[1]

    @property
    def degrees_of_freedom(self) -> float:
        """Number of independent differences behind the errors; NaN for n < 2."""
        if self.weights.n < 2:
            return math.nan
        if self._contrast[EXPECTED_SPREAD] > 0.0:
            q = float(self._contrast[FAST_FAST])
            return 1.0 + 2.0 * q / ((1.0 + q) * float(self._contrast[SPREAD_SQUARES]))
        return float(self.weights.n - 1)

    def std_error(self) -> Importance:
        """Return the standard error of `mean()`; NaN for n < 2."""
        return dict(zip(self._index, np.sqrt(self.variances()).tolist(), strict=True))

    def half_width(self) -> Importance:
        """Return half-widths of 95 % intervals around `mean()`; NaN for n < 2."""
        quantile = t_quantile(self.degrees_of_freedom)
        return dict(zip(self._index, (quantile * np.sqrt(self.variances())).tolist(), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_smoother": None}

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "weights": self.weights.snapshot(),
            "slower": self.slower,
            "memory": self.memory,
            "contrast": self._contrast.tolist(),
            "names": list(self._index),
            "moments": self.moments.tolist(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> SmoothedImportance:
        """Return the means that the snapshot was taken of."""
        smoothed = cls(snapshot["weights"]["alpha"], slower=snapshot["slower"], memory=snapshot["memory"])
        smoothed.weights = Weights.from_snapshot(snapshot["weights"])
        smoothed._contrast = np.array(snapshot["contrast"], dtype=np.float64)
        smoothed._index = {name: i for i, name in enumerate(snapshot["names"])}
        smoothed.moments = np.array(snapshot["moments"], dtype=np.float64).reshape(_N_MOMENTS, -1)
        return smoothed


def _start_of_weights() -> Array:
    weights = np.zeros(_N_WEIGHTS)
    weights[[FAST_FAST, FAST_SLOW, SLOW_SLOW, SPREAD_SQUARES]] = 1.0
    return weights
