"""Batches that consumers of this process could not read or passed over."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import takewhile
from typing import Any

from aiokafka import TopicPartition

from attributary_topics import InvalidRecordError

logger = logging.getLogger(__name__)

MARK = "attributary-unread-batch"
"""Name of the only header of a record that stands for the unread part of a batch."""


class UnreadBatch(bytes):
    """Mark of the record that stands for the unread part of a batch.

    It is the value of that record's only header. A producer cannot forge it: what comes from the broker is plain bytes.
    """

    reason: str
    wanted: str
    found: str

    @classmethod
    def of(cls, reason: str, wanted: str, found: str) -> UnreadBatch:
        """Return a mark with the reason, the expectation and the batch in words."""
        mark = cls()
        mark.reason, mark.wanted, mark.found = reason, wanted, found
        return mark

    def __repr__(self) -> str:
        return self.found

    def error(self) -> InvalidRecordError:
        """Return why the batch has not been read."""
        return InvalidRecordError(self.reason, "batch", self.wanted, _Words(self.found))


class _Words(str):
    """Is shown as it is in a message."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def unread_batch(headers: Iterable[tuple[str, Any]] | None) -> UnreadBatch | None:
    """Return the mark of an unread batch among a record's headers, or None."""
    for _, value in headers or ():
        if type(value) is UnreadBatch:
            return value
    return None


def readable(records: Iterable[Any]) -> list[Any]:
    """Return the records that have been read; log the unread batches."""
    kept = []
    for record in records:
        if (mark := unread_batch(record.headers)) is None:
            kept.append(record)
        else:
            logger.warning("%s[%d]: passed over: %s", record.topic, record.partition, mark.error())
    return kept


MAX_NOTES = 10_000
"""Stretches of offsets that are noted of a partition. About as many as there are records that wait; then the oldest
are forgotten."""


class PassedOver:
    """Offsets of transactions' markers and of aborted records.

    A reader of committed records passes them over, in the thread of the consumer; the worker asks here. A note holds as
    long as the topic does. A reader that goes back notes again, so notes from there on are forgotten: a topic that has
    been made again begins before all notes of the former one. So one consumer at a time may read a followed topic.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: frozenset[str] = frozenset()
        self._noted: dict[tuple[str, int], deque[list[int]]] = {}
        """Partition to stretches of offsets, in their order and apart: first offset, and that behind the last."""

    def follow(self, *topics: str) -> None:
        """Also note the offsets that are passed over in these topics."""
        self._topics |= set(topics)

    def begin(self, place: TopicPartition, offset: int) -> Callable[[int, int], None] | None:
        """Note that a partition is read from an offset on.

        The function that is returned notes a stretch that is passed over; None where the topic is not followed. A
        stretch is given by its first offset and the one behind its last.
        """
        if place.topic not in self._topics:
            return None
        with self._lock:
            noted = self._noted.setdefault((place.topic, place.partition), deque(maxlen=MAX_NOTES))
            while noted and noted[-1][1] > offset:
                if noted[-1][0] < offset:
                    noted[-1][1] = offset
                else:
                    noted.pop()
        return partial(self._note, noted)

    def _note(self, noted: deque[list[int]], first: int, following: int) -> None:
        with self._lock:
            if noted and first <= noted[-1][1]:
                noted[-1][1] = max(noted[-1][1], following)
            else:
                noted.append([first, following])

    def count(self, topic: str, partition: int, begin: int, end: int) -> int:
        """Count the offsets passed over in a range; forget notes before it."""
        with self._lock:
            noted = self._noted_from(topic, partition, begin)
            begun = takewhile(lambda stretch: stretch[0] < end, noted)
            return sum(min(following, end) - max(first, begin) for first, following in begun)

    def next_offset(self, topic: str, partition: int, offset: int) -> int:
        """Return the first offset not passed over; forget notes before `offset`."""
        with self._lock:
            noted = self._noted_from(topic, partition, offset)
            return noted[0][1] if noted and noted[0][0] <= offset else offset

    def _noted_from(self, topic: str, partition: int, offset: int) -> deque[list[int]]:
        noted = self._noted.get((topic, partition), deque())
        while noted and noted[0][1] <= offset:
            noted.popleft()
        return noted


PASSED_OVER = PassedOver()
"""What the consumers of this process have passed over."""
