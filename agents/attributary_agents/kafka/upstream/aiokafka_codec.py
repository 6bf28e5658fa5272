"""Correction of `aiokafka.codec`: decompression up to a bound.

It unpacks whatever the data grows to: 22 kB of zstd can be 700 MB. Here no size that the data claims is allocated
before it has been compared with the bound, and none beyond it is written.

True for aiokafka 0.14.0; `test_aiokafka_records.py` says when it is mended.
"""

from __future__ import annotations

import struct
from typing import Any

import cramjam
import numpy as np

CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""Name of each codec by its number in a batch."""

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_NO_ROOM = ("failed to write whole buffer", "smaller than required")  # as cramjam says that there is more
_SMALL = 65_536  # a larger array is asked of the operating system: for small batches that takes longer than unpacking
_LIKELY_RATIO = 16


class TooLargeError(Exception):
    """Data that is larger than the bound, unpacked."""


class UnreadableError(Exception):
    """Data that is damaged, or of an unknown codec; its text has no data."""


def unpack(codec: int, data: memoryview, max_bytes: int, room: int = 0) -> memoryview:
    """Return the unpacked data behind `room` bytes of unknown content.

    Parameters
    ----------
    codec
        Its number in a batch: a key of `CODECS`.
    max_bytes
        The most bytes that it may have, unpacked.
    room
        Bytes to leave free before it.

    Raises
    ------
    TooLargeError
        It has more. At most `max_bytes` have been unpacked by then.
    UnreadableError
        It cannot be unpacked.
    """
    likely = max(_SMALL, _LIKELY_RATIO * len(data))
    if likely < max_bytes:
        try:
            return _unpack(codec, data, likely, room)
        except TooLargeError:
            pass  # once more, where it is packed uncommonly well
    return _unpack(codec, data, max_bytes, room)


def _unpack(codec: int, data: memoryview, max_bytes: int, room: int) -> memoryview:
    # Pages that are not written take no memory: of a large array only what comes counts.
    array: Any = np.empty(room + max_bytes, np.uint8)
    out = memoryview(array)
    space = out[room:]
    try:
        if codec == 1:
            n = cramjam.gzip.decompress_into(data, space)
        elif codec == 2:
            n = _snappy(data, space)
        elif codec == 3:
            n = cramjam.lz4.decompress_into(data, space)
        elif codec == 4:
            n = cramjam.zstd.decompress_into(data, space)
        else:
            raise UnreadableError(f"codec {codec} is unknown")
    except (cramjam.DecompressionError, struct.error) as error:
        if any(words in str(error) for words in _NO_ROOM):
            raise TooLargeError from None
        raise UnreadableError("its compressed data is damaged") from None
    return out[: room + n]


def _snappy(data: memoryview, space: memoryview) -> int:
    if len(data) <= _XERIAL_HEADER or data[: len(_XERIAL)] != _XERIAL:
        return int(cramjam.snappy.decompress_raw_into(data, space))
    n, position = 0, _XERIAL_HEADER
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position)
        position += 4
        if not 0 <= length <= len(data) - position:
            raise UnreadableError("a block of its compressed data ends beyond the data")
        n += cramjam.snappy.decompress_raw_into(data[position : position + length], space[n:])
        position += length
    return n
