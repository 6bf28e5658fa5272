"""Draws that are spread over a reservoir: stored rows in the order of a key, one draw from each equal part."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from .models import is_usable

_ABSENT = object()


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
        return [self._sorted[position][1] for position in positions]


def sort_key(value: Any) -> tuple[Any, ...]:
    """A key that sorts values of all types: absent, numbers, NaN, text, then the rest by type and text."""
    if value is _ABSENT:
        return (0,)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return (2,) if value != value else (1, value)
    return (3, value) if isinstance(value, str) else (4, type(value).__name__, repr(value))


def row_key(row: Any, features: Any) -> tuple[Any, ...]:
    """The key of a stored row by its values of some features."""
    return tuple(sort_key(row.get(feature, _ABSENT)) for feature in features)


def prediction_key(prediction: Any) -> tuple[Any, ...]:
    """The key of a stored row by what the model predicted for it: the most probable class with its probability.

    One that cannot be used has that of a 0: NaN could not be sorted.
    """
    if isinstance(prediction, dict) and is_usable(prediction):
        label = max(prediction, key=prediction.__getitem__)
        return (*sort_key(label), float(prediction[label]))
    return (0, float(prediction) if isinstance(prediction, (int, float)) and is_usable(prediction) else 0.0)


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


def strata_of_sets(n_slots: int, n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Positions of the independent sets of n draws, each stratified, one set after the other; shape (n,)."""
    return np.concatenate([strata(n_slots, size, rng) for size in independent_sets(n)])
