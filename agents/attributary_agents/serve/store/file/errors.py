"""Tells apart what can go wrong with a file of SQLite."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ....errors import StoreError

_FULL = (sqlite3.SQLITE_FULL,)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_PRIMARY = 0xFF


class StoreFullError(StoreError):
    """The disk is full: what was to be written is not in the store, and can be written again."""


def code_of(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code of an error."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & _PRIMARY


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the file has been found to be damaged."""
    return code_of(error) in _DAMAGED


def store_error(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the error that says what is wrong in one line."""
    if code_of(error) in _FULL:
        return StoreFullError(
            f"serve.store: the disk of {path} is full: make room, or set serve.max_bytes to less and start again"
        )
    return StoreError(f"serve.store: {path}: {error}: check the disk, or set serve.store to another file")
