"""The waiting room of `LaggedReservoir`: what enters, waits and leaves."""

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
    """Observations chosen to be stored, in stream order, until they leave.

    Parameters
    ----------
    size
        Rows that are stored; half as many are old enough to leave.
    gap, within
        Observations: the least age of one that leaves, and the reach.
    """

    rows = cython.declare(object, visibility="readonly")
    notes = cython.declare(list, visibility="readonly")
    numbers = cython.declare(list, visibility="readonly")
    """Which observation of the stream each one was."""
    size = cython.declare(cython.longlong, visibility="public")
    within = cython.declare(cython.longlong, visibility="public")
    _gap: cython.longlong
    _n_behind: cython.longlong
    """How many of these, the first ones, are old enough."""
    _due: cython.longlong
    """The number of the observation with which the next one is."""

    def __init__(self, size: int, gap: int, within: int) -> None:
        self.size, self._gap, self.within = size, gap, within
        self.rows, self.notes, self.numbers = Rows(), [], []
        self._n_behind, self._due = 0, _NEVER

    # hot
    def take(self, draw: Uniforms, x: Any, note: Any, n_seen: cython.longlong) -> cython.Py_ssize_t:
        """Choose an observation or not; return the place that leaves, or -1.

        Parameters
        ----------
        draw
            One number for each observation, and one for each that leaves.
        x, note
            The observation, which is copied where it is chosen, and plain data beside it or what returns it.
        n_seen
            The number of the observation, from 1 on.
        """
        of_size: cython.longlong = 3 * self.size
        chosen_of: cython.longlong = max(min(2 * self.within, 3 * n_seen), of_size)
        leaving: cython.Py_ssize_t
        if draw.next() * chosen_of < of_size:
            self._choose(x, note, n_seen)
        if n_seen < self._due:
            return -1
        self.count(n_seen)
        if self._n_behind <= self.size * min(n_seen, self._longest()) // (2 * self._longest()):
            return -1
        leaving = int(draw.next() * self._n_behind)
        self._n_behind -= 1
        return leaving

    @cython.cfunc
    def _longest(self) -> cython.longlong:
        return max(self.within, self.size)

    @cython.cfunc
    def _choose(self, x: Any, note: Any, n_seen: cython.longlong) -> cython.bint:
        self.rows.append(x)
        self.numbers.append(n_seen)
        self.notes.append(note() if callable(note) else note)
        if len(self.numbers) == self._n_behind + 1:
            self._due = self._when_behind(n_seen)
        return True

    @cython.cfunc
    def _when_behind(self, number: cython.longlong) -> cython.longlong:
        """Return at which observation one is `gap` old, or half of those seen."""
        return number - 1 + min(self._gap, number)

    @cython.ccall
    def count(self, n_seen: cython.longlong) -> cython.bint:
        """Count those that are old enough by now, and note when the next one is."""
        number: cython.longlong
        numbers: list[Any] = self.numbers
        self._due = _NEVER
        while self._n_behind < len(numbers):
            number = numbers[self._n_behind]
            self._due = self._when_behind(number)
            if self._due > n_seen:
                break
            self._due = _NEVER
            self._n_behind += 1
        return True

    def leave(self, place: int) -> tuple[Any, int]:
        """Forget the one at a place; return its note and number."""
        self.rows.drop(place)
        return self.notes.pop(place), self.numbers.pop(place)

    def restore(self, rows: Rows, notes: list[Any], numbers: list[int], n_seen: int) -> None:
        """Take observations that wait."""
        self.rows, self.notes, self.numbers, self._n_behind = rows, notes, numbers, 0
        self.count(n_seen)

    def __reduce__(self) -> Any:
        return _copied, (self.size, self._gap, self.within, self.rows, self.notes, self.numbers, self._n_behind)


def _copied(*parts: Any) -> WaitingRoom:
    size, gap, within, rows, notes, numbers, n_behind = parts
    room = WaitingRoom(size, gap, within)
    room.rows, room.notes, room.numbers, room._n_behind = rows, notes, numbers, n_behind
    # Until the next observation, with which all are counted.
    room._due = 0
    return room
