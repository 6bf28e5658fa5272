"""Packs data into bytes: 4 bytes that name the format, a line with the versions that wrote it, and a zstd frame.

The frame holds a pickle of plain data, and no other is read (`PLAIN`); the models in it are bytes of their own, which
`codec` reads. No frame is unpacked beyond 64 times its length, nor beyond 32 MiB where it is short: what can be packed
more tightly is padded.
"""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import orjson
import zstandard

from attributary_explainers import dump_model

from ..errors import ForeignTypeError
from ..models.guards.allowlist import PLAIN

_COMPRESSOR = zstandard.ZstdCompressor(level=3, write_checksum=True)
_DECOMPRESSOR = zstandard.ZstdDecompressor()
MOST_TIMES, MOST_OF_SHORT = 64, 2**25
"""How long unpacked data may be: so many times the frame, or so many bytes where that is more."""
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
    raw = dump_model(data)
    frame = _COMPRESSOR.compress(raw)
    if len(raw) > MOST_OF_SHORT:
        frame = frame.ljust(-(-len(raw) // MOST_TIMES), b"\0")
    return magic + orjson.dumps(versions()) + b"\n" + frame


def unpack(magic: bytes, blob: bytes) -> Any:
    """Return the data that `pack` was given.

    Raises
    ------
    TornError
        The bytes are damaged.
    PackError
        The bytes are of another format, or hold what can no longer be loaded.
    ForeignTypeError
        They hold something else than plain data.
    """
    if blob[:4] != magic:
        raise PackError(f"begins with {blob[:4]!r}, not {magic!r}")
    _, newline, frame = blob[4:].partition(b"\n")
    if not newline:
        raise TornError("is torn: it has no versions")
    try:
        raw = _decompress(frame)
    except zstandard.ZstdError as error:
        raise TornError(f"is torn: {error}") from error
    try:
        return PLAIN.load(raw)
    except ForeignTypeError:
        raise
    except Exception as error:
        raise PackError(f"cannot be read: {type(error).__name__}: {error}") from error


def _decompress(frame: bytes) -> bytes:
    size, most = zstandard.frame_content_size(frame), max(MOST_OF_SHORT, MOST_TIMES * len(frame))
    if not 0 <= size <= most:
        said = "an unknown number of" if size < 0 else str(size)
        raise TornError(f"would be {said} bytes when it is unpacked, and {most} are the most: no worker writes that")
    return _DECOMPRESSOR.decompress(frame, max_output_size=most)


def packed_with(blob: bytes) -> dict[str, str]:
    """Return the versions that packed the bytes; nothing where the bytes do not say."""
    try:
        found = orjson.loads(blob[4:].partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
