"""Reader of a section's topics, and the merge of their partitions by time."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Hashable, Iterable
from contextlib import suppress
from heapq import heappop, heappush
from typing import Generic, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError

from ...config.settings import Config
from ...config.sources import Attached
from ...kafka.clients import STARTED_WITHIN_S, STOPPED_WITHIN_S, client_options
from ...kafka.topics.origins import OriginTopic, ask_with_ids, no_such_topic
from ...kafka.upstream.aiokafka_consumer import client_of
from .positions import OriginFaultError, Position, find_starts
from .units import positions_group

FETCH_BYTES = 262_144
"""What is fetched of a partition at a time, and held beside what is merged."""

_IDLE_MS, _BUSY_MS = 500, 20
_AT_ONCE = 1000


class OriginsChangedError(Exception):
    """A topic has got partitions, or was replaced, so a new run begins."""


class Reader:
    """Reader of the topics of a single section.

    Parameters
    ----------
    at
        The section's key, such as `sources.rentals`.
    """

    def __init__(self, config: Config, at: str, section: Attached, topics: list[str]) -> None:
        self.at, self.names = at, topics
        self._config, self._section = config, section
        self._client = AIOKafkaConsumer(
            **client_options(config.kafka),
            group_id=positions_group(config.kafka.group, at.partition(".")[2]),
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            max_partition_fetch_bytes=FETCH_BYTES,
        )
        self._topics: dict[str, OriginTopic] = {}
        self.starts: dict[TopicPartition, Position] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.said: list[str] = []

    async def start(self) -> None:
        """Connect, and find where to begin.

        Raises
        ------
        OriginFaultError
            A topic is not there, or is not what it was.
        KafkaError
            Brokers are away or refuse.
        """
        async with asyncio.timeout(STARTED_WITHIN_S):
            await self._client.start()
        self._topics = await self._ask()
        places = [TopicPartition(topic.name, number) for topic in self._topics.values() for number in topic.partitions]
        self._client.assign(places)
        async with asyncio.timeout(STARTED_WITHIN_S):
            self.starts, bounds, self.said = await find_starts(self._client, self.at, self._section.start, self._topics)
        for place, at in self.starts.items():
            self._client.seek(place, at.offset)
        self.ends = {place: bound.end for place, bound in bounds.items()}
        await self.commit(self.starts)  # `start` counts once

    async def _ask(self, node: int | None = None) -> dict[str, OriginTopic]:
        found = await ask_with_ids(client_of(self._client), self.names, node)
        for name in self.names:
            if name not in found:
                known = await self._client.topics()
                raise OriginFaultError(no_such_topic(self._config.kafka, f"{self.at}.topic", name, known))
        return found

    async def check_unchanged(self) -> None:
        """Raise OriginsChangedError if a topic or its partitions have changed."""
        if await self._ask() != self._topics:
            raise OriginsChangedError

    async def _check_read(self, places: Iterable[TopicPartition]) -> None:
        """Raise OriginsChangedError if the topic read from was replaced.

        An offset that the former topic had not reached yet exists in the new one: the fetch itself shows nothing. The
        brokers that were read from are asked, since another one may not know of the new topic yet.
        """
        for node in {client_of(self._client).cluster.leader_for_partition(place) for place in places}:
            if await self._ask(node) != self._topics:
                raise OriginsChangedError

    async def pump(self, merge: Merge[TopicPartition, ConsumerRecord], news: asyncio.Event) -> None:
        """Read for ever, except from full partitions; set `news` on each read.

        Ends of partitions are noted as well.
        """
        places = list(self.starts)
        while True:
            wanted = [place for place in places if not merge.is_full(place)]
            if not wanted:
                await asyncio.sleep(_BUSY_MS / 1000)
                continue
            timeout_ms = _IDLE_MS if len(wanted) == len(places) else _BUSY_MS
            try:
                got = await self._client.getmany(*wanted, timeout_ms=timeout_ms, max_records=_AT_ONCE)
            except (OffsetOutOfRangeError, NoOffsetForPartitionError):  # deleted meanwhile: the next run says what
                raise OriginsChangedError from None
            await self._check_read(got)
            for place, records in got.items():
                merge.extend(place, ((record, _size(record)) for record in records))
            await self._note(places, merge)
            news.set()
            if got:
                await asyncio.sleep(0)

    async def _note(self, places: Iterable[TopicPartition], merge: Merge[TopicPartition, ConsumerRecord]) -> None:
        for place in places:
            end = self._client.last_stable_offset(place)
            if end is None or end < 0:
                end = self._client.highwater(place)
            merge.note(place, await self._client.position(place), -1 if end is None else end)

    async def commit(self, positions: dict[TopicPartition, Position]) -> None:
        """Commit positions of these partitions, with the ids of their topics."""
        if positions:
            await self._client.commit({place: (at.offset, at.text) for place, at in positions.items()})

    async def stop(self) -> None:
        """Disconnect."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STOPPED_WITHIN_S):
                await self._client.stop()


def _size(record: ConsumerRecord) -> int:
    return 200 + len(record.key or b"") + len(record.value or b"")


_NO_TIME = -(2**63)

P = TypeVar("P", bound=Hashable)
R = TypeVar("R")


class Merge(Generic[P, R]):
    """Merge of several places' records by time, with a queue for each place.

    Places have an order, their topics have none. What is taken next is the record of the smallest time among the heads.
    A place that has brought nothing, though it has more, may have an older one: it is waited for, for a while. One that
    is at its end is not, so that live records are not delayed.

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
