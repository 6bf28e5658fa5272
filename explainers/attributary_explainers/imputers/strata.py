"""Draws that are spread over a reservoir: stored rows in the order of a key, one draw from each equal part."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..ordering import ABSENT, sort_key
from ..predictions import is_usable

_DIGITS = 9


class SlotOrder:
    """The slots of a reservoir, sorted by a key; ties in the order of the slots.

    It follows from the stored rows alone, so that it is not part of any saved state.
    """

    def __init__(self) -> None:
        self._keys: dict[int, Any] = {}
        self._sorted: list[tuple[Any, int]] = []

    def put(self, slot: int, key: Any) -> None:
        """Say which key the slot has now."""
        if slot in self._keys:
            del self._sorted[bisect_left(self._sorted, (self._keys[slot], slot))]
        self._keys[slot] = key
        insort(self._sorted, (key, slot))

    def slots(self) -> list[int]:
        """The slots, those with the least keys first."""
        return [slot for _, slot in self._sorted]

    def at(self, positions: Iterable[int]) -> list[int]:
        """The slots at these positions of the order."""
        in_order = self._sorted
        return [in_order[position][1] for position in positions]


def row_key(row: Any, features: Any) -> tuple[Any, ...]:
    """The key of a stored row by its values of some features."""
    return tuple(sort_key(row.get(feature, ABSENT)) for feature in features)


def prediction_key(prediction: Any) -> tuple[Any, ...]:
    """The key of a stored row by what the model predicted for it: the most probable class with its probability.

    One that cannot be used has that of a 0: NaN could not be sorted. Rounded, and of equally probable classes the one
    that sorts first: a fast path, which may differ in the last digit and in the order of the classes, gives the same.
    """
    if isinstance(prediction, dict) and is_usable(prediction):
        highest = max(prediction.values())
        most, near = round(highest, _DIGITS), highest - 2.0 * 10.0**-_DIGITS
        best = [label for label, p in prediction.items() if p >= near and round(p, _DIGITS) == most]
        return (*(sort_key(best[0]) if len(best) == 1 else min(map(sort_key, best))), float(most))
    known = isinstance(prediction, (int, float)) and is_usable(prediction)
    return (0, float(f"{prediction:.{_DIGITS}g}") if known else 0.0)


def strata(n_slots: int, n: int, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> npt.NDArray[np.intp]:
    """Positions in an order of `n_slots`, one uniformly drawn from each of `n` equal parts.

    Every position is drawn with probability n / n_slots, as if independently, so that means over the draws have the
    expectation that independent draws give.

    Returns
    -------
    Array of shape (*shape, n).
    """
    u = rng.random((*shape, n))
    positions = ((np.arange(n) + u) * (n_slots / n)).astype(np.intp)
    return np.minimum(positions, n_slots - 1)


def independent_sets(n: int) -> list[int]:
    """Sizes of sets of draws that are made independently of each other: two halves, and one draw over where n is odd.

    How far the means of the two halves are apart shows how far the mean of all draws varies.
    """
    return [size for size in (n // 2, n // 2, n % 2) if size]


def strata_of_sets(n_slots: int, n: int, rng: np.random.Generator) -> list[int]:
    """Positions of the independent sets of n draws, each stratified as by `strata`, one set after the other."""
    drawn = zip(_parts(n_slots, n), rng.random(n).tolist(), strict=True)
    return [min(int((i + u) * width), n_slots - 1) for (i, width), u in drawn]


@lru_cache(maxsize=64)
def _parts(n_slots: int, n: int) -> list[tuple[int, float]]:
    """Of each draw, the number of its part among those of its set, and their width."""
    return [(i, n_slots / size) for size in independent_sets(n) for i in range(size)]
