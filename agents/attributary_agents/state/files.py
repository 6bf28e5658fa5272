"""Files of exported states: writing and reading.

A file is a line of JSON that describes the state, then the state as in the changelog.

    {"format":"attributary-state-1","model_id":"credit","version":"1","partition":0,"offset":41,...}
    ATH1{"size":...,"sha256":...,"hmac":...}
    the bytes

Where a key is configured, the signature in the second line covers the first line, too.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ..errors import AttributaryError, StateError
from ..private_files import open_private
from .codec import describe, packed_with
from .seal import Head, Seal, check_bytes

FORMAT = "attributary-state-1"


@dataclass(frozen=True)
class ExportedState:
    """A model's state outside of Kafka.

    Attributes
    ----------
    header
        The file's first line: `model_id`, `version`, `observations` that the model has seen, `partition` and `offset`
        of the last one, `size` in bytes and `sha256` of the state, and the `packages` that wrote it.
    blob
        The state, as `codec` encodes it.
    """

    header: dict[str, Any]
    blob: bytes

    @classmethod
    def of(cls, model_id: str, blob: bytes) -> ExportedState:
        """Return the state with a header that describes it.

        Raises
        ------
        StateError
            The bytes are no state of this model.
        """
        said, head = describe(model_id, blob), Head.of(blob)
        header = {
            "format": FORMAT,
            "model_id": model_id,
            "version": said.version,
            "observations": said.n_observations,
            "partition": said.partition,
            "offset": said.offset,
            "size": head.size,
            "sha256": head.sha256,
            "packages": packed_with(blob),
        }
        return cls(header, blob)

    @property
    def model_id(self) -> str:
        """The id of the model that it was exported from."""
        return str(self.header["model_id"])


def check_free(path: Path, *, force: bool = False) -> None:
    """Raise AttributaryError if a file exists and `force` is not set."""
    if path.exists() and not force:
        raise AttributaryError(f"{path} exists: name another file, or replace it with --force")


def write_file(path: Path, exported: ExportedState, seal: Seal) -> None:
    """Write a state to a file that only its owner may read.

    The file appears under its name only when it is complete.

    Raises
    ------
    AttributaryError
        It cannot be written.
    """
    line = orjson.dumps(exported.header)
    part = path.with_name(f"{path.name}.part")
    try:
        with open_private(part) as file:
            file.write(line + b"\n" + seal.write(_signed_key(line), Head.of(exported.blob), exported.blob))
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise AttributaryError(f"cannot write {path}: {error.strerror}") from None


def read_file(path: Path, seal: Seal) -> ExportedState:
    """Read an exported state, after checking its signature and checksum.

    Raises
    ------
    AttributaryError
        It cannot be read, is no exported state, is damaged, or is not signed with the configured key.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise AttributaryError(f"cannot read {path}: {error.strerror}") from None
    line, _, sealed = content.partition(b"\n")
    try:
        header = orjson.loads(line)
        found, model_id = header["format"], header["model_id"]
    except (ValueError, TypeError, KeyError):
        raise AttributaryError(f"{path} is no state that `attributary models export` has written") from None
    if found != FORMAT:
        raise AttributaryError(
            f"{path} is of the format {found!r}, expected {FORMAT!r}: take the release that wrote it"
        )
    try:
        head, blob = seal.read(_signed_key(line), sealed)
        exported = ExportedState.of(model_id, check_bytes(head, blob))
    except StateError as error:
        raise AttributaryError(f"{path} {error}") from None
    if exported.header != header:
        raise AttributaryError(f"{path} is damaged: its first line says other things than the state in it")
    return exported


def _signed_key(line: bytes) -> bytes:
    # Begins like no key of the changelog: a file is no record there, and no record is a file.
    return b"\x00export\x00" + line
