"""Grids of values of one feature: which there should be, and when the old one no longer serves."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ...typing import Snapshot

MOVED = 0.2
"""A grid of quantiles is laid anew when a point's rank among the values is off by more than this."""
LARGEST = 1e307
"""A larger number is no value of a grid: the difference of two is a float up to here."""


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

    numeric = True

    def __init__(self, window: int, reach: int) -> None:
        self._window, self._reach = window, max(window, reach)
        self.sample: list[Any] = []
        self.n = 0
        self._ranks: list[float] = []  # at which the points of the last grid lay; empty for a grid of all values

    def see_all(self, values: Sequence[Any], draws: Sequence[float]) -> None:
        """Take in values, None for none; `draws` has a number for each that is uniform in [0, 1)."""
        n, sample, window, reach = self.n, self.sample, self._window, self._reach
        for value, draw in zip(values, draws, strict=True):
            if value is None:
                continue
            n += 1
            if len(sample) < window:
                sample.append(value)
                continue
            chance = window / (reach if n > reach else n)
            if draw < chance:
                sample[min(int(draw / chance * window), window - 1)] = value
        self.n = n

    def new_grid(self, grid: list[Any], size: int) -> list[Any] | None:
        """Return the grid that there should be, ascending; None while the one that there is serves."""
        values = sorted(self.sample)
        points = sorted(set(values))
        if len(points) <= size:
            self._ranks = []
            return None if len(grid) <= size and set(points) <= set(grid) else points
        if self._ranks and len(self._ranks) == len(grid) and self._serves(grid, values):
            return None
        ranks: dict[Any, list[float]] = {}
        for i in range(size):
            ranks.setdefault(values[(2 * i + 1) * len(values) // (2 * size)], []).append((i + 0.5) / size)
        self._ranks = [sum(of_one) / len(of_one) for of_one in ranks.values()]
        return list(ranks)

    def _serves(self, grid: list[Any], values: list[Any]) -> bool:
        n = len(values)
        return all(
            bisect_left(values, point) / n - MOVED <= rank <= bisect_right(values, point) / n + MOVED
            for point, rank in zip(grid, self._ranks, strict=True)
        )

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"n": self.n, "sample": list(self.sample), "ranks": list(self._ranks)}

    def restore(self, snapshot: Snapshot) -> None:
        """Take the state of a snapshot."""
        self.n, self.sample, self._ranks = snapshot["n"], list(snapshot["sample"]), list(snapshot["ranks"])


class CategoryValues:
    """The categories that a grid has, at most `size`, in the order in which they appeared.

    Where there are more, the one seen longest ago makes room for one that comes, if it has not been seen among the last
    `window` values. So forty categories that keep coming do not chase each other from the grid.
    """

    numeric = False

    def __init__(self, size: int, window: int) -> None:
        self._size, self._window = size, window
        self._seen: dict[Any, int] = {}  # category to its last value's number
        self.n = 0

    def see_all(self, values: Sequence[Any], draws: Sequence[float]) -> None:
        """Take in values, None for none; the draws decide nothing here."""
        for value in values:
            if value is not None:
                self._see(value)

    def _see(self, value: Any) -> None:
        self.n += 1
        if value not in self._seen and len(self._seen) >= self._size:
            oldest = min(self._seen, key=self._seen.__getitem__)
            if self.n - self._seen[oldest] <= self._window:
                return
            del self._seen[oldest]
        self._seen[value] = self.n

    def new_grid(self, grid: list[Any], size: int) -> list[Any] | None:
        """Return the grid that there should be; None where there is no other category than there was."""
        points = list(self._seen)
        return None if points == grid else points

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"n": self.n, "seen": list(self._seen.items())}

    def restore(self, snapshot: Snapshot) -> None:
        """Take the state of a snapshot."""
        self.n, self._seen = snapshot["n"], dict(map(tuple, snapshot["seen"]))


def plain_value(value: Any) -> Any:
    """Return the value as a builtin; None for what no grid can hold: None, NaN, infinite, not hashable."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (int, float)):
        return value if -LARGEST <= value <= LARGEST else None
    return value if isinstance(value, Hashable) else None


def values_of(rows: Sequence[Mapping[Any, Any]], name: Any, *, numeric: bool) -> list[Any]:
    """Return a feature's value in each row, None where it has none that fits a grid of numbers, or of categories."""
    values = [row.get(name) for row in rows]
    kinds = set(map(type, values))
    if kinds <= _PLAIN_NUMBERS and _are_within(values, kinds):
        return values
    plain = map(plain_value, values)
    return [value if not numeric or is_number(value) else None for value in plain]


_PLAIN_NUMBERS = {float, int}


def _are_within(values: list[Any], kinds: set[type]) -> bool:
    if len(kinds) == 1 and sum(map(abs, values)) <= LARGEST:  # as nearly always; NaN and infinities come out False
        return True
    return all(-LARGEST <= value <= LARGEST for value in values)


def is_number(value: Any) -> bool:
    """Return whether a plain value is a number; a bool is a category."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
