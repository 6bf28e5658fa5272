"""Stored rows, and their slots ordered by feature, age and prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.attributary_explainers.core.uniforms import Uniforms
else:
    from .uniforms import Uniforms

_INFINITE = cython.declare(cython.double, float("inf"))
OLDER, YOUNGER, BY_AGE, ROW_NUMBER = range(4)
"""Rows of `Halves.orders`."""
# The same as C knows them.
_OLDER = cython.declare(cython.int, 0)
_YOUNGER = cython.declare(cython.int, 1)
_BY_AGE = cython.declare(cython.int, 2)
_ROW_NUMBER = cython.declare(cython.int, 3)


@cython.cclass
class SortedRows:
    """The stored observations as an array, and their order by each feature.

    Parameters
    ----------
    size, n_columns
        The number of slots, and of features.
    """

    matrix = cython.declare(object, visibility="readonly")
    """Shape (slots, features)."""
    order = cython.declare(object, visibility="readonly")
    """Shape (features, slots): the slots, that with the least key first, ties by slot."""
    keys = cython.declare(object, visibility="readonly")
    """Shape (features, slots): what the slots are sorted by; -inf of what is absent."""
    n = cython.declare(cython.Py_ssize_t, visibility="readonly")
    """How many slots are in use: the first ones."""
    _matrix: cython.double[:, ::1]
    _order: cython.int[:, ::1]
    _keys: cython.double[:, ::1]

    def __init__(self, size: int, n_columns: int) -> None:
        self.matrix, self.keys = np.zeros((size, n_columns)), np.zeros((n_columns, size))
        self.order, self.n = np.zeros((n_columns, size), dtype=np.int32), 0
        self._matrix, self._order, self._keys = self.matrix, self.order, self.keys

    def __reduce__(self) -> Any:
        return _sorted_rows, (self.matrix[: self.n], self.keys[:, : self.n], len(self.matrix))

    def put_all(self, rows: Any, keys: Any) -> None:
        """Fill the first slots: rows (n x features) and keys (features x n)."""
        self.n = len(rows)
        self.matrix[: self.n], self.keys[:, : self.n] = rows, keys
        self.order[:, : self.n] = np.argsort(self.keys[:, : self.n], axis=1, kind="stable")

    # hot
    def put(self, slot: cython.Py_ssize_t, row: cython.double[::1], keys_of_row: cython.double[::1]) -> None:
        """Store an observation, and move its slot in the order of each feature.

        Parameters
        ----------
        row, keys_of_row
            Shape (features,): the observation, and what it is sorted by; NaN is what is absent, and comes first.
        """
        j: cython.Py_ssize_t
        at: cython.Py_ssize_t
        to: cython.Py_ssize_t
        key: cython.double
        for j in range(self._matrix.shape[1]):
            self._matrix[slot, j] = row[j]
            key = keys_of_row[j]
            if key != key:
                key = -_INFINITE
            if slot < self.n and self._keys[j, slot] == key:
                continue
            at = self.n if slot == self.n else self._place(j, self._keys[j, slot], slot)
            to = self._place(j, key, slot)
            while at > to:
                self._order[j, at] = self._order[j, at - 1]
                at -= 1
            while at < to - 1:
                self._order[j, at] = self._order[j, at + 1]
                at += 1
            self._order[j, at] = slot
            self._keys[j, slot] = key
        if slot == self.n:
            self.n += 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _place(self, j: cython.Py_ssize_t, key: cython.double, slot: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return how many slots come before this key in a feature's order."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = self.n
        middle: cython.Py_ssize_t
        other: cython.Py_ssize_t
        while low < high:
            middle = (low + high) // 2
            other = self._order[j, middle]
            if self._keys[j, other] < key or (self._keys[j, other] == key and other < slot):
                low = middle + 1
            else:
                high = middle
        return low


def _sorted_rows(rows: Any, keys: Any, size: int) -> SortedRows:
    made = SortedRows(size, rows.shape[1])
    made.put_all(rows, keys)
    return made


@cython.cclass
class Halves:
    """Slots of the older and of the younger stored rows, sorted by a key.

    A key is two numbers, the first one before the second; ties are in the order of the slots.
    """

    keys = cython.declare(object, visibility="readonly")
    """Shape (2, room): by slot the key."""
    orders = cython.declare(object, visibility="readonly")
    """Shape (4, room): `OLDER` and `YOUNGER` list the slots of a half, the least key first; `BY_AGE` lists all, the
    oldest first; `ROW_NUMBER` has for each slot the place of its row in the stream."""
    n = cython.declare(cython.Py_ssize_t, visibility="readonly")
    """How many slots there are."""
    _keys: cython.double[:, ::1]
    _orders: cython.longlong[:, ::1]

    def __init__(self, room: int = 16) -> None:
        self.n = 0
        self._take(np.zeros((2, max(room, 1))), np.zeros((4, max(room, 1)), dtype=np.int64))

    def _take(self, keys: Any, orders: Any) -> None:
        self.keys, self.orders = keys, orders
        self._keys, self._orders = keys, orders

    @cython.cfunc
    def _grow(self) -> cython.bint:
        more = (0, 0), (0, self.n)
        self._take(np.pad(self.keys, more), np.pad(self.orders, more))
        return True

    def __reduce__(self) -> Any:
        return _halves, (self.keys[:, : self.n], self.orders[ROW_NUMBER, : self.n])

    def put_all(self, keys: Any, numbers: Any) -> None:
        """Take the keys (2 x slots) and row numbers (slots) of the first slots."""
        self.n = n = len(numbers)
        first, second = self.keys[:, :n]
        self.keys[:, :n], self.orders[ROW_NUMBER, :n] = keys, numbers
        by_age = self.orders[BY_AGE, :n] = np.argsort(self.orders[ROW_NUMBER, :n])
        for half, slots in enumerate((by_age[: n // 2], by_age[n // 2 :])):
            self.orders[half, : len(slots)] = slots[np.lexsort((slots, second[slots], first[slots]))]

    def slots(self, half: int) -> list[int]:
        """Return the slots of the older half (0) or younger (1) by least key."""
        n_older = self.n // 2
        found: list[int] = self.orders[half, : self.n - n_older if half else n_older].tolist()
        return found

    # hot
    def put(
        self, slot: cython.Py_ssize_t, number: cython.longlong, first: cython.double, second: cython.double
    ) -> None:
        """Give a newly stored row its key and number, and update both halves.

        Parameters
        ----------
        slot
            A slot in use, or the next.
        """
        n: cython.Py_ssize_t = self.n
        n_older: cython.Py_ssize_t = n // 2
        n_younger: cython.Py_ssize_t
        half: cython.Py_ssize_t
        size: cython.Py_ssize_t
        wanted: cython.Py_ssize_t
        border: cython.Py_ssize_t
        moved: cython.Py_ssize_t
        if slot == self._orders.shape[1]:
            self._grow()
        orders: cython.longlong[:, ::1] = self._orders
        if slot < n:
            half = _OLDER if orders[_ROW_NUMBER, slot] < orders[_ROW_NUMBER, orders[_BY_AGE, n_older]] else _YOUNGER
            size = n - n_older if half else n_older
            self._take_out(self._place(slot, size, half), size, half)
            self._take_out(self._place_by_age(orders[_ROW_NUMBER, slot], n), n, _BY_AGE)
            n_older -= 1 - half
            n -= 1
        self._keys[0, slot], self._keys[1, slot], orders[_ROW_NUMBER, slot] = first, second, number
        self._insert(slot, self._place_by_age(number, n), n, _BY_AGE)
        n += 1
        wanted = n // 2
        border = orders[_BY_AGE, wanted]
        n_younger = n - 1 - n_older
        if number < orders[_ROW_NUMBER, border]:
            self._insert(slot, self._place(slot, n_older, _OLDER), n_older, _OLDER)
            n_older += 1
        else:
            self._insert(slot, self._place(slot, n_younger, _YOUNGER), n_younger, _YOUNGER)
            n_younger += 1
        # All others are where they were, but for the row on the border.
        if n_older < wanted:
            moved = orders[_BY_AGE, wanted - 1]
            self._take_out(self._place(moved, n_younger, _YOUNGER), n_younger, _YOUNGER)
            self._insert(moved, self._place(moved, n_older, _OLDER), n_older, _OLDER)
        elif n_older > wanted:
            self._take_out(self._place(border, n_older, _OLDER), n_older, _OLDER)
            self._insert(border, self._place(border, n_younger, _YOUNGER), n_younger, _YOUNGER)
        self.n = n

    @cython.cfunc
    @cython.exceptval(check=False)
    def _place(self, slot: cython.Py_ssize_t, size: cython.Py_ssize_t, half: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return the place of a slot, by its key, in a half of this size."""
        first: cython.double = self._keys[0, slot]
        second: cython.double = self._keys[1, slot]
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = size
        middle: cython.Py_ssize_t
        other: cython.Py_ssize_t
        is_less: cython.bint
        while low < high:
            middle = (low + high) // 2
            other = self._orders[half, middle]
            is_less = self._keys[1, other] < second or (self._keys[1, other] == second and other < slot)
            if self._keys[0, other] < first or (self._keys[0, other] == first and is_less):
                low = middle + 1
            else:
                high = middle
        return low

    @cython.cfunc
    @cython.exceptval(check=False)
    def _place_by_age(self, number: cython.longlong, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return the place by age of the row with this number, among n."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = n
        middle: cython.Py_ssize_t
        while low < high:
            middle = (low + high) // 2
            if self._orders[_ROW_NUMBER, self._orders[_BY_AGE, middle]] < number:
                low = middle + 1
            else:
                high = middle
        return low

    @cython.cfunc
    @cython.exceptval(check=False)
    def _take_out(self, at: cython.Py_ssize_t, n: cython.Py_ssize_t, order: cython.Py_ssize_t) -> cython.bint:
        """Take a slot out of an order of n slots."""
        i: cython.Py_ssize_t
        for i in range(at, n - 1):
            self._orders[order, i] = self._orders[order, i + 1]
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def _insert(
        self, slot: cython.Py_ssize_t, at: cython.Py_ssize_t, n: cython.Py_ssize_t, order: cython.Py_ssize_t
    ) -> cython.bint:
        """Insert a slot into an order that had n slots."""
        i: cython.Py_ssize_t
        for i in range(n, at, -1):
            self._orders[order, i] = self._orders[order, i - 1]
        self._orders[order, at] = slot
        return True

    # hot
    def draw(self, uniforms: Uniforms, stratified: cython.bint, slots: cython.Py_ssize_t[::1]) -> None:
        """Draw the slots: first half from the older rows, rest from the younger.

        Stratified, each is from an equal part of its half. A single draw is from both halves, and all draws are from
        the younger half where no row is older.
        """
        j: cython.Py_ssize_t
        place: cython.Py_ssize_t
        n: cython.Py_ssize_t = slots.shape[0]
        n_older: cython.Py_ssize_t = self.n // 2
        n_younger: cython.Py_ssize_t = self.n - n_older
        of_older: cython.Py_ssize_t = n // 2
        n_slots: cython.Py_ssize_t
        is_older: cython.bint
        width: cython.double
        u: cython.double
        if n == 1:
            width = self.n
            place = int(uniforms.next() * width)
            place = min(place, self.n - 1)
            slots[0] = self._orders[_OLDER, place] if place < n_older else self._orders[_YOUNGER, place - n_older]
            return
        for j in range(n):
            u = uniforms.next()
            is_older = j < of_older and n_older > 0
            n_slots = n_older if is_older else n_younger
            width = n_slots
            if not stratified:
                place = int(u * width)
            elif j < of_older:
                width /= of_older
                place = int((j + u) * width)
            else:
                width /= n - of_older
                place = int((j - of_older + u) * width)
            place = min(place, n_slots - 1)
            slots[j] = self._orders[_OLDER, place] if is_older else self._orders[_YOUNGER, place]


def _halves(keys: Any, numbers: Any) -> Halves:
    halves = Halves(len(numbers))
    halves.put_all(keys, numbers)
    return halves
