r"""Correction of aiokafka's `MemoryRecords` and `DefaultRecordBatch`.

- A batch is unpacked whatever it grows to (`aiokafka_codec.py`).
- It raises in the middle of a fetch, before any code of ours, where it cannot read a batch: after each restart a worker
  would end at the same place. Here the records that can be read are read, and one marked record stands for the rest
  (`batches.py`), at the last offset of its batch: those who have read it have read the whole batch.
- Kafka takes any bytes as a header's name, and its Java client reads them; aiokafka, in C as in Python, decodes
  strictly. Here they are escaped, `\xff\xfename`: surrogates cannot be sent on in a dead letter, nor written to a log.
- In C it takes the format of the first batch for that of all, and fails at the first record of Kafka 0.11 or later that
  follows older ones. Compressed sets from before that are marked as unread.

True for aiokafka 0.14.0; `test_aiokafka_records.py` says when it is mended.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from aiokafka.errors import CorruptRecordException
from aiokafka.record import memory_records
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.memory_records import _MemoryRecordsPy
from aiokafka.record.util import decode_varint

from ..batches import MARK, UnreadBatch
from .aiokafka_codec import CODECS, TooLargeError, UnreadableError, unpack

MAX_BYTES = 32 * 2**20
"""Bound on an unpacked batch, unless the configuration has said another."""

_HEADER = 61  # bytes of a batch's header: its records follow
_ATTRIBUTES, _OLD_ATTRIBUTES, _CODEC = 22, 17, 0x07
_UNREADABLE = (CorruptRecordException, ValueError, IndexError, OverflowError, AssertionError, SystemError, struct.error)


class LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]  # aiokafka is untyped
    """Slower reader of a batch that accepts header names that are no UTF-8."""

    _pos: int

    def _read_msg(self, _: Any = None) -> Any:
        buffer: bytearray = self._buffer
        pos = self._pos

        def number() -> int:
            nonlocal pos
            value: int
            value, pos = decode_varint(buffer, pos)
            return value

        def blob() -> bytes | None:
            nonlocal pos
            length = number()
            if length < 0:
                return None
            begin, pos = pos, pos + length
            return bytes(buffer[begin:pos])

        length = number()
        end = pos + length
        pos += 1  # attributes: nothing is in them
        since_first, offset = number(), self.base_offset + number()
        timestamp = self.max_timestamp if self.timestamp_type else self.first_timestamp + since_first
        key, value = blob(), blob()
        headers = [((blob() or b"").decode("utf-8", "backslashreplace"), blob()) for _ in range(number())]
        if pos != end:
            raise CorruptRecordException(f"a record of {length} bytes ends {pos - end} bytes beyond its end")
        self._pos = pos
        return _DefaultRecordPy(offset, timestamp, self.timestamp_type, key, value, headers)


class _Batch:
    """Batch that is unpacked within a bound and read as far as possible."""

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
            yield self._unread("batch_too_large", f"at most {self._max_bytes} bytes unpacked (kafka.max_batch_bytes)")
        except UnreadableError as error:
            yield self._unread("unreadable_batch", f"records, but {error}")
        except _UNREADABLE:
            yield self._unread("unreadable_batch", "records as Kafka defines them")

    def _records(self) -> Iterator[Any]:
        data = self._data
        if data[_ATTRIBUTES] & _CODEC:
            data = _unpacked(data, self._max_bytes)
        n = 0
        try:
            # Not the one that the fetcher asks about checksums: that one would unpack the batch itself.
            for record in memory_records.DefaultRecordBatch(data):
                yield record
                n += 1
        except _UNREADABLE:  # a header's name: UnicodeDecodeError in C, CorruptRecordException in Python
            yield from islice(LenientBatch(data), n, None)

    def _unread(self, reason: str, wanted: str) -> Any:
        batch, codec = self._batch, CODECS.get(self._data[_ATTRIBUTES] & _CODEC, "no codec")
        last = batch.next_offset - 1
        found = f"{len(self._data)} bytes ({codec}), offsets {batch.base_offset} to {last}"
        mark = UnreadBatch.of(reason, wanted, found)
        return _DefaultRecordPy(last, batch.max_timestamp, 0, None, None, [(MARK, mark)])


class _OldSet(_Batch):
    """Compressed set of records from before Kafka 0.11; it is not read."""

    def _records(self) -> Iterator[Any]:
        raise UnreadableError("it is compressed in the format from before Kafka 0.11: send it by a newer producer")

    def _unread(self, reason: str, wanted: str) -> Any:
        codec, last = CODECS.get(self._data[_OLD_ATTRIBUTES] & _CODEC, "no codec"), self._batch.next_offset - 1
        is_dated = self._data[_MemoryRecordsPy.MAGIC_OFFSET] == 1
        mark = UnreadBatch.of(reason, wanted, f"{len(self._data)} bytes ({codec}), offsets up to {last}")
        time_ms = int.from_bytes(self._data[18:26], signed=True) if is_dated else 0
        return _DefaultRecordPy(last, time_ms, 0, None, None, [(MARK, mark)])


def _unpacked(data: memoryview, max_bytes: int) -> memoryview:
    """Return the batch as its producer would have sent it without compressing."""
    plain = unpack(data[_ATTRIBUTES] & _CODEC, data[_HEADER:], max_bytes, _HEADER)
    plain[:_HEADER] = data[:_HEADER]
    plain[_ATTRIBUTES] &= 0xFF ^ _CODEC
    struct.pack_into(">i", plain, _MemoryRecordsPy.LENGTH_OFFSET, len(plain) - _MemoryRecordsPy.LOG_OVERHEAD)
    return plain


class BoundedRecords(_MemoryRecordsPy):  # type: ignore[misc]
    """Reader of the batches of a fetched partition."""

    max_bytes = MAX_BYTES
    note: Callable[[int, int], None] | None = None
    """Notes a stretch of offsets without a record; None where that is of no interest."""
    _handed_out: _Batch | None = None
    """A batch of a transaction: the next question tells whether it was passed over."""

    def has_next(self) -> bool:
        """Return whether there is another batch."""
        self._note_unread()
        has_next: bool = super().has_next()
        return has_next

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
        if data[self.MAGIC_OFFSET] < 2:
            return _OldSet(batch, data, self.max_bytes) if data[_OLD_ATTRIBUTES] & _CODEC else batch
        bounded = _Batch(batch, data, self.max_bytes)
        if self.note is not None and batch.is_transactional:
            self._handed_out = bounded
        return bounded

    def _note_unread(self) -> None:
        batch, self._handed_out = self._handed_out, None
        if batch is not None and not batch.is_read and self.note is not None:
            self.note(batch.base_offset, batch.next_offset)
