"""An order in which values of all types can be sorted."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np

ABSENT = object()
"""Stands for a feature that is absent, and sorts before all values."""


def sort_key(value: Any) -> tuple[Any, ...]:
    """Return a key: absent, numbers, NaN, text, then others by type and text."""
    if value is ABSENT:
        return (0,)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return (2,) if value != value else (1, value)
    return (3, value) if isinstance(value, str) else (4, type(value).__name__, repr(value))


class OrderNumbers:
    """Numbers for a growing list of distinct values, in sort-key order.

    A new value takes the number in the middle between its neighbours', so that the others keep theirs. Where floats
    leave no room in the middle, after dozens of values in one gap at the earliest, all are numbered anew: 0, 1, …
    """

    def __init__(self) -> None:
        self.numbers: list[float] = []
        """The number of each value, in the order of the values' list."""
        self._sorted: list[tuple[tuple[Any, ...], int]] = []

    def extend(self, values: Sequence[Any]) -> bool:
        """Number the new values; return whether earlier numbers changed.

        Parameters
        ----------
        values
            The list as before, with any new values at its end; no two have the same sort key.
        """
        n_known = len(self.numbers)
        new = [(sort_key(value), i) for i, value in enumerate(values[n_known:], n_known)]
        if len(new) > len(self._sorted):
            self._sorted = sorted(self._sorted + new)
            self._number_all()
            return n_known > 0
        is_anew = False
        for key in new:
            at = bisect(self._sorted, key)
            self._sorted.insert(at, key)
            is_anew |= self._number_at(at)
        return is_anew

    def _number_at(self, at: int) -> bool:
        """Number the value at this place; return whether all were renumbered."""
        ordered, numbers = self._sorted, self.numbers
        below = numbers[ordered[at - 1][1]] if at > 0 else None
        above = numbers[ordered[at + 1][1]] if at + 1 < len(ordered) else None
        if below is None or above is None:
            number = above - 1.0 if above is not None else 0.0 if below is None else below + 1.0
        else:
            number = (below + above) / 2.0
            if not below < number < above:
                self._number_all()
                return True
        numbers.append(number)
        return False

    def _number_all(self) -> None:
        self.numbers = [0.0] * len(self._sorted)
        for rank, (_, i) in enumerate(self._sorted):
            self.numbers[i] = float(rank)
