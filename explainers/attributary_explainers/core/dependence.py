# cython: infer_types=True
"""Partial dependence: grids of feature values, and rows for the model."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import isfinite
else:
    from math import isfinite

MOVED = 0.2
"""A grid of quantiles is laid anew when a point's rank among the values is off by more than this."""
_LARGEST = cython.declare(cython.double, 1e307)
"""A larger number is no value of a grid: the difference of two is a float up to here."""
_NOT_A_NUMBER = cython.declare(cython.double, float("nan"))


@cython.cclass
class NumberValues:
    """A sample of a number's values, of which its grid is made.

    The sample is uniform over the first `reach` values, and then one in which a value's chance to be there fades with
    its age, by 1/e in `reach` values. The grid has all values where at most `size` differ, else those at the quantiles
    (i + 1/2) / size.

    Parameters
    ----------
    window
        Values in the sample.
    reach
        Mean age of the values in the sample, in values; at least `window`.
    """

    numeric = cython.declare(cython.bint, visibility="readonly")
    sample = cython.declare(list, visibility="readonly")
    n = cython.declare(cython.longlong, visibility="readonly")
    _window: cython.longlong
    _reach: cython.longlong
    _ranks: list
    """At which the points of the last grid lay; empty for a grid of all values."""

    def __init__(self, window: int, reach: int) -> None:
        self.numeric = True
        self._window, self._reach = window, max(window, reach)
        self.sample, self._ranks = [], []
        self.n = 0

    def see(self, value: Any, draw: cython.double) -> None:
        """Take in a value; `draw` is uniform in [0, 1)."""
        chance: cython.double = self._window
        place: cython.longlong
        self.n += 1
        if len(self.sample) < self._window:
            self.sample.append(value)
            return
        chance /= min(self.n, self._reach)
        if draw < chance:
            place = int(draw / chance * self._window)
            self.sample[min(place, self._window - 1)] = value

    def new_grid(self, grid: Any, size: int) -> Any:
        """Return a new ascending grid, or None while the present grid serves."""
        values = sorted(self.sample)
        points = sorted(set(values))
        if len(points) <= size:
            self._ranks = []
            return None if len(grid) <= size and set(points) <= set(grid) else points
        if self._ranks and len(self._ranks) == len(grid) and self._serves(grid, values):
            return None
        ranks: Any = {}
        for i in range(size):
            ranks.setdefault(values[(2 * i + 1) * len(values) // (2 * size)], []).append((i + 0.5) / size)
        self._ranks = [sum(of_one) / len(of_one) for of_one in ranks.values()]
        return list(ranks)

    def _serves(self, grid: Any, values: Any) -> bool:
        n: cython.double = len(values)
        for point, rank in zip(grid, self._ranks, strict=True):
            if not bisect_left(values, point) / n - MOVED <= rank <= bisect_right(values, point) / n + MOVED:
                return False
        return True

    def snapshot(self) -> Any:
        """Return plain data to restore from."""
        return {"n": self.n, "sample": list(self.sample), "ranks": list(self._ranks)}

    def restore(self, snapshot: Any) -> None:
        """Take the state of a snapshot."""
        self.n, self.sample, self._ranks = snapshot["n"], list(snapshot["sample"]), list(snapshot["ranks"])


@cython.cclass
class CategoryValues:
    """The categories of a grid, at most `size`, in order of appearance.

    Where there are more, a new one replaces the one seen longest ago, if that is not among the last `window` values.
    So forty categories that keep coming do not push each other out of the grid.
    """

    numeric = cython.declare(cython.bint, visibility="readonly")
    n = cython.declare(cython.longlong, visibility="readonly")
    _size: cython.longlong
    _window: cython.longlong
    _seen: dict
    """Category to its last value's number."""

    def __init__(self, size: int, window: int) -> None:
        self.numeric = False
        self._size, self._window = size, window
        self._seen = {}
        self.n = 0

    def see(self, value: Any, _: cython.double) -> None:
        """Take in a value; nothing is drawn here."""
        self.n += 1
        if value not in self._seen and len(self._seen) >= self._size:
            oldest = min(self._seen, key=self._seen.__getitem__)
            if self.n - self._seen[oldest] <= self._window:
                return
            del self._seen[oldest]
        self._seen[value] = self.n

    def new_grid(self, grid: Any, size: int) -> Any:
        """Return the new grid; None where the categories have not changed."""
        points = list(self._seen)
        return None if points == grid else points

    def snapshot(self) -> Any:
        """Return plain data to restore from."""
        return {"n": self.n, "seen": list(self._seen.items())}

    def restore(self, snapshot: Any) -> None:
        """Take the state of a snapshot."""
        self.n, self._seen = snapshot["n"], dict(map(tuple, snapshot["seen"]))


def plain_value(value: Any) -> Any:
    """Return the value as a builtin; None if NaN, infinite or not hashable."""
    number: cython.double
    kind = type(value)
    if kind is float:
        number = value
        return value if -_LARGEST <= number <= _LARGEST else None
    if kind is str or kind is bool:
        return value
    if kind is not int and isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (int, float)):
        return value if -1e307 <= value <= 1e307 else None
    return value if isinstance(value, Hashable) else None


def fitting(value: Any, numeric: cython.bint) -> Any:
    """Return a value as a builtin; None where it does not fit the grid."""
    value = plain_value(value)
    return None if numeric and not is_number(value) else value


def fitting_of(rows: Any, name: Any, numeric: cython.bint) -> Any:
    """Return a feature's value in each row, None where it has none that fits."""
    return [fitting(row.get(name), numeric) for row in rows]


def is_number(value: Any) -> bool:
    """Return whether a plain value is a number; a bool is a category."""
    return type(value) is float or (isinstance(value, (int, float)) and not isinstance(value, bool))


def fill_grid(
    rows: cython.double[:, ::1], which: cython.longlong[::1], column: cython.Py_ssize_t, values: cython.double[::1],
    X: cython.double[:, ::1],
) -> None:  # fmt: skip
    """Write the chosen rows once for each value, with `column` set to it."""
    r: cython.Py_ssize_t = 0
    for i in range(which.shape[0]):
        for p in range(values.shape[0]):
            for j in range(rows.shape[1]):
                X[r, j] = rows[which[i], j]
            X[r, column] = values[p]
            r += 1


def choose_column(
    P: cython.double[:, ::1], column: cython.Py_ssize_t, largest: cython.double, found: cython.double[::1]
) -> None:
    """Copy a column of P (-1: zeros), NaN in rows not finite or too large."""
    for r in range(P.shape[0]):
        value = P[r, column] if column >= 0 else 0.0
        for c in range(P.shape[1]):
            if not isfinite(P[r, c]):
                value = _NOT_A_NUMBER
        found[r] = value if abs(value) <= largest else _NOT_A_NUMBER
