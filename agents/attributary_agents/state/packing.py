"""Packs data into bytes: 4 bytes that name the format, a line with the versions that wrote it, and a zstd frame.

The frame holds a pickle. Unpickling runs code: what is read has been checked and, with a key, authenticated before
(`seal`); without a key only the workers may be able to write to the state's changelog topic.
"""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import orjson
import zstandard

from attributary_explainers import dump_model, load_model

_COMPRESSOR = zstandard.ZstdCompressor(level=3, write_checksum=True)
_MAX_DECOMPRESSED_BYTES = 2**31
_PACKAGES = ("attributary", "river", "numpy", "scikit-learn")


class PackError(Exception):
    """The bytes cannot be read; the message continues a sentence that names them."""


class TornError(PackError):
    """The bytes are incomplete, or not those that were written."""


@cache
def versions() -> dict[str, str]:
    """Return the installed versions of what a pickle depends on; what is not installed is left out."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def pack(magic: bytes, data: Any) -> bytes:
    """Return plain data as bytes, in the format that `magic` names."""
    return magic + orjson.dumps(versions()) + b"\n" + _COMPRESSOR.compress(dump_model(data))


def unpack(magic: bytes, blob: bytes) -> Any:
    """Return the data that `pack` was given.

    Raises
    ------
    TornError
        The bytes are damaged.
    PackError
        The bytes are of another format, or hold what can no longer be loaded.
    """
    if blob[:4] != magic:
        raise PackError(f"begins with {blob[:4]!r}, not {magic!r}")
    _, newline, frame = blob[4:].partition(b"\n")
    if not newline:
        raise TornError("is torn: it has no versions")
    try:
        raw = zstandard.ZstdDecompressor().decompress(frame, max_output_size=_MAX_DECOMPRESSED_BYTES)
    except zstandard.ZstdError as error:
        raise TornError(f"is torn: {error}") from error
    try:
        return load_model(raw)
    except Exception as error:
        raise PackError(f"cannot be read: {type(error).__name__}: {error}") from error


def packed_with(blob: bytes) -> dict[str, str]:
    """Return the versions that packed the bytes; nothing where the bytes do not say."""
    try:
        found = orjson.loads(blob[4:].partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
