"""The store's SQLite file: opened by a single server, remade if damaged."""

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

from ...errors import StoreError
from .rows import SCALARS

logger = logging.getLogger(__name__)

_APPLICATION = 0x41545459
"""By which a file of SQLite is known to be a store of ours: `pragma application_id`."""

_VERSION = 3
"""Version of the tables; a file of another one is made anew, since all that it has can be read again."""

_PAGE_BYTES = 8192
_WAL_BYTES = 16 * 2**20  # at most beside the file, which is an eighth of what it may have at most, too
_SHRUNK_AT_ONCE = 2000  # pages
_IDLE_READERS = 8
_BESIDE = ("-wal", "-shm", "-journal")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)

_TABLES = f"""
begin immediate;
-- An explainer of a model by one removal and loss. Numbers of observations may begin again: `run` counts that.
-- `taken` is the id of the last event that came.
create table series (
    id integer primary key, model_id text not null, explainer text not null, removal text not null, loss text not null,
    run integer not null, taken integer not null, seen_ms integer not null,
    last_ms integer not null, last_observation integer not null,
    unique (model_id, explainer, removal, loss));
-- An event without a time has that of the one before it, or 0. `features` is an object of JSON in the order of ranks,
-- name to [importance, half width]; `quality` one of name to [value, reference].
create table importances (
    id integer primary key, series integer not null, t integer not null, observation integer not null,
    run integer not null, n_observations integer not null, version text not null, loss_unit text not null,
    loss_largest real, alpha real not null, mode text, {", ".join(f"{name} real" for name in SCALARS)},
    quality text not null, features text not null,
    unique (series, t, observation));
create index importances_by_run on importances (series, run, observation);
create index importances_by_time on importances (t);
create table versions (
    model_id text not null, version text not null, taken integer not null, first_ms integer not null,
    last_ms integer not null, first_observation integer not null, last_observation integer not null,
    primary key (model_id, version)) without rowid;
-- The newest revision of each incident; `brief` is what lists need of it, which may be a hundredth.
create table incidents (
    number integer primary key, id text not null unique, model_id text not null, revision integer not null, t integer,
    begun integer, since integer not null, observation integer not null, is_open integer not null, brief text not null,
    value text not null);
create index incidents_of_model on incidents (model_id, begun);
create index incidents_by_beginning on incidents (begun);
create index incidents_by_time on incidents (t);
create index incidents_that_are_open on incidents (model_id) where is_open;
create table statuses (
    model_id text not null, part integer not null, t integer, value text not null, primary key (model_id, part));
create table letters (
    model_id text not null, reason text not null, stage text not null, hour integer not null, n integer not null,
    first_ms integer not null, last_ms integer not null, primary key (model_id, reason, stage, hour)) without rowid;
create index letters_by_hour on letters (hour);
create table letter_ids (number integer primary key, id text not null unique);
create table dependences (
    model_id text not null, explainer text not null, feature text not null, label text not null,
    t integer, observation integer not null, value text not null, primary key (model_id, explainer, feature, label));
create table positions (topic text not null, part integer not null, next integer not null, primary key (topic, part));
create table topics (name text primary key, topic_id text not null);
-- Ids go on when all has been deleted: autoincrement.
create table live (
    id integer primary key autoincrement, event text not null, model_id text not null, data blob not null);
pragma user_version = {_VERSION};
commit;
"""


class StoreFullError(StoreError):
    """The disk is full: the records were not stored, and can be sent again."""


class DamagedError(StoreError):
    """The file was damaged, and has been replaced by an empty file."""


class _OtherVersionError(sqlite3.DatabaseError):
    """The file has been made by another release."""


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


class StoreFile:
    """SQLite file with a single writing connection and several readers.

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
        self._wal_bytes = min(_WAL_BYTES, max_bytes // 8)
        self._folder = tempfile.TemporaryDirectory(prefix="attributary-store-") if path is None else None
        self.path = Path(self._folder.name) / "store.sqlite" if path is None and self._folder else Path(path or "")
        self._lock = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self.generation = 0
        """Grows each time that the file is made anew."""
        self._lock_file = self._claim()
        try:
            self._writer = self._open()
        except BaseException as error:
            self._lock_file.close()
            if isinstance(error, sqlite3.Error):
                raise self._error(error) from None
            raise

    def _beside(self, end: str) -> Path:
        return self.path.with_name(self.path.name + end)

    def _claim(self) -> IO[bytes]:
        """Lock a file beside the store, so that no other server opens it."""
        beside = self._beside(".lock")
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
        """Open the file; set aside or remove an unusable file with a message."""
        self._set_foreign_aside()
        try:
            return self._opened()
        except sqlite3.DatabaseError as error:
            if not (_code(error) in _DAMAGED or isinstance(error, _OtherVersionError)):
                raise
            logger.warning("%s: %s: it is a cache, and made anew from the topics", self.path, error)
            self._remove()
        return self._opened()

    def _set_foreign_aside(self) -> None:
        """Rename a foreign file, which may be somebody's only copy."""
        try:
            with self.path.open("rb") as file:
                header = file.read(72)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(
                f"serve.store: cannot read {self.path} ({error.strerror}): set serve.store to another file"
            ) from None
        if not header or (header.startswith(b"SQLite format 3\0") and header[68:] == _APPLICATION.to_bytes(4, "big")):
            return
        aside = next(one for n in range(1, 10**6) if not (one := self._beside(f".{n}")).exists())
        self.path.rename(aside)
        for end in _BESIDE:
            with suppress(OSError):
                self._beside(end).rename(aside.with_name(aside.name + end))
        logger.warning("%s is no store of Attributary: it is now %s, and a new store is made", self.path, aside.name)

    def _opened(self) -> sqlite3.Connection:
        db = self._connect()
        try:
            # Both hold for a file that has no tables yet, and change nothing in another one.
            db.execute(f"pragma page_size = {_PAGE_BYTES}")
            db.execute("pragma auto_vacuum = incremental")
            (n_tables,) = db.execute("select count(*) from sqlite_master").fetchone()
            if not n_tables:
                # Before WAL begins: afterwards it would be beside the file until a checkpoint, and a server that was
                # killed before that would leave a file that the next one does not know.
                db.execute(f"pragma application_id = {_APPLICATION}")
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")
            db.execute(f"pragma journal_size_limit = {self._wal_bytes}")
            db.execute(f"pragma wal_autocheckpoint = {self._wal_bytes // 2 // _PAGE_BYTES}")
            (version,) = db.execute("pragma user_version").fetchone()
            if not n_tables:
                db.executescript(_TABLES)
            elif version != _VERSION:
                raise _OtherVersionError(f"its tables are of version {version}, and this release reads {_VERSION}")
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
        for end in ("", *_BESIDE):
            self._beside(end).unlink(missing_ok=True)

    def _error(self, error: sqlite3.Error) -> StoreError:
        if _code(error) == sqlite3.SQLITE_FULL:
            return StoreFullError(
                f"serve.store: the disk of {self.path} is full: make room, or set serve.max_bytes to less and start "
                "again"
            )
        return StoreError(f"serve.store: {self.path}: {error}: check the disk, or set serve.store to another file")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection in a transaction; an error rolls it back.

        Raises
        ------
        StoreFullError
            The disk is full.
        DamagedError
            The file was found to be damaged, and has been made anew, empty.
        """
        with self._lock:
            try:
                self._writer.execute("begin immediate")
                try:
                    yield self._writer
                    self._writer.execute("commit")
                except BaseException:
                    with suppress(sqlite3.Error):
                        self._writer.execute("rollback")
                    raise
            except sqlite3.Error as error:
                raise self._judged(error, self.generation) from None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that reads a single snapshot of the file.

        Raise DamagedError as `writing` does.
        """
        with self._lock:
            generation = self.generation
            db = self._idle.pop() if self._idle else self._connect()
        try:
            db.execute("begin")
            try:
                yield db
            finally:
                with suppress(sqlite3.Error):
                    db.execute("rollback")
        except sqlite3.Error as error:
            db.close()
            raise self._judged(error, generation) from None
        with self._lock:
            if generation == self.generation and len(self._idle) < _IDLE_READERS:
                self._idle.append(db)
                return
        db.close()

    def _judged(self, error: sqlite3.Error, generation: int) -> StoreError:
        """Return the error to raise; replace a damaged file by an empty file."""
        if _code(error) not in _DAMAGED:
            return self._error(error)
        with self._lock:
            if generation == self.generation:
                logger.error("%s is damaged (%s): it is a cache, and read again from the topics", self.path, error)
                self._let_go()
                self._remove()
                self._writer = self._opened()
                self.generation += 1
        return DamagedError(str(error))

    def _let_go(self) -> None:
        for db in (*self._idle, self._writer):
            with suppress(sqlite3.Error):
                db.close()
        self._idle.clear()

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
            pages, free = (self._writer.execute(f"pragma {one}_count").fetchone()[0] for one in ("page", "freelist"))
        return pages, free

    def is_above(self, share: float) -> bool:
        """Return whether more than a share of the allowed bytes is in use."""
        n, free = self._pages()
        return (n - free) * _PAGE_BYTES > share * (self._max_bytes - 2 * self._wal_bytes)

    def shrink(self) -> None:
        """Give pages that are free back to the disk, where they are many."""
        n, free = self._pages()
        if free * 4 <= n and self.size() <= self._max_bytes:
            return
        for _ in range(0, free, _SHRUNK_AT_ONCE):
            with self._lock:
                # As a script: it gives one page back a step, and `execute` takes one step where there are no columns.
                self._writer.executescript(f"pragma incremental_vacuum({_SHRUNK_AT_ONCE})")
        with self._lock:
            self._writer.execute("pragma wal_checkpoint(truncate)").fetchall()

    def size(self) -> int:
        """Return the size of the file in bytes, with the files beside it."""
        total = 0
        for end in ("", *_BESIDE):
            with suppress(FileNotFoundError):
                total += self._beside(end).stat().st_size
        return total
