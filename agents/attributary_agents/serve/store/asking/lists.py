"""Looks up lists of names by their ids."""

from __future__ import annotations

import sqlite3

import orjson

_KEPT = 1_000_000  # names of all lists together


class Lists:
    """Remembers lists of names; a list never changes, and its id is not given to another one while it is used."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, ...]] = {}
        self._n_names = 0

    def names(self, db: sqlite3.Connection, list_id: int) -> tuple[str, ...]:
        """Return the names of a list, in the order of their code points."""
        if (known := self._known.get(list_id)) is not None:
            return known
        (text,) = db.execute("select names from lists where id = ?", (list_id,)).fetchone()
        names = tuple(orjson.loads(text))
        if self._n_names + len(names) > _KEPT:
            self.forget()
        self._known[list_id] = names
        self._n_names += len(names) + 1
        return names

    def forget(self) -> None:
        """Forget all: ids are given anew."""
        self._known.clear()
        self._n_names = 0
