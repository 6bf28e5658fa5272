"""Reader of fetched batches that bad records cannot end.

aiokafka unpacks a batch whatever it grows to, and raises in the middle of a fetch, before any code of ours, where it
cannot read one: after each restart a worker would end at the same place. Here the records that can be read are read,
and for what cannot there is one record, which is marked: `unread_batch` returns the mark. It stands at the last offset
of its batch, so that those who have read it have read the whole batch.

Which offsets hold no record for a reader, markers of transactions and what has been aborted, aiokafka knows and does
not tell. `PASSED_OVER` notes them of the topics that it follows.
"""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record import memory_records
from aiokafka.record.default_records import _DefaultRecordPy
from aiokafka.record.memory_records import _MemoryRecordsPy

from attributary_topics import InvalidRecordError

from .aiokafka_fixes import BoundedSet, LenientBatch
from .unpacking import CODECS, TooLargeError, UnreadableError, unpack

MAX_BYTES = 32 * 2**20
"""Bound on an unpacked batch, unless `bound_batches` has said another."""

POLL_BYTES = 16 * 2**20
"""Values of a partition after which a poll ends: a few MB that are fetched can unpack to a thousand times as much."""

_HEADER = 61  # bytes of a batch's header: its records follow
_ATTRIBUTES, _CODEC = 22, 0x07
_OLD_ATTRIBUTES = 17
_MARK = "attributary-unread-batch"
_UNREADABLE = (CorruptRecordException, ValueError, IndexError, OverflowError, AssertionError, SystemError, struct.error)


class UnreadBatch(bytes):
    """Mark of the record that stands for the unread part of a batch.

    It is the value of that record's only header. A producer cannot forge it: what comes from the broker is plain bytes.
    """

    reason: str
    wanted: str
    found: str

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
    """Return the mark among a record's headers, or None.

    Only a record that stands for the unread part of a batch has a mark.
    """
    for _, value in headers or ():
        if type(value) is UnreadBatch:
            return value
    return None


MAX_NOTES = 10_000
"""Stretches of offsets that are noted of a partition. About as many as there are records that wait; then the oldest
are forgotten."""


class PassedOver:
    """Notes of offsets that a reader of committed records passes over.

    They hold markers of transactions, and aborted records.

    Written in the thread of the consumer, read in that of the worker. What is noted of a partition holds as long as the
    topic does. A reader that goes back notes it again, so what was noted from there on is forgotten: a topic that has
    been made again begins before all that was noted of the former one. So one consumer at a time may read a followed
    topic; of a second one the first would lose notes.
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
        """Count the offsets passed over from `begin` to before `end`.

        Notes before `begin` are forgotten.
        """
        with self._lock:
            noted = self._noted.get((topic, partition), ())
            self._forget(noted, begin)
            n = 0
            for first, following in noted:
                if first >= end:
                    break
                n += min(following, end) - max(first, begin)
            return n

    def next_offset(self, topic: str, partition: int, offset: int) -> int:
        """Return the first offset from `offset` on that was not passed over.

        Notes before `offset` are forgotten.
        """
        with self._lock:
            noted = self._noted.get((topic, partition), ())
            self._forget(noted, offset)
            return noted[0][1] if noted and noted[0][0] <= offset else offset

    @staticmethod
    def _forget(noted: Any, before: int) -> None:
        while noted and noted[0][1] <= before:
            noted.popleft()


PASSED_OVER = PassedOver()
"""What the consumers of this process have passed over."""


class _Batch:
    """Batch that is unpacked within a bound and read as far as possible.

    Upstream's class reads it, or `LenientBatch` where that class cannot. A record with a mark stands for the part that
    neither can read.
    """

    is_read = False
    """Whether anybody has begun to read it: what the fetcher knows to be aborted it passes over."""

    def __init__(self, batch: Any, data: memoryview, max_bytes: int) -> None:
        self._batch = batch
        self._data = data
        self._max_bytes = max_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        self.is_read = True
        try:
            yield from self._records()
        except TooLargeError:
            yield self._stand_in("batch_too_large", f"at most {self._max_bytes} bytes unpacked (kafka.max_batch_bytes)")
        except UnreadableError as error:
            yield self._stand_in("unreadable_batch", f"records, but {error}")
        except _UNREADABLE:
            yield self._stand_in("unreadable_batch", "records as Kafka defines them")

    def _records(self) -> Iterator[Any]:
        data = self._data
        if data[_ATTRIBUTES] & _CODEC:
            data = _unpacked(data, self._max_bytes)
        read = 0
        try:
            # Not the one that the fetcher asks about checksums: that one would unpack the batch itself.
            for record in memory_records.DefaultRecordBatch(data):
                yield record
                read += 1
        except _UNREADABLE:  # a header's name: UnicodeDecodeError in C, CorruptRecordException in Python
            yield from islice(LenientBatch(data), read, None)

    @property
    def _codec(self) -> int:
        return self._data[_ATTRIBUTES] & _CODEC

    @property
    def _timestamp(self) -> int:
        found: int = self._batch.max_timestamp
        return found

    @property
    def _offsets(self) -> str:
        return f"offsets {self._batch.base_offset} to {self._batch.next_offset - 1}"

    def _stand_in(self, reason: str, wanted: str) -> Any:
        mark = UnreadBatch()
        mark.reason, mark.wanted = reason, wanted
        codec = CODECS.get(self._codec, "no codec")
        mark.found = f"{len(self._data)} bytes ({codec}), {self._offsets}"
        return _DefaultRecordPy(self._batch.next_offset - 1, self._timestamp, 0, None, None, [(_MARK, mark)])


class _OldSet(_Batch):
    """Compressed set of records in a format from before Kafka 0.11.

    It names its last offset only.
    """

    def _records(self) -> Iterator[Any]:
        yield from BoundedSet(self._data, self._data[_MemoryRecordsPy.MAGIC_OFFSET], self._max_bytes)

    @property
    def _codec(self) -> int:
        return self._data[_OLD_ATTRIBUTES] & _CODEC

    @property
    def _timestamp(self) -> int:
        is_dated = self._data[_MemoryRecordsPy.MAGIC_OFFSET] == 1
        return int.from_bytes(self._data[18:26], signed=True) if is_dated else 0

    @property
    def _offsets(self) -> str:
        return f"offsets up to {self._batch.next_offset - 1}"


def _unpacked(data: memoryview, max_bytes: int) -> memoryview:
    """Return the batch as its producer would have sent it without compressing."""
    plain = unpack(data[_ATTRIBUTES] & _CODEC, data[_HEADER:], max_bytes, _HEADER)
    plain[:_HEADER] = data[:_HEADER]
    plain[_ATTRIBUTES] &= 0xFF ^ _CODEC
    struct.pack_into(">i", plain, _MemoryRecordsPy.LENGTH_OFFSET, len(plain) - _MemoryRecordsPy.LOG_OVERHEAD)
    return plain


class BoundedRecords(_MemoryRecordsPy):  # type: ignore[misc]  # aiokafka is untyped
    """Reads the batches of a fetched partition.

    Upstream's class in C takes the format of the first batch for that of all: where a topic has records from before
    Kafka 0.11 it fails at the first newer one. The one in Python does not, and makes the same batches, in C.
    """

    max_bytes = MAX_BYTES
    note: Callable[[int, int], None] | None = None
    """Notes a stretch of offsets without a record; None where that is of no interest."""
    _given: _Batch | None = None
    """A batch of a transaction that has been handed out: the next question tells whether it was passed over."""

    def has_next(self) -> bool:
        """Return whether there is another batch."""
        self._note_unread()
        found: bool = super().has_next()
        return found

    def next_batch(self) -> Any:
        """Return the next batch; None behind the last."""
        self._note_unread()
        data = self._next_slice
        batch = super().next_batch()
        if batch is None:
            return None
        if batch.is_control_batch:
            if self.note is not None:
                self.note(batch.base_offset, batch.next_offset)
            return batch
        if data[self.MAGIC_OFFSET] >= 2:
            made = _Batch(batch, data, self.max_bytes)
            if self.note is not None and batch.is_transactional:
                self._given = made
            return made
        return _OldSet(batch, data, self.max_bytes) if data[_OLD_ATTRIBUTES] & _CODEC else batch

    def _note_unread(self) -> None:
        given, self._given = self._given, None
        if given is not None and not given.is_read and self.note is not None:
            self.note(given.base_offset, given.next_offset)


class NotingRecords(PartitionRecords):  # type: ignore[misc]
    """Records of a fetched partition that note the offsets passed over.

    `PASSED_OVER` keeps the notes.
    """

    def __init__(self, tp: TopicPartition, records: BoundedRecords, aborted: Any, offset: int, *options: Any) -> None:
        super().__init__(tp, records, aborted, offset, *options)
        records.note = PASSED_OVER.begin(tp, offset)


def committed_records(place: TopicPartition, data: bytes, aborted: Any, offset: int) -> PartitionRecords:
    """Return the committed records of fetched data from an offset on.

    None of the offsets that it passes over is noted.

    Parameters
    ----------
    aborted
        Producer and first offset of each aborted transaction that the broker has told with it.
    """
    records = BoundedRecords(data)
    return PartitionRecords(place, records, aborted, offset, None, None, False, fetcher.READ_COMMITTED)


class BoundedResult(fetcher.FetchResult):  # type: ignore[misc]
    """Fetched records of a partition, handed out in portions.

    A portion has a bounded number of bytes.
    """

    _partition_records: Any

    def getall(self, max_records: int | None = None) -> list[Any]:
        """Return the next records, at least a single record if any is there."""
        if not self.check_assignment(self._topic_partition) or not self.has_more():
            return []
        records, size = [], 0
        for record in self._partition_records:
            records.append(record)
            size += len(record.value or b"")
            if len(records) == max_records or size >= POLL_BYTES:
                self._update_position()
                return records
        self._update_position()
        self._partition_records = None
        return records


def bound_batches(max_bytes: int = MAX_BYTES) -> None:
    """Bound the batches that all consumers of this process read.

    The consumers read `BoundedRecords` by `BoundedResult`, and note the offsets that they pass over. aiokafka has no
    place to say so for one alone.

    Parameters
    ----------
    max_bytes
        The most bytes that a batch may have, unpacked.
    """
    BoundedRecords.max_bytes = max_bytes
    fetcher.MemoryRecords = BoundedRecords
    fetcher.FetchResult = BoundedResult
    fetcher.PartitionRecords = NotingRecords
