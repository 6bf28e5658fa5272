"""Reservoirs: rows that are stored, their orders, and draws from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rows import Rows

try:
    import cython
except ImportError:
    from . import _cython as cython


if cython.compiled:
    from cython.cimports.attributary_explainers.core.reservoir import attributary_bitgen  # type: ignore[import-not-found]
    from cython.cimports.cpython.pycapsule import PyCapsule_GetPointer  # type: ignore[import-not-found]


@cython.cclass
class Uniforms:
    """Uniform numbers of `generator.random()`, singly and in the same order.

    Compiled, it calls the generator's own C function: numpy's interface for extensions, `bit_generator.capsule`.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator, self._bits = generator, generator.bit_generator
        if cython.compiled:
            self._of_c = cython.cast(
                cython.pointer[attributary_bitgen], PyCapsule_GetPointer(self._bits.capsule, b"BitGenerator")
            )

    def __reduce__(self) -> Any:
        return Uniforms, (self.generator,)

    def next(self) -> float:
        """Return the next number."""
        if cython.compiled:
            return self._of_c.next_double(self._of_c.state)
        return self.generator.random()

    # hot
    def permute(self, orders: cython.Py_ssize_t[:, ::1]) -> None:
        """Write random permutations of 0, 1, …, each followed by its reverse.

        By Fisher and Yates, from the end.

        Parameters
        ----------
        orders
            Shape (permutations, numbers). Rows 0, 2, … are drawn; each row after one of these is its reverse.
        """
        o: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        size: cython.Py_ssize_t = orders.shape[1]
        for o in range(orders.shape[0]):
            if o % 2:
                for i in range(size):
                    orders[o, i] = orders[o - 1, size - 1 - i]
                continue
            for i in range(size):
                orders[o, i] = i
            for i in range(size - 1, 0, -1):
                j = int(self.next() * (i + 1))
                orders[o, i], orders[o, j] = orders[o, j], orders[o, i]


def uniforms_of(generator: np.random.Generator, before: Uniforms | None) -> Uniforms:
    """Return `before` if it is of this generator, else a new `Uniforms`."""
    return before if before is not None and before.generator is generator else Uniforms(generator)


_NEVER = cython.declare(cython.longlong, 2**62)


@cython.cclass
class WaitingRoom:
    """Observations chosen to be stored, in stream order.

    They wait until they are `gap` observations old. Then they are candidates, of which there are at most size / 2:
    where there are more, a random one leaves for the reservoir.

    Parameters
    ----------
    size
        Rows of the reservoir.
    gap
        Observations: the age at which a row becomes a candidate.
    reach
        Observations: about how far back the reservoir reaches.
    """

    rows = cython.declare(object, visibility="readonly")
    notes = cython.declare(list, visibility="readonly")
    numbers = cython.declare(list, visibility="readonly")
    """The place of each in the stream, from 1."""
    size = cython.declare(cython.longlong, visibility="public")
    reach = cython.declare(cython.longlong, visibility="public")
    _gap: cython.longlong
    _n_candidates: cython.longlong
    """How many are old enough: the first."""
    _due: cython.longlong
    """The place in the stream at which the next one will be old enough."""

    def __init__(self, size: int, gap: int, reach: int) -> None:
        self.size, self._gap, self.reach = size, gap, reach
        self.rows, self.notes, self.numbers = Rows(), [], []
        self._n_candidates, self._due = 0, _NEVER

    # hot
    def take(self, uniforms: Uniforms, x: Any, note: Any, n_seen: cython.longlong) -> cython.Py_ssize_t:
        """Choose an observation or not; return the place that leaves, or -1.

        Parameters
        ----------
        uniforms
            A number is taken for each observation, and for each that leaves.
        x, note
            The observation, which is copied where it is chosen, and plain data beside it or what returns it.
        n_seen
            The place of the observation in the stream, from 1.
        """
        # It is chosen with the probability size / (2/3 reach), at the beginning size / n_seen; times 3, in integers.
        of_size: cython.longlong = 3 * self.size
        chosen_of: cython.longlong = max(min(2 * self.reach, 3 * n_seen), of_size)
        leaving: cython.Py_ssize_t
        if uniforms.next() * chosen_of < of_size:
            self._choose(x, note, n_seen)
        if n_seen < self._due:
            return -1
        self.count_candidates(n_seen)
        if self._n_candidates <= self.size * min(n_seen, self._full_after()) // (2 * self._full_after()):
            return -1  # while the stream is shorter than the reach, there are fewer candidates in proportion
        leaving = int(uniforms.next() * self._n_candidates)
        self._n_candidates -= 1
        return leaving

    @cython.cfunc
    def _full_after(self) -> cython.longlong:
        return max(self.reach, self.size)

    @cython.cfunc
    def _choose(self, x: Any, note: Any, n_seen: cython.longlong) -> cython.bint:
        self.rows.append(x)
        self.numbers.append(n_seen)
        self.notes.append(note() if callable(note) else note)
        if len(self.numbers) == self._n_candidates + 1:
            self._due = self._old_enough_at(n_seen)
        return True

    @cython.cfunc
    def _old_enough_at(self, number: cython.longlong) -> cython.longlong:
        """Return when an observation is old enough: `gap`, or its own age again."""
        return number - 1 + min(self._gap, number)

    @cython.ccall
    def count_candidates(self, n_seen: cython.longlong) -> cython.bint:
        """Count the present candidates, and note when the next row becomes due."""
        number: cython.longlong
        numbers: list[Any] = self.numbers
        self._due = _NEVER
        while self._n_candidates < len(numbers):
            number = numbers[self._n_candidates]
            self._due = self._old_enough_at(number)
            if self._due > n_seen:
                break
            self._due = _NEVER
            self._n_candidates += 1
        return True

    def leave(self, place: int) -> tuple[Any, int]:
        """Forget the row at a place; return its note and number."""
        self.rows.drop(place)
        return self.notes.pop(place), self.numbers.pop(place)

    def restore(self, rows: Rows, notes: list[Any], numbers: list[int], n_seen: int) -> None:
        """Take observations that wait."""
        self.rows, self.notes, self.numbers, self._n_candidates = rows, notes, numbers, 0
        self.count_candidates(n_seen)

    def __reduce__(self) -> Any:
        return _copied, (self.size, self._gap, self.reach, self.rows, self.notes, self.numbers, self._n_candidates)


def _copied(*parts: Any) -> WaitingRoom:
    size, gap, reach, rows, notes, numbers, n_candidates = parts
    room = WaitingRoom(size, gap, reach)
    room.rows, room.notes, room.numbers, room._n_candidates = rows, notes, numbers, n_candidates
    # Until the next observation, with which all are counted.
    room._due = 0
    return room


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


@cython.cclass
class ReplacedRows:
    """Copies of the observation, each with a feature from a stored row.

    Parameters
    ----------
    columns
        Shape (players,): the column of each player's feature.
    n
        Draws of each player.
    matrix
        Shape (slots, features): the stored rows.
    order
        Shape (features, slots): by feature the slots, the least value first.
    """

    slots = cython.declare(object, visibility="readonly")
    """Shape (players, draws): the slots drawn."""
    _slots: cython.Py_ssize_t[:, ::1]
    _columns: cython.Py_ssize_t[::1]
    _matrix: cython.double[:, ::1]
    _order: cython.int[:, ::1]

    def __init__(self, columns: Any, n: int, matrix: Any, order: Any) -> None:
        self.slots = np.zeros((len(columns), n), dtype=np.intp)
        self._slots = self.slots
        self._columns, self._matrix, self._order = columns, matrix, order

    # hot
    def draw(self, uniforms: Uniforms, n_stored: cython.Py_ssize_t) -> None:
        """Draw slots for each player, a slot from each equal part of its order."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        place: cython.Py_ssize_t
        n: cython.Py_ssize_t = self._slots.shape[1]
        part: cython.double = n_stored
        part /= n
        for i in range(self._slots.shape[0]):
            for j in range(n):
                place = int((j + uniforms.next()) * part)
                self._slots[i, j] = self._order[self._columns[i], min(place, n_stored - 1)]

    # hot
    def fill(
        self,
        X: cython.double[:, ::1],
        start: cython.Py_ssize_t,
        first: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
    ) -> None:
        """Write copies of row 0, each with a player's drawn feature.

        It is what `removal.imputer.replace` does with dicts, player by player.

        Parameters
        ----------
        X
            Shape (rows, features): row 0 is the observation.
        start
            Where the rows begin.
        first, stop
            The players from the first one up to the last, which is left out.
        """
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        f: cython.Py_ssize_t
        r: cython.Py_ssize_t = start
        column: cython.Py_ssize_t
        for i in range(first, stop):
            column = self._columns[i]
            for j in range(self._slots.shape[1]):
                for f in range(X.shape[1]):
                    X[r, f] = X[0, f]
                X[r, column] = self._matrix[self._slots[i, j], column]
                r += 1


@cython.cclass
class CoalitionRows:
    """Rows of SAGE coalitions: stored rows with features of the observation.

    Each coalition has a feature more than the coalition before it, in the order of a permutation.

    Parameters
    ----------
    columns
        Shape (players,): the column of each player's feature.
    orders
        Shape (orders, players): the players by number; the last of an order joins no coalition.
    slots
        Shape (draws,): the slots drawn.
    matrix
        Shape (slots, features): the stored rows.
    """

    _columns: cython.Py_ssize_t[::1]
    _orders: cython.Py_ssize_t[:, ::1]
    _slots: cython.Py_ssize_t[::1]
    _matrix: cython.double[:, ::1]

    def __init__(self, columns: Any, orders: Any, slots: Any, matrix: Any) -> None:
        self._columns, self._orders, self._slots, self._matrix = columns, orders, slots, matrix

    # hot
    def fill(
        self,
        X: cython.double[:, ::1],
        start: cython.Py_ssize_t,
        first: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
    ) -> None:
        """Write stored rows with the features of each coalition from row 0.

        It is what `removal.imputer.keep` does with dicts, coalition by coalition.

        Parameters
        ----------
        X
            Shape (rows, features): row 0 is the observation.
        start
            Where the rows begin.
        first, stop
            The coalitions from the first one up to the last, which is left out: those of all orders by number.
        """
        c: cython.Py_ssize_t
        o: cython.Py_ssize_t
        n_before: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        f: cython.Py_ssize_t
        column: cython.Py_ssize_t
        n: cython.Py_ssize_t = self._slots.shape[0]
        steps: cython.Py_ssize_t = self._orders.shape[1] - 1
        r: cython.Py_ssize_t = start
        for c in range(first, stop):
            o = c // steps
            n_before = c % steps  # players of the coalition before this step's player joins
            for j in range(n):
                if n_before == 0 or c == first:
                    for f in range(X.shape[1]):
                        X[r, f] = self._matrix[self._slots[j], f]
                    for i in range(n_before):
                        column = self._columns[self._orders[o, i]]
                        X[r, column] = X[0, column]
                else:  # the row of the same draw, one coalition before
                    for f in range(X.shape[1]):
                        X[r, f] = X[r - n, f]
                column = self._columns[self._orders[o, n_before]]
                X[r, column] = X[0, column]
                r += 1
