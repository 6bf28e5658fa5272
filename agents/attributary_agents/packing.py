"""Bytes of what the state table holds: 4 bytes that name the format, then a zstd frame with a checksum over a pickle.

Unpickling runs code: the state's changelog topic must be writable by the workers alone.
"""

from __future__ import annotations

from typing import Any

import zstandard

from attributary_explainers import dump_model, load_model

_COMPRESSOR = zstandard.ZstdCompressor(level=3, write_checksum=True)
_MAX_DECOMPRESSED_BYTES = 2**31


class PackError(Exception):
    """The bytes cannot be read; the message continues a sentence that names them."""


def pack(magic: bytes, data: Any) -> bytes:
    """Bytes of plain data, in the format that `magic` names."""
    return magic + _COMPRESSOR.compress(dump_model(data))


def unpack(magic: bytes, blob: bytes) -> Any:
    """What `pack` was given.

    Raises
    ------
    PackError
        The bytes are of another format, damaged, or hold what can no longer be loaded.
    """
    if blob[:4] != magic:
        raise PackError(f"begins with {blob[:4]!r}, not {magic!r}")
    try:
        raw = zstandard.ZstdDecompressor().decompress(blob[4:], max_output_size=_MAX_DECOMPRESSED_BYTES)
    except zstandard.ZstdError as error:
        raise PackError(f"is torn: {error}") from error
    try:
        return load_model(raw)
    except Exception as error:
        raise PackError(f"cannot be read: {type(error).__name__}: {error}") from error
