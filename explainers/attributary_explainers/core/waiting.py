"""The waiting room of `LaggedReservoir`."""

from __future__ import annotations

from typing import Any

from .rows import Rows

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.attributary_explainers.core.uniforms import Uniforms
else:
    from .uniforms import Uniforms

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
