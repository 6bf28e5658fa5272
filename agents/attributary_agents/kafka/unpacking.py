"""Decompression of producers' data, up to a bound.

It stops where the data grows beyond the bound: 22 kB of zstd can be 700 MB. No size that the data claims is allocated
before it has been compared with the bound, and none beyond it is written.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import cramjam
import numpy as np

CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""Name of each codec by its number in a batch."""

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_GZIP = 31  # for zlib: the largest window, and gzip's header
_SMALL = 65_536  # a larger array is asked of the operating system: for small batches that takes longer than unpacking
_LIKELY_RATIO = 16


class TooLargeError(Exception):
    """Says that the unpacked data is larger than the bound."""


class UnreadableError(Exception):
    """Data that is damaged, or of a codec that does not exist.

    The text says how, without any of the data.
    """


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
            n = _gzip(data, space)
        elif codec == 2:
            n = _snappy(data, space)
        elif codec == 3:
            n = cramjam.lz4.decompress_into(data, space)
        elif codec == 4:
            n = cramjam.zstd.decompress_into(data, space)
        else:
            raise UnreadableError(f"codec {codec} is unknown")
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        if "failed to write whole buffer" in str(error):
            raise TooLargeError from None
        raise UnreadableError("its compressed data is damaged") from None
    return out[: room + n]


def _gzip(data: memoryview, space: memoryview) -> int:
    n = 0
    rest: bytes | memoryview = data
    while rest:  # one member after another
        member = zlib.decompressobj(_GZIP)
        text = member.decompress(rest, len(space) - n + 1)  # grows with what comes
        if n + len(text) > len(space):
            raise TooLargeError
        if not member.eof:
            raise UnreadableError("its compressed data ends too early")
        space[n : n + len(text)] = text
        n += len(text)
        rest = member.unused_data.lstrip(b"\0")  # as padding, which gzip allows
    return n


def _snappy(data: memoryview, space: memoryview) -> int:
    if len(data) <= _XERIAL_HEADER or data[: len(_XERIAL)] != _XERIAL:
        return _snappy_block(data, space)
    n, position = 0, _XERIAL_HEADER
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position)
        position += 4
        if not 0 <= length <= len(data) - position:
            raise UnreadableError("a block of its compressed data ends beyond the data")
        n += _snappy_block(data[position : position + length], space[n:])
        position += length
    return n


def _snappy_block(data: memoryview, space: memoryview) -> int:
    size = shift = 0
    for byte in data[:5]:  # the unpacked size: a varint
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > len(space):
        raise TooLargeError
    n: int = cramjam.snappy.decompress_raw_into(data, space[:size])
    return n
