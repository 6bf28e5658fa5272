"""Hash and safe copy of a folder that MLflow has written.

Nobody else can change the copy.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ...errors import DeploymentError, NotAllowedError

META = "registered_model_meta"
"""File that MLflow's client adds beside what it has fetched; it is no part of the model."""


def digest_of(folder: Path) -> str:
    """Return the hash of a folder, in hexadecimal.

    It is that of this line there: `find . -type f ! -name registered_model_meta -print0 | LC_ALL=C sort -z | xargs -0
    sha256sum | sha256sum`.

    Raises
    ------
    DeploymentError
        It holds a link, or what is neither a file nor a folder; or a name has a line end, which could pretend to be
        another file's line.
    """
    lines = []
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise DeploymentError(f"{path.relative_to(folder)} is a link, or no file: put files there", _WRONG)
        if "\n" in str(path.relative_to(folder)):
            raise DeploymentError(f"{str(path.relative_to(folder))!r} has a line end in its name: rename it", _WRONG)
        if path.is_file() and path.name != META:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            lines.append((f"./{path.relative_to(folder).as_posix()}".encode(), found))
    whole = b"".join(found.encode() + b"  " + name + b"\n" for name, found in sorted(lines))
    return hashlib.sha256(whole).hexdigest()


def check_digest(folder: Path, name: str, sha256: str, said_by: str = "the record") -> None:
    """Raise DeploymentError if the files of a folder have another hash."""
    if (found := digest_of(folder)) != sha256:
        raise DeploymentError(f"{name}: sha256 is {found}, {said_by} says {sha256}", _WRONG)


@contextmanager
def copied(directory: Path | None, name: str) -> Iterator[Path]:
    """Yield a temporary copy of a folder below `artefacts.directory`.

    Raises
    ------
    DeploymentError
        There is no such folder, or MLflow has not written it.
    NotAllowedError
        No directory is configured, or the path leads out of it.
    """
    if directory is None:
        raise NotAllowedError("artefacts are not allowed: set artefacts.directory in the workers' configuration")
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise NotAllowedError(f"folder {name!r}: expected a path below artefacts.directory, without `..`")
    try:
        path = (directory / name).resolve(strict=True)
        if not path.is_relative_to(directory.resolve()):
            raise NotAllowedError(f"folder {name!r} is a link out of artefacts.directory")
        if not (path / "MLmodel").is_file():
            raise DeploymentError(f"{name} has no file MLmodel: expected a folder that MLflow has written", _WRONG)
        with TemporaryDirectory(prefix="attributary-mlflow-") as scratch:
            target = Path(scratch) / "model"
            shutil.copytree(path, target, symlinks=True, copy_function=shutil.copyfile)
            yield target
    except OSError as error:
        why = error.strerror or os.strerror(error.errno or 0)
        raise DeploymentError(f"cannot read the folder {name!r}: {why}", _WRONG) from None


_WRONG = "wrong_artefact"
