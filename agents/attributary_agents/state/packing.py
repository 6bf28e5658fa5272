"""Packing of data: a format name, a line of versions, a zstd frame.

The name takes 4 bytes; the versions are of the packages that wrote the data. The frame holds a pickle of plain data,
and no other is read (`PLAIN`); the models in it are bytes of their own, which `codec` reads. No frame is unpacked
beyond 64 times its length, nor beyond 32 MiB where it is short: what can be packed more tightly is padded.
"""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import orjson
import zstandard

from attributary_explainers import dump_model

from ..errors import DamagedStateError, ForeignTypeError, StateError
from ..models.guards.allowlist import PLAIN

_COMPRESSOR = zstandard.ZstdCompressor(level=3, write_checksum=True)
_DECOMPRESSOR = zstandard.ZstdDecompressor()
MOST_TIMES, MOST_OF_SHORT = 64, 2**25
"""How long unpacked data may be: so many times the frame, or so many bytes where that is more."""
_PACKAGES = ("attributary", "river", "numpy", "scikit-learn")


@cache
def versions() -> dict[str, str]:
    """Return the installed versions of the packages that pickles depend on.

    Packages that are not installed are left out.
    """
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
    """Unpack data that `pack` packed.

    The message of an error continues a sentence that names the bytes.

    Raises
    ------
    DamagedStateError
        The bytes are torn, or (`ForeignTypeError`) hold something else than plain data.
    StateError
        They are of another format, or hold what can no longer be loaded.
    """
    if blob[:4] != magic:
        raise StateError(f"begins with {blob[:4]!r}, not {magic!r}")
    _, newline, frame = blob[4:].partition(b"\n")
    if not newline:
        raise DamagedStateError("is torn: it has no versions")
    try:
        raw = _decompress(frame)
    except zstandard.ZstdError as error:
        raise DamagedStateError(f"is torn: {error}") from error
    try:
        return PLAIN.load(raw)
    except ForeignTypeError as error:
        raise ForeignTypeError(f"is not read: {error}") from None
    except Exception as error:
        raise StateError(f"cannot be read: {type(error).__name__}: {error}") from error


def _decompress(frame: bytes) -> bytes:
    size, most = zstandard.frame_content_size(frame), max(MOST_OF_SHORT, MOST_TIMES * len(frame))
    if not 0 <= size <= most:
        said = "an unknown number of" if size < 0 else str(size)
        raise DamagedStateError(
            f"would be {said} bytes when it is unpacked, and {most} are the most: no worker writes that"
        )
    return _DECOMPRESSOR.decompress(frame, max_output_size=most)


def packed_with(blob: bytes) -> dict[str, str]:
    """Return the versions that packed the bytes; empty if unknown."""
    try:
        found = orjson.loads(blob[4:].partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
