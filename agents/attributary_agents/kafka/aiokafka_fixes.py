"""Reads what aiokafka 0.14.0 cannot: header names that are no UTF-8, and sets of old records that are damaged.

Kafka takes any bytes as a header's name, and its Java client reads them; aiokafka, in C as in Python, decodes strictly.
"""

from __future__ import annotations

import struct
from typing import Any

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.legacy_records import _LegacyRecordBatchPy
from aiokafka.record.util import decode_varint

from .unpacking import unpack


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


class BoundedSet(_LegacyRecordBatchPy):  # type: ignore[misc]
    """Reads a compressed set of records in a format from before Kafka 0.11, unpacked within a bound.

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
        """Refuse what upstream would follow for ever: a record whose length leads back to itself."""
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
