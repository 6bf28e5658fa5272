"""Reading of a model's file, with a check of its path and hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...errors import DeploymentError, NotAllowedError


def sha256_of(content: bytes) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def read_artefact(directory: Path | None, name: str, sha256: str | None, said_by: str = "the record") -> bytes:
    """Return the content of a model's file.

    Parameters
    ----------
    directory
        `artefacts.directory`.
    name
        Path below it.
    sha256
        Hash that it must have; None takes any, to find out what it is.
    said_by
        Who says what hash it must have, for the message.

    Raises
    ------
    DeploymentError
        There is no such file, or it has another hash.
    NotAllowedError
        No directory is configured, or the path leads out of it.
    """
    if directory is None:
        raise NotAllowedError("artefacts are not allowed: set artefacts.directory in the workers' configuration")
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise NotAllowedError(f"artefact {name!r}: expected a path below artefacts.directory, without `..`")
    try:
        path = (directory / name).resolve(strict=True)
        if not path.is_relative_to(directory.resolve()):
            raise NotAllowedError(f"artefact {name!r} is a link out of artefacts.directory")
        content = path.read_bytes()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle
        why = (isinstance(error, OSError) and error.strerror) or error
        raise DeploymentError(f"cannot read the artefact {name!r}: {why}", "wrong_artefact") from None
    found = sha256_of(content)
    if sha256 is not None and found != sha256:
        raise DeploymentError(f"{name}: sha256 is {found}, {said_by} says {sha256}", "wrong_artefact")
    return content
