"""Reservoirs: bounded stores of past observations (iPFI section 3.1)."""

from __future__ import annotations

import abc
import math
from array import array
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core.reservoir import Uniforms, WaitingRoom, uniforms_of
from ..core.rows import Rows
from ..errors import InvalidParameterError, SnapshotError
from ..notebook.cards import figure
from ..notebook.described import Described, suggesting
from ..snapshots import unpack_numbers
from ..typing import Features, Snapshot
from ..validation import check_choice, check_integer
from ..values import pack_values, unpack_values
from .strata import SlotOrder

REACH_IN_WINDOWS = 3.0
"""The reach of `LaggedReservoir` where none is given, times alpha."""
_FEWEST, _MOST = 100, 500


class Reservoir(Described, abc.ABC):
    """Stores at most `size` past observations, all equally likely to be drawn.

    `update` is called once per observation, after the explainer has drawn: a draw never sees the observation
    that is being explained. Rows are copied in, so that the caller's dicts are neither kept nor changed.
    A draw gives the stored row itself: callers only read it.

    Parameters
    ----------
    size
        Valid range >= 1; number of rows (L in the papers). Larger lowers the variance of importance and
        costs memory; for the geometric reservoir it also lengthens the memory, whose mean age is `size`.
    """

    name: ClassVar[str]
    gap: int = 0
    """After how many observations one may be drawn at the earliest; 0 and 1: it may be drawn by the next one."""

    def __init__(self, size: int = 100) -> None:
        self.size = check_integer("size", size, minimum=1)
        self.rows: Any = Rows()  # a sequence of dicts
        self.notes: list[Any] = []
        """By slot what was noted beside the row, or None."""
        self.numbers = array("q")
        """By slot which observation of the stream the row was, from 1 on."""
        self._by_age: SlotOrder | None = None
        self.n_seen = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def by_age(self) -> SlotOrder:
        """The slots from the oldest row to the newest; kept once asked for."""
        if self._by_age is None:
            self._by_age = SlotOrder.of(dict(enumerate(self.numbers)))
        return self._by_age

    @abc.abstractmethod
    def update(self, x: Features, rng: np.random.Generator, note: Any = None) -> int | None:
        """Take in an observation; return the slot it changed, or None.

        Parameters
        ----------
        x
            The features of one observation; copied.
        rng
            The explainer's generator.
        note
            Plain data to keep beside the row, or a function that returns it, called only where the row is kept.
        """

    def _mark(self, slot: int, note: Any, number: int) -> None:
        """Store the note and number of the row put into a slot."""
        if slot == len(self.numbers):
            self.notes.append(note)
            self.numbers.append(number)
        else:
            self.notes[slot], self.numbers[slot] = note, number
        if self._by_age is not None:
            self._by_age.put(slot, number)

    def settle(self, alpha: float) -> None:
        """Set open parameters from the explainer's smoothing factor."""

    def _facts(self) -> list[tuple[str, str]]:
        return [*super()._facts(), ("rows", f"{figure(len(self))} of {figure(self.size)}")]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of `make_reservoir` that it was made with, as plain data."""
        return {"reservoir": self.name, "reservoir_size": self.size}

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "name": self.name,
            "size": self.size,
            "n_seen": self.n_seen,
            "rows": self.rows.snapshot(),
            "notes": _packed(self.notes),
            "numbers": self.numbers.tobytes(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Take the state of a reservoir of this class and size.

        Raises
        ------
        SnapshotError
            The state is of another class.
        """
        if snapshot["name"] != self.name:
            raise SnapshotError(
                f"expected the reservoir {self.name!r}, got {snapshot['name']!r}: update attributary, or reset the "
                "explainer"
            )
        self.n_seen = snapshot["n_seen"]
        self.rows = Rows.from_snapshot(snapshot["rows"])
        self.notes = _unpacked(snapshot["notes"], len(self.rows))
        self.numbers = unpack_numbers("q", snapshot["numbers"])
        self._by_age = None


class _AtOnce(Reservoir):
    """Stores observations when they come: the reservoirs of the papers."""

    def update(self, x: Features, rng: np.random.Generator, note: Any = None) -> int | None:
        """Take in an observation; return its slot, or None if it is not stored."""
        self.n_seen += 1
        slot = len(self.rows) if len(self.rows) < self.size else self._slot(rng)
        if slot is not None:
            self._mark(slot, note() if callable(note) else note, self.n_seen)
            self.rows.put(slot, x)
        return slot

    @abc.abstractmethod
    def _slot(self, rng: np.random.Generator) -> int | None:
        """Return the newest observation's slot, or None to leave all as it is."""


class UniformReservoir(_AtOnce):
    """Stores past observations with equal probability (iPFI section 3.1.1).

    It remembers for ever, and suits streams without drift. Source: J. S. Vitter, Random Sampling with a
    Reservoir, 1985, Algorithm R.

    Examples
    --------
    >>> import numpy as np
    >>> reservoir, rng = UniformReservoir(2), np.random.default_rng(1)
    >>> for i in range(100):
    ...     slot = reservoir.update({"i": i}, rng)
    >>> len(reservoir), reservoir.n_seen
    (2, 100)
    """

    name = "uniform"

    def _slot(self, rng: np.random.Generator) -> int | None:
        slot = int(rng.integers(self.n_seen))
        return slot if slot < self.size else None


class GeometricReservoir(_AtOnce):
    """Stores each observation in a uniformly drawn slot.

    Source: iPFI section 3.1.2, iSAGE Algorithm 2.

    Once full, the probability of drawing the observation of time r at time s is p (1 - p)^(s - r - 1) with
    p = 1 / size: recent observations are likelier, their mean age is about `size`. The first `size` rows fill
    it (the paper's line 4 must read |R| < L).

    Examples
    --------
    >>> import numpy as np
    >>> reservoir, rng = GeometricReservoir(3), np.random.default_rng(1)
    >>> for i in range(100):
    ...     slot = reservoir.update({"i": i}, rng)
    >>> 99 in [row["i"] for row in reservoir.rows]
    True
    """

    name = "geometric"

    def _slot(self, rng: np.random.Generator) -> int | None:
        return int(rng.integers(self.size))


class SlidingWindowReservoir(_AtOnce):
    """Stores exactly the last `size` observations, and nothing older.

    It suits features that drift, and draws whose age must be known. The geometric reservoir, which keeps some older
    rows, needs the same memory.

    Examples
    --------
    >>> import numpy as np
    >>> reservoir, rng = SlidingWindowReservoir(3), np.random.default_rng(1)
    >>> for i in range(100):
    ...     slot = reservoir.update({"i": i}, rng)
    >>> sorted(row["i"] for row in reservoir.rows)
    [97, 98, 99]
    """

    name = "sliding_window"

    def _slot(self, rng: np.random.Generator) -> int | None:
        return (self.n_seen - 1) % self.size


class LaggedReservoir(Reservoir):
    """Stores observations old enough to differ from the present: the default.

    A row drawn for an observation should be unrelated to it. Consecutive observations are alike on most streams, so
    that a reservoir of the newest ones replaces a value by nearly the same value, and every importance is too small:
    by 49 % with alpha .001 for values whose correlation from one observation to the next is .99. And a value that
    swings must meet neither itself nor its opposite among the draws. So

    - an observation is chosen when it comes, with the probability size / (2/3 reach), or, among the first 2/3 reach
      observations, size / their number so far: all are copied until there are `size`, and few later;
    - it waits until `gap` others have come (half of those seen, at the beginning of a stream);
    - then it goes into a waiting room of size / 2, and one that is drawn uniformly leaves it: so it waits for a third
      of the reach more, on average. The room opens as the stream grows, and is complete after a reach;
    - it replaces a uniformly drawn stored row, which has been there for two thirds of the reach by then, on average.

    Ages beyond the gap are the sum of two nearly exponential times, with means of 1/3 and 2/3 of the reach. With w the
    angular frequency of a season, stored rows follow it by 1 / ((1 + iw reach / 3) (1 + 2iw reach / 3)): a season
    of half the reach by .025 of its size. Times of one exponential with the mean of the reach would follow by .08.

    Parameters
    ----------
    size
        Valid range >= 1; rows that are stored. Half as many wait, besides those that were chosen within the gap.
        None: two thirds of the reach, from 100 to 500.
    gap
        Valid range >= 1; observations.
    reach
        Valid range >= 1; observations, the mean age of a stored row beyond the gap, 3/2 of the size at least. Larger is
        right on streams that change for longer (regimes, seasons), and follows a change of the inputs later. None:
        three times 1 / alpha of the explainer.

    Examples
    --------
    >>> import numpy as np
    >>> reservoir, rng = LaggedReservoir(size=5, gap=10, reach=20), np.random.default_rng(1)
    >>> for i in range(100):
    ...     slot = reservoir.update({"i": i}, rng)
    >>> max(row["i"] for row in reservoir.rows) <= 100 - 10
    True
    """

    name = "lagged"

    def __init__(self, size: int | None = None, gap: int = 200, reach: int | None = None) -> None:
        super().__init__(_MOST if size is None else size)
        self._is_open = size is None
        self.gap = check_integer("gap", gap, minimum=1)
        self.reach = None if reach is None else check_integer("reach", reach, minimum=1)
        self._within = self.size if self.reach is None else self.reach
        self._waiting = WaitingRoom(self.size, self.gap, self._within)
        self._uniforms: Uniforms | None = None

    def settle(self, alpha: float) -> None:
        """Set an open reach to three times 1 / alpha, and an open size to fit it."""
        if self.reach is None:
            self._within = math.ceil(REACH_IN_WINDOWS / alpha)
        if self._is_open and not self.n_seen:
            self.size, self._is_open = min(max(2 * self._within // 3, _FEWEST), _MOST), False
        self._waiting.size, self._waiting.reach = self.size, self._within

    def update(self, x: Features, rng: np.random.Generator, note: Any = None) -> int | None:
        """Take in an observation; return the slot filled by a waiting row.

        None where no row left the waiting room.
        """
        self._uniforms = draw = uniforms_of(rng, self._uniforms)
        self.n_seen += 1
        waiting = self._waiting
        leaving = waiting.take(draw, x, note, self.n_seen)
        if leaving < 0:
            return None
        n_stored = len(self.numbers)
        slot = n_stored if n_stored < self.size else int(draw.next() * self.size)
        self.rows.put_from(slot, waiting.rows, leaving)
        self._mark(slot, *waiting.leave(leaving))
        return slot

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the reservoir was made with, as plain data."""
        return {**super().parameters, "gap": self.gap, "reach": self.reach}

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        waiting = {
            "numbers": array("q", self._waiting.numbers).tobytes(),
            "rows": self._waiting.rows.snapshot(),
            "notes": _packed(self._waiting.notes),
        }
        return {**super().snapshot(), "waiting": waiting}

    def restore(self, snapshot: Snapshot) -> None:
        """Take the state of a reservoir of this class and size."""
        super().restore(snapshot)
        waiting = snapshot["waiting"]
        rows = Rows.from_snapshot(waiting["rows"])
        numbers = unpack_numbers("q", waiting["numbers"]).tolist()
        self._waiting.restore(rows, _unpacked(waiting["notes"], len(rows)), numbers, self.n_seen)


def _packed(notes: Sequence[Any]) -> Snapshot | list[Any] | None:
    if all(note is None for note in notes):
        return None
    if set(map(type, notes)) == {tuple} and len(set(map(len, notes))) == 1:
        return {"columns": [pack_values(column) for column in zip(*notes, strict=True)]}
    return [list(note) if isinstance(note, tuple) else note for note in notes]


def _unpacked(notes: Snapshot | Sequence[Any] | None, n: int) -> list[Any]:
    if isinstance(notes, dict):
        return list(zip(*map(unpack_values, notes["columns"]), strict=True)) or [()] * n
    return [tuple(note) if isinstance(note, list) else note for note in notes or [None] * n]


_RESERVOIRS: dict[str, type[Reservoir]] = {
    c.name: c for c in (LaggedReservoir, UniformReservoir, GeometricReservoir, SlidingWindowReservoir)
}

RESERVOIR_NAMES = tuple(_RESERVOIRS)
"""Names that `make_reservoir` knows."""


@suggesting
def make_reservoir(
    name: str = "lagged", size: int | None = None, gap: int | None = None, reach: int | None = None
) -> Reservoir:
    """Return a new reservoir by name.

    Parameters
    ----------
    name
        `lagged`, `uniform`, `geometric` or `sliding_window`.
    size, gap, reach
        As for the class; None is its default. Only `lagged` has a gap and a reach.
    """
    kind = _RESERVOIRS[check_choice("reservoir", name, RESERVOIR_NAMES)]
    given = {key: value for key, value in (("size", size), ("gap", gap), ("reach", reach)) if value is not None}
    if kind is not LaggedReservoir and (foreign := given.keys() - {"size"}):
        raise InvalidParameterError(min(foreign), "left out: only the reservoir lagged has it", given[min(foreign)])
    return kind(**given)
