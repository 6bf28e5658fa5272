"""Corrections to aiokafka 0.14.0: reading, transactions, waiting fetches.

They concern records that it cannot read, errors that end a transaction's sender, and how long a partition waits.

Kafka takes any bytes as a header's name, and its Java client reads them; aiokafka, in C as in Python, decodes strictly.
It also follows sets of old records that are damaged for ever.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from aiokafka.consumer.fetcher import Fetcher
from aiokafka.errors import CorruptRecordException, KafkaConnectionError, KafkaError
from aiokafka.producer.sender import Sender
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.legacy_records import _LegacyRecordBatchPy
from aiokafka.record.util import decode_varint

from .unpacking import unpack

BESIDE_MS = 50
"""Longest that a broker keeps a fetch back while what another partition has brought is not consumed yet."""


class PromptFetcher(Fetcher):  # type: ignore[misc]  # aiokafka is untyped
    """Fetcher that fetches the next records of a backlog at once.

    It does so also where other partitions of the broker have none. One fetch per broker is under way. While a
    partition's records wait to be consumed, upstream fetches the others alone, and the broker keeps that fetch back
    until they have something, for `fetch_max_wait_ms` (1.5 s with Faust). What the partition has next would wait for
    that: half of the time where models are fast.
    """

    def _get_actions_per_node(self, assignment: Any) -> Any:
        longest = self._fetch_max_wait_ms  # type: ignore[has-type]
        if self._records:
            self._fetch_max_wait_ms = min(longest, BESIDE_MS)
        try:
            return super()._get_actions_per_node(assignment)
        finally:
            self._fetch_max_wait_ms = longest


class PatientSender(Sender):  # type: ignore[misc]
    """Sender that outlasts a closed connection to a broker that is asked.

    It looks for the coordinator of transactions again where a broker closes the connection while it is asked.

    A broker closes it where it is stopped in an orderly way, as each one is when a cluster is updated. Upstream asks
    again where no broker is ready or none answers in time, but a closed connection ends its sender: the producer then
    fails for ever, and the worker ends with it.
    """

    async def _find_coordinator(self, coordinator_type: Any, coordinator_key: str) -> Any:
        while True:
            try:
                return await super()._find_coordinator(coordinator_type, coordinator_key)
            except KafkaError as error:
                if not isinstance(error.__cause__, KafkaConnectionError):
                    raise
            await self.client.force_metadata_update()
            await asyncio.sleep(self._retry_backoff)


class LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]
    r"""Reader of a batch that accepts header names that are no UTF-8.

    It is in Python, which is slower, and escapes such bytes: `\xff\xfename`. Escaped and not as surrogates: those
    cannot be sent on in a dead letter, nor written to a log.
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


class BoundedSet(_LegacyRecordBatchPy):  # type: ignore[misc]
    """Compressed set of records that is unpacked within a bound.

    Its format is from before Kafka 0.11.

    Parameters
    ----------
    max_bytes
        The most that the set may have, unpacked: beyond it iterating raises `TooLargeError`.
    """

    def __init__(self, buffer: memoryview, magic: int, max_bytes: int) -> None:
        super().__init__(buffer, magic)
        self._max_bytes = max_bytes

    def _decompress(self, key_offset: int) -> memoryview:
        data, position = self._buffer, key_offset
        (key_size,) = struct.unpack_from(">i", data, position)
        position += 4 + max(key_size, 0)
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        if not 0 <= size <= len(data) - position:
            raise CorruptRecordException("the value of a compressed set ends beyond the set")
        return unpack(self._compression_type, data[position : position + size], self._max_bytes)

    def _read_all_headers(self) -> list[Any]:
        """Return all record headers; refuse a length that leaves the set.

        Upstream would follow for ever a record whose length leads back to itself.
        """
        position, end = 0, len(self._buffer)
        found: list[Any] = []
        while position < end:
            header = self._read_header(position)
            following = position + self.LOG_OVERHEAD + header[1]
            if header[1] < 0 or following > end:
                raise CorruptRecordException("a record of a compressed set ends beyond the set")
            found.append((header, position))
            position = following
        return found
