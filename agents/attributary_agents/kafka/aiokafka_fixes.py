"""Reads what aiokafka 0.14.0 cannot: header names that are no UTF-8, and old formats before new ones.

aiokafka fails in the middle of a fetch, before any code of ours: after each restart a worker would end at the same
record. Kafka takes any bytes as a header's name, and its Java client reads them; aiokafka, in C as in Python,
decodes strictly.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.memory_records import _MemoryRecordsPy
from aiokafka.record.util import decode_varint


class LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]  # aiokafka is untyped
    r"""Reads a batch in Python, which is slower, and escapes what is no UTF-8 in a header's name: `\xff\xfename`.

    Escaped and not as surrogates: those cannot be sent on in a dead letter, nor written to a log.
    """

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
    """Reads with upstream's batch, and with `LenientBatch` from the first record that upstream cannot read."""

    def __init__(self, batch: Any, data: memoryview) -> None:
        self._batch = batch
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        read = 0
        try:
            for record in self._batch:
                yield record
                read += 1
        except (UnicodeDecodeError, CorruptRecordException):  # in C the former, in Python the latter
            yield from islice(LenientBatch(self._data), read, None)


class LenientRecords(_MemoryRecordsPy):  # type: ignore[misc]
    """Reads the batches of a fetched partition.

    Upstream's class in C takes the format of the first batch for that of all: where a topic has records from before
    Kafka 0.11 it fails at the first newer one. The one in Python does not, and makes the same batches, in C.
    """

    def next_batch(self) -> Any:
        """Return the next batch; None behind the last."""
        data = self._next_slice
        batch = super().next_batch()
        if batch is None or data[self.MAGIC_OFFSET] < 2 or batch.is_control_batch:  # without headers
            return batch
        return _Batch(batch, data)


def read_all_that_kafka_takes() -> None:
    """Let every consumer of this process read `LenientRecords`; aiokafka has no place to say so for one alone."""
    fetcher.MemoryRecords = LenientRecords
