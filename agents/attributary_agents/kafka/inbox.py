"""Fetched records as single Faust messages, and their inboxes.

All records that a poll has brought of a partition go to Faust as one message, and are kept until their turn. What Faust
does for a message (tasks, locks, flow control, queues) then costs once per poll. The records wait in an inbox of their
partition, so that those of one partition do not wait behind another's. A partition whose inbox is full is not polled:
its records stay with the client, which fetches no further ones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from faust.types import TP, ConsumerMessage

FULL = 1000
"""Records of a partition that wait, from which on it is not polled: as many as a poll brings at most."""

FULL_BYTES = 16 * 2**20
"""The same of the bytes of their keys and values; a poll brings as many of a partition (`POLL_BYTES`)."""

ALL_FULL_BYTES = 64 * 2**20
"""Bytes that wait of all partitions, from which on only those are polled of which nothing waits; twice as many: none.

A poll may bring more than there is room for: what waits exceeds each bound by one poll at most.
"""

ALL_FULL = 10_000
"""The same of records."""

_OVERHEAD = 600  # bytes of a record of the client, without its key and value


class Fetch:
    """Records of a partition in offset order: a Faust message's value."""

    __slots__ = ("records",)

    def __init__(self, records: Sequence[Any]) -> None:
        self.records = records


def message_of(tp: TP, fetch: Fetch, generation: int) -> ConsumerMessage:
    """Return the message that stands for all records of a fetch.

    `generation` is that of the consumer group.

    Its offset is the last one. Faust drops a message whose offset it has read: by its first one, a fetch that begins
    before that and ends behind it would be dropped whole. What comes twice is skipped by who handles it.
    """
    last = fetch.records[-1]
    return ConsumerMessage(
        tp.topic,
        tp.partition,
        last.offset,
        last.timestamp / 1000.0 if last.timestamp else None,
        last.timestamp_type,
        (),
        None,
        fetch,
        None,
        0,
        0,
        tp,
        generation_id=generation,
    )


class Inbox:
    """Records of a partition that wait to be handled, in their order."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._records: deque[Any] = deque()
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._records)

    @property
    def first(self) -> Any:
        """The record whose turn it is."""
        return self._records[0]

    def upcoming(self, n: int) -> Iterator[Any]:
        """Return the first n records that wait, in their order; they stay."""
        return islice(self._records, n)

    def put(self, records: Iterable[Any]) -> None:
        """Add records behind the records that wait."""
        for record in records:
            self._records.append(record)
            self.n_bytes += _size_of(record)

    def pop(self) -> Any:
        """Take the first record out, and return it."""
        record = self._records.popleft()
        self.n_bytes -= _size_of(record)
        return record

    def clear(self) -> None:
        """Forget all records: they are another owner's."""
        self._records.clear()
        self.n_bytes = 0

    def note_room(self) -> None:
        """Note that records have been taken out: it may be polled again."""
        self._intake.has_changed.set()


class Intake:
    """Inboxes of the partitions of a topic that this process reads.

    They tell which partitions have room.

    Attributes
    ----------
    topic
        The topic whose fetches are messages; of all other topics each record is one.
    has_changed
        Is set when records have been taken out of an inbox.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.has_changed = asyncio.Event()
        self._inboxes: dict[TP, Inbox] = {}

    def open(self, tp: TP) -> Inbox:
        """Return a new, empty inbox of a partition, replacing the earlier inbox."""
        inbox = self._inboxes[tp] = Inbox(self)
        return inbox

    def fold(self, fetched: dict[TP, Sequence[Any]]) -> dict[TP, Sequence[Any]]:
        """Put the polled records of each partition of the topic into a `Fetch`."""
        topic = self.topic
        return {tp: [Fetch(records)] if tp.topic == topic and records else records for tp, records in fetched.items()}

    def with_room(self, partitions: Iterable[TP]) -> frozenset[TP]:
        """Return the partitions of which further records may be fetched."""
        inboxes = self._inboxes
        waiting = [inbox for inbox in inboxes.values() if inbox]
        if not waiting:
            return frozenset(partitions)
        share = max(sum(map(len, waiting)) / ALL_FULL, sum(one.n_bytes for one in waiting) / ALL_FULL_BYTES)
        if share >= 2:
            return frozenset()
        is_full = share >= 1
        full = {tp for tp, inbox in inboxes.items() if inbox and (is_full or _is_full(inbox))}
        return frozenset(tp for tp in partitions if tp not in full)

    async def wait_for_room(self, timeout_s: float) -> None:
        """Wait until records have been taken out of an inbox, at most for so long."""
        self.has_changed.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self.has_changed.wait()
        except TimeoutError:
            pass


def _is_full(inbox: Inbox) -> bool:
    return len(inbox) >= FULL or inbox.n_bytes >= FULL_BYTES


def _size_of(record: Any) -> int:
    return len(record.value or b"") + len(record.key or b"") + _OVERHEAD
