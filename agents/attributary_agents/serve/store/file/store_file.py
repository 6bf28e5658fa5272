"""Opens the file of the store for one server, and gives out its connections."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ....errors import StoreError
from .errors import is_damage, store_error
from .schema import APPLICATION, PAGE_BYTES, VERSION, make_tables

logger = logging.getLogger(__name__)

_HEADER_BYTES = 100
_APPLICATION_AT = 68  # where the header of a file of SQLite has its application id
_MAGIC = b"SQLite format 3\0"
_WAL_BYTES = 16 * 2**20  # at most what is written beside the file, which is an eighth of it at most, too
_WAL_SHARE = 8
_SHRUNK_AT_ONCE = 2000  # pages
_IDLE_READERS = 8
_BESIDE = ("-wal", "-shm", "-journal")


class StoreFile:
    """Holds the one connection that writes, and those that read beside it.

    Parameters
    ----------
    path
        The file; None takes one in a temporary folder, which goes with the object.
    max_bytes
        Bytes that the file may take, with what is written beside it.

    Raises
    ------
    StoreError
        The file cannot be opened or made, or another server has it open.
    """

    def __init__(self, path: Path | None, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._folder = tempfile.TemporaryDirectory(prefix="attributary-store-") if path is None else None
        self.path = Path(self._folder.name) / "store.sqlite" if path is None and self._folder else Path(path or "")
        self._lock = threading.RLock()
        self._idle: list[tuple[int, sqlite3.Connection]] = []
        self.generation = 0
        """Grows each time that the file is made anew."""
        self._lock_file = self._claim()
        try:
            self._writer = self._open()
        except BaseException:
            self._lock_file.close()
            raise

    def _claim(self) -> IO[bytes]:
        """Lock a file beside the store, so that no other server opens it."""
        beside = self.path.with_name(self.path.name + ".lock")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = beside.open("ab+")
        except OSError as error:
            raise StoreError(
                f"serve.store: cannot write {beside} ({error.strerror}): set serve.store to a file that this user may "
                "write"
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            who = file.read(20).decode("ascii", "replace").strip()
            file.close()
            process = f"process {who}" if who.isdigit() else "another process"
            raise StoreError(
                f"serve.store: {self.path} is open in another server ({process}): stop that one, or set serve.store to "
                "another file for this one"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        return file

    def _open(self) -> sqlite3.Connection:
        """Open the file; what cannot be used is set aside or removed first, and said in a line."""
        self._set_foreign_aside()
        try:
            return self._opened()
        except sqlite3.DatabaseError as error:
            if not (is_damage(error) or isinstance(error, _OtherVersionError)):
                raise store_error(self.path, error) from None
            logger.warning("%s: %s: it is a cache, and made anew from the topics", self.path, error)
            self._remove()
        try:
            return self._opened()
        except sqlite3.DatabaseError as error:
            raise store_error(self.path, error) from None

    def _set_foreign_aside(self) -> None:
        """Rename a file that is not a store of ours: it may be somebody's only copy of something."""
        try:
            with self.path.open("rb") as file:
                header = file.read(_HEADER_BYTES)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(
                f"serve.store: cannot read {self.path} ({error.strerror}): set serve.store to another file"
            ) from None
        ours = APPLICATION.to_bytes(4, "big")
        if not header or (header.startswith(_MAGIC) and header[_APPLICATION_AT:][:4] == ours):
            return
        aside = next(one for n in range(1, 10**6) if not (one := self.path.with_name(f"{self.path.name}.{n}")).exists())
        self.path.rename(aside)
        for end in _BESIDE:
            with suppress(OSError):
                self.path.with_name(self.path.name + end).rename(aside.with_name(aside.name + end))
        logger.warning("%s is no store of Attributary: it is now %s, and a new store is made", self.path, aside.name)

    def _opened(self) -> sqlite3.Connection:
        db = self._connect()
        try:
            # Both hold for a file that has no tables yet, and change nothing in another one.
            db.execute(f"pragma page_size = {PAGE_BYTES}")
            db.execute("pragma auto_vacuum = incremental")
            (n_tables,) = db.execute("select count(*) from sqlite_master").fetchone()
            if not n_tables:
                # Before WAL begins: afterwards it would be beside the file until a checkpoint, and a server that was
                # killed before that would leave a file that the next one does not know.
                db.execute(f"pragma application_id = {APPLICATION}")
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")
            wal_bytes = min(_WAL_BYTES, self._max_bytes // _WAL_SHARE)
            db.execute(f"pragma journal_size_limit = {wal_bytes}")
            db.execute(f"pragma wal_autocheckpoint = {wal_bytes // 2 // PAGE_BYTES}")
            (version,) = db.execute("pragma user_version").fetchone()
            if not n_tables:
                make_tables(db)
            elif version != VERSION:
                raise _OtherVersionError(f"its tables are of version {version}, and this release reads {VERSION}")
            db.execute("select count(*) from series").fetchone()
        except BaseException:
            db.close()
            raise
        return db

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30.0)
        db.execute("pragma cache_size = -4000")
        return db

    def _remove(self) -> None:
        for one in (self.path, *(self.path.with_name(self.path.name + end) for end in _BESIDE)):
            with suppress(FileNotFoundError):
                one.unlink()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Hold the connection that writes inside a transaction; an error leaves all as it was.

        Raises
        ------
        StoreFullError
            The disk is full.
        DamagedError
            The file was found to be damaged, and has been made anew, empty.
        """
        with self._lock:
            db = self._writer
            try:
                db.execute("begin immediate")
                try:
                    yield db
                    db.execute("commit")
                except BaseException:
                    with suppress(sqlite3.Error):
                        db.execute("rollback")
                    raise
            except sqlite3.Error as error:
                if is_damage(error):
                    self.make_anew(error)
                    raise DamagedError(str(error)) from None
                raise store_error(self.path, error) from None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Hold a connection that reads; all that is read inside the block is of one moment.

        Raises
        ------
        DamagedError
            As of `writing`.
        """
        with self._lock:
            generation = self.generation
            db = self._idle.pop()[1] if self._idle else None
        db = self._connect() if db is None else db
        try:
            db.execute("begin")
            try:
                yield db
            finally:
                with suppress(sqlite3.Error):
                    db.execute("rollback")
        except sqlite3.Error as error:
            db.close()
            if is_damage(error):
                with self._lock:
                    if generation == self.generation:
                        self.make_anew(error)
                raise DamagedError(str(error)) from None
            raise store_error(self.path, error) from None
        with self._lock:
            if generation == self.generation and len(self._idle) < _IDLE_READERS:
                self._idle.append((generation, db))
                return
        db.close()

    def make_anew(self, why: sqlite3.Error) -> None:
        """Replace a file that was found to be damaged by an empty one."""
        with self._lock:
            logger.error("%s is damaged (%s): it is a cache, and read again from the topics", self.path, why)
            self._let_go()
            self._remove()
            self._writer = self._opened()
            self.generation += 1

    def _let_go(self) -> None:
        for _, db in self._idle:
            db.close()
        self._idle.clear()
        with suppress(sqlite3.Error):
            self._writer.close()

    def close(self) -> None:
        """Close all connections, and let another server open the file."""
        with self._lock:
            self._let_go()
            self._lock_file.close()
            if self._folder is not None:
                self._folder.cleanup()

    def _pages(self) -> tuple[int, int]:
        """Return how many pages the file has, and how many of these are free."""
        with self._lock:
            return (
                self._writer.execute("pragma page_count").fetchone()[0],
                self._writer.execute("pragma freelist_count").fetchone()[0],
            )

    def excess(self) -> int:
        """Return how many bytes are to go, so that there is room again; 0 or less where there is."""
        most = self._max_bytes - 2 * min(_WAL_BYTES, self._max_bytes // _WAL_SHARE)
        n, free = self._pages()
        used = (n - free) * PAGE_BYTES
        return used - most * 9 // 10 if used > most else 0

    def shrink(self) -> None:
        """Give pages that are free back to the disk, where they are many."""
        n, free = self._pages()
        if free * 4 <= n and self.size() <= self._max_bytes:
            return
        while free > 0:
            with self._lock:
                self._writer.execute(f"pragma incremental_vacuum({_SHRUNK_AT_ONCE})").fetchall()
            free -= _SHRUNK_AT_ONCE
        with self._lock:
            self._writer.execute("pragma wal_checkpoint(truncate)").fetchall()

    def size(self) -> int:
        """Return the bytes that the file takes, with what is written beside it."""
        total = 0
        for end in ("", *_BESIDE):
            with suppress(FileNotFoundError):
                total += self.path.with_name(self.path.name + end).stat().st_size
        return total


class _OtherVersionError(sqlite3.DatabaseError):
    """The file has been made by another release."""


class DamagedError(StoreError):
    """The file was damaged, and has been made anew: nothing is in it."""
