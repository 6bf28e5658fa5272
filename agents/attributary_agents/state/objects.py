"""Large states as objects in a bucket or on a volume, through fsspec.

An object is written under a name that no other writer uses, and never changed. It becomes the state when a head in the
state table names it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

from ..config.settings import Config
from ..errors import ConfigError, DamagedStateError

logger = logging.getLogger(__name__)

T = TypeVar("T")
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0


class ObjectStore:
    """Store of objects below a single folder.

    While the store fails, reading and writing wait and try again: the partition's observations wait with them, and
    nothing is lost. The log says so each time.

    Parameters
    ----------
    url
        URL of the folder, as fsspec reads it: `file:///var/lib/states`, `s3://bucket/states`.
    group
        Consumer group: the states of several can share the folder.

    Raises
    ------
    ConfigError
        fsspec, or the package for this kind of store, is not installed, or the URL is not valid.
    """

    def __init__(self, url: str, group: str) -> None:
        try:
            import fsspec
        except ImportError:
            raise ConfigError("state.url needs fsspec: pip install 'attributary[object-store]'") from None
        try:
            self._files, root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"state.url: {error}") from None
        self.url = url
        self._root = f"{root.rstrip('/')}/{group}"

    def check(self) -> None:
        """Write, read and delete an object.

        Raises
        ------
        ConfigError
            The store refuses one of the three, or returns other bytes.
        """
        path = f"{self._root}/check"
        try:
            self._write(path, b"check")
            if self._files.cat_file(path) != b"check":
                raise OSError("what was written is not what is read")
            self._files.rm_file(path)
        except Exception as error:  # noqa: BLE001 - each store has errors of its own
            raise ConfigError(f"state.url {self.url} cannot be used: {type(error).__name__}: {error}") from None

    async def read(self, name: str, what: str) -> bytes:
        """Return the object's bytes.

        Raises
        ------
        DamagedStateError
            There is no such object.
        """
        path = f"{self._root}/{name}"
        try:
            blob: bytes = await _until_done(
                lambda: self._files.cat_file(path), f"{what} cannot be read from {self.url}", FileNotFoundError
            )
        except FileNotFoundError:
            raise DamagedStateError(f"{what} should be in {self.url}, {name}, where there is nothing") from None
        return blob

    async def write(self, partition: int, name: bytes, epoch: int, number: int, blob: bytes, what: str) -> str:
        """Write the bytes as a new object; return its name."""
        digest = hashlib.sha256(blob).hexdigest()[:12]
        object_name = f"{_folder(partition, name)}/{first_of_epoch(epoch)}-{number:09d}-{digest}"
        path = f"{self._root}/{object_name}"
        await _until_done(lambda: self._write(path, blob), f"{what} cannot be written to {self.url}")
        return object_name

    async def delete_older(self, partition: int, name: bytes, kept: str) -> None:
        """Delete the objects that are older than the given object.

        Objects of a later owner are never older.
        """
        folder, kept = f"{self._root}/{_folder(partition, name)}", kept.rsplit("/", 1)[-1]

        def delete() -> None:
            for path in self._files.ls(folder, detail=False):
                if path.rsplit("/", 1)[-1] < kept:
                    self._files.rm_file(path)

        try:
            await asyncio.to_thread(delete)
        except Exception as error:  # noqa: BLE001 - tried again after the next write; nothing depends on it
            logger.info("objects in %s that are no longer needed stay: %r", folder, error)

    def _write(self, path: str, blob: bytes) -> None:
        self._files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        self._files.pipe_file(path, blob)


async def _until_done(work: Callable[[], T], failure: str, *final: type[Exception]) -> T:
    wait = FIRST_WAIT_S
    while True:
        try:
            return await asyncio.to_thread(work)
        except final:
            raise
        except Exception as error:  # noqa: BLE001 - each store has errors of its own, and all may pass
            logger.error(
                "%s: %s: %s; its partition's observations wait, trying again in %.1f s",
                failure,
                type(error).__name__,
                error,
                wait,
            )
        await asyncio.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)


def first_of_epoch(epoch: int) -> str:
    """Return the name that sorts after all objects of earlier owners."""
    return f"{epoch:015d}"


def _folder(partition: int, name: bytes) -> str:
    return f"{partition}/{quote(name, safe='')}"


def object_store(url: str | None, group: str) -> ObjectStore | None:
    """Return the configured object store; None where none is configured."""
    return None if url is None else ObjectStore(url, group)


def check_objects(config: Config) -> None:
    """Raise ConfigError where the configured object store cannot be used."""
    objects = object_store(config.state.url, config.kafka.group)
    if objects is not None:
        objects.check()
