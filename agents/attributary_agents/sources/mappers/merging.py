"""Order of several partitions' records by time, by their first records.

Partitions have an order, their topics have none. What is taken next is the record of the smallest time among the heads.
A partition that has brought nothing, though it has more, may have an older one: it is waited for, for a while. One that
is at its end is not, so that live records are not delayed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from typing import Generic, TypeVar

_NO_TIME = -(2**63)

P = TypeVar("P", bound=Hashable)
R = TypeVar("R")


class Merge(Generic[P, R]):
    """Merge of several places' records by time, with a queue for each place.

    Parameters
    ----------
    wait_s
        How long a place that has brought nothing and is not at its end is waited for.
    most_records, most_bytes
        What is kept of a place before no more is read of it.
    """

    def __init__(self, wait_s: float, most_records: int = 2000, most_bytes: int = 2**20) -> None:
        self._wait_s = wait_s
        self._most_records, self._most_bytes = most_records, most_bytes
        self._queues: dict[P, deque[tuple[R, int]]] = {}
        self._bytes: dict[P, int] = {}
        self._read: dict[P, int] = {}
        self._ends: dict[P, int] = {}
        self._order: dict[P, int] = {}
        self._heap: list[tuple[int, int, P]] = []
        self._untimed: dict[P, None] = {}
        self._waited: dict[P, float] = {}
        """Places that have brought nothing and are not at their ends, and since when that holds up the others."""

    def add(self, place: P, position: int, end: int) -> None:
        """Add a place, which is read from `position` on."""
        self._queues[place], self._bytes[place], self._order[place] = deque(), 0, len(self._order)
        self._ends[place] = -1
        self.note(place, position, end)

    def extend(self, place: P, records: Iterable[tuple[R, int]]) -> None:
        """Add records that were read of a place, each with its size in bytes."""
        queue = self._queues[place]
        was_empty = not queue
        for record, size in records:
            queue.append((record, size))
            self._bytes[place] += size
        if was_empty and queue:
            self._waited.pop(place, None)
            self._untimed[place] = None

    def note(self, place: P, position: int, end: int) -> None:
        """Note up to where a place has been read, and where it ends."""
        self._read[place], self._ends[place] = position, max(end, self._ends[place])
        if position >= self._ends[place]:
            self._waited.pop(place, None)
        elif not self._queues[place]:
            self._waited.setdefault(place, -math.inf)

    def is_full(self, place: P) -> bool:
        """Return whether no more is to be read of a place for now."""
        return len(self._queues[place]) >= self._most_records or self._bytes[place] >= self._most_bytes

    @property
    def untimed(self) -> list[P]:
        """Places whose first record has no time yet: `set_time` gives it."""
        return list(self._untimed)

    def head(self, place: P) -> R:
        """Return the first record of a place."""
        return self._queues[place][0][0]

    def set_time(self, place: P, time_ms: int | None) -> None:
        """Set the time of a place's first record; None puts it before all others.

        None says that it has no time.
        """
        # By another clock, such as Kafka's of a tombstone, it would hold up what is behind it.
        del self._untimed[place]
        heappush(self._heap, (_NO_TIME if time_ms is None else time_ms, self._order[place], place))

    def waits_s(self, now: float) -> float | None:
        """Return the seconds to wait for an older record that may come.

        None: there is nothing to take, however long one waits.
        """
        if not self._heap:
            return None
        longest = 0.0
        for place, since in self._waited.items():
            if since == -math.inf:
                self._waited[place] = since = now
            longest = max(longest, since + self._wait_s - now)
        return longest

    def pop(self) -> tuple[P, R]:
        """Take the record of the smallest time; the earliest place breaks ties."""
        _, _, place = heappop(self._heap)
        queue = self._queues[place]
        record, size = queue.popleft()
        self._bytes[place] -= size
        if queue:
            self._untimed[place] = None
        elif self._read[place] < self._ends[place]:
            self._waited[place] = -math.inf
        return place, record

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept of any place."""
        return not self._heap and not self._untimed

    def is_read_to(self, ends: dict[P, int]) -> bool:
        """Return whether all places have been read, and taken, up to these ends."""
        return self.is_empty and all(self._read[place] >= end for place, end in ends.items())

    def lag(self, place: P) -> int:
        """Return how many offsets a place has that have not been taken."""
        return len(self._queues[place]) + max(self._ends[place] - self._read[place], 0)
