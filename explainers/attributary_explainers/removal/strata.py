"""Stratified draws: a row from each equal part of the sorted stored rows."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..core.reservoir import Halves
from ..ordering import ABSENT, sort_key
from ..predictions import is_usable

_DIGITS = 9
_NEAR = 2.0 * 10.0**-_DIGITS


class SlotOrder:
    """Keeps the slots of a reservoir sorted by key, and equal keys by slot.

    It follows from the stored rows alone, so that it is not part of any saved state.
    """

    def __init__(self) -> None:
        self._keys: list[Any] = []
        """By slot its key, which is never None; None: the slot is not there."""
        self._places: list[Any] = []
        """Each key with its slot, in order."""
        self._sorted = array("q")
        """The slots of these."""

    @classmethod
    def of(cls, keys: dict[int, Any]) -> Self:
        """Return the order of slots with these keys, as repeated `put` makes it."""
        order = cls()
        order._keys = [keys.get(slot) for slot in range(max(keys, default=-1) + 1)]
        order._places = sorted((key, slot) for slot, key in keys.items())
        order._sorted = array("q", [slot for _, slot in order._places])
        return order

    def put(self, slot: int, key: Any) -> None:
        """Give a slot a key, replacing any present key."""
        keys = self._keys
        if slot >= len(keys):
            keys += [None] * (slot + 1 - len(keys))
        elif keys[slot] is not None:
            self.remove(slot)
        keys[slot], place = key, (key, slot)
        i = bisect_left(self._places, place)
        self._places.insert(i, place)
        self._sorted.insert(i, slot)

    def remove(self, slot: int) -> Any:
        """Take a slot out, and return its key."""
        key, self._keys[slot] = self._keys[slot], None
        i = bisect_left(self._places, (key, slot))
        del self._places[i], self._sorted[i]
        return key

    def __len__(self) -> int:
        return len(self._sorted)

    def slots(self) -> list[int]:
        """Return the slots in ascending order of their keys."""
        return list(self._sorted)

    def as_array(self) -> npt.NDArray[np.int64]:
        """Return the slots as an array of its own."""
        return np.array(self._sorted, dtype=np.int64)

    def at(self, positions: Iterable[int]) -> list[int]:
        """Return the slots at these positions of the order."""
        in_order = self._sorted
        return [in_order[position] for position in positions]


class HalvesByAge:
    """Keeps the older and the younger half of the slots, each sorted by a key.

    Draws from the two are independent of each other, even as to what is stored: consecutive rows, which are alike on
    most streams, mostly lie in the same half.

    Keys are those of `prediction_key`: the class, which is sorted by first, and a number; or () for a row without one.
    """

    def __init__(self) -> None:
        self.halves = Halves()
        self._classes: list[tuple[Any, ...]] = []
        """What keys begin with, sorted."""

    def put(self, slot: int, key: tuple[Any, ...], number: int) -> None:
        """Set the key of a slot with a newly stored row, replacing its old key.

        Parameters
        ----------
        slot
            One of those before, or the next one.
        number
            Which observation of the stream the row was: less for what is older.
        """
        self.halves.put(slot, number, self._place_of(key[:-1]), key[-1] if key else 0.0)

    def _place_of(self, of_class: tuple[Any, ...]) -> int:
        """Return a class's place in the order; insert a new class if needed."""
        classes = self._classes
        place = bisect_left(classes, of_class)
        if place == len(classes) or classes[place] != of_class:
            places = self.halves.keys[0]
            if len(classes) > 2 * len(places):  # ever new classes
                used, places[: self.halves.n] = np.unique(places[: self.halves.n], return_inverse=True)
                classes[:] = [classes[int(i)] for i in used]
                place = bisect_left(classes, of_class)
            classes.insert(place, of_class)
            places[places >= place] += 1.0
        return place

    @classmethod
    def of(cls, keys: Sequence[tuple[Any, ...]], numbers: Sequence[int]) -> Self:
        """Return the halves of these slots, as repeated `put` makes them."""
        made = cls()
        made._classes = sorted({key[:-1] for key in keys})
        place = {of_class: i for i, of_class in enumerate(made._classes)}
        made.halves = Halves(len(keys))
        made.halves.put_all(
            [[place[key[:-1]] for key in keys], [key[-1] if key else 0.0 for key in keys]], np.array(numbers, np.int64)
        )
        return made


def row_key(row: Any, features: Any) -> tuple[Any, ...]:
    """Return the key of a stored row by its values of some features."""
    return tuple(sort_key(row.get(feature, ABSENT)) for feature in features)


def prediction_key(prediction: Any) -> tuple[Any, ...]:
    """Return a prediction's sort key: its number, or class and probability.

    A prediction that cannot be used has the key of 0, as NaN could not be sorted. The class is the most probable one,
    the first of equally probable ones, and numbers are rounded, so that a fast path gives the same key: it may differ
    from the model in the last digit, and in the order of the classes.
    """
    if isinstance(prediction, dict) and is_usable(prediction):
        highest: float = max(prediction.values())
        most, near = round(highest, _DIGITS), highest - _NEAR
        best = [label for label, p in prediction.items() if p >= near]
        if len(best) == 1:
            return (*sort_key(best[0]), float(most))
        best = [label for label in best if (p := prediction[label]) == highest or round(p, _DIGITS) == most]
        return (*min(map(sort_key, best)), float(most))
    known = isinstance(prediction, (int, float)) and is_usable(prediction)
    return (0, float(f"{prediction:.{_DIGITS}g}") if known else 0.0)


def strata(n_slots: int, n: int, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> npt.NDArray[np.intp]:
    """Draw a position from each of `n` equal parts of `n_slots`, uniformly.

    Every position is drawn with probability n / n_slots, as if independently, so that means over the draws have the
    expectation that independent draws give.

    Returns
    -------
    An array of shape (*shape, n).
    """
    u = rng.random((*shape, n))
    positions = ((np.arange(n) + u) * (n_slots / n)).astype(np.intp)
    return np.minimum(positions, n_slots - 1)


def independent_sets(n: int) -> list[int]:
    """Return the sizes of the independent sets of draws: the halves of n.

    The second half has one more for an odd n; a single draw is one set. How far the means of the two are apart shows
    how far the mean of all draws varies.
    """
    return [n] if n == 1 else [n // 2, n - n // 2]


def strata_of_sets(n_slots: int, n: int, rng: np.random.Generator) -> list[int]:
    """Draw the positions of all independent sets, stratified within each."""
    drawn = zip(_parts(n_slots, n), rng.random(n).tolist(), strict=True)
    return [min(int((i + u) * width), n_slots - 1) for (i, width), u in drawn]


@lru_cache(maxsize=64)
def _parts(n_slots: int, n: int) -> list[tuple[int, float]]:
    """Return for each draw its part's number in its set and its part's width."""
    return [(i, n_slots / size) for size in independent_sets(n) for i in range(size)]
