"""Keeps the feed of live events: ids that grow by one over restarts, and the last events."""

from __future__ import annotations

import sqlite3
import time

from ..rows import Live

KEPT = 10_000
"""Live events that are kept for pages that come back."""


class Feed:
    """Writes live events; whoever writes the store holds it.

    Parameters
    ----------
    max_bytes
        Bytes that the events which are kept may take together, about.
    """

    def __init__(self, db: sqlite3.Connection, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.begin(db)

    def begin(self, db: sqlite3.Connection) -> None:
        """Go on where the feed of the file ends; a new one begins at the time, so that no id comes twice."""
        found = db.execute("select value from meta where name = 'live'").fetchone()
        self.last_id = int(time.time() * 1000) if found is None else int(found[0])
        """Id of the last event; before there is one, that which comes before the first."""
        self._first_kept, size = db.execute(
            "select coalesce(min(id), ?), coalesce(sum(length(data)), 0) from live", (self.last_id + 1,)
        ).fetchone()
        self._bytes = int(size)

    def add(self, db: sqlite3.Connection, events: list[tuple[str, str, bytes]]) -> list[Live]:
        """Write events - kind, model id, data - in the transaction that is open, and return them."""
        made = [Live(self.last_id + n, *event) for n, event in enumerate(events, start=1)]
        if not made:
            return []
        db.executemany(
            "insert into live values (?, ?, ?, ?)", [(one.id, one.event, one.model_id, one.data) for one in made]
        )
        db.execute("insert or ignore into meta values ('live-begin', ?)", (self.last_id,))
        self.last_id = made[-1].id
        self._bytes += sum(len(one.data) for one in made)
        db.execute("insert or replace into meta values ('live', ?)", (self.last_id,))
        while self._drop(db):
            pass
        return made

    def _drop(self, db: sqlite3.Connection) -> bool:
        """Drop what is too many, or a quarter where it is too much, the oldest first; return whether that was so."""
        upto = self.last_id - KEPT
        n = self.last_id - self._first_kept + 1
        if self._bytes > self._max_bytes and n > 1:
            upto = max(upto, self._first_kept - 1 + max(n // 4, 1))
        if upto < self._first_kept:
            return False
        (size,) = db.execute("select coalesce(sum(length(data)), 0) from live where id <= ?", (upto,)).fetchone()
        db.execute("delete from live where id <= ?", (upto,))
        self._bytes -= int(size)
        self._first_kept = upto + 1
        return True


def position(db: sqlite3.Connection) -> int:
    """Return the id of the latest live event; 0 before there is one."""
    found = db.execute("select value from meta where name = 'live'").fetchone()
    return 0 if found is None else int(found[0])


def live(db: sqlite3.Connection, after: int, last: int) -> list[Live] | None:
    """Return live events behind an id; None where the first of them is not kept any more, or the id is none of ours."""
    end = position(db)
    if after == end:
        return []
    (first,) = db.execute("select min(id) from live").fetchone()
    (begin,) = db.execute("select coalesce(max(value), 0) from meta where name = 'live-begin'").fetchone()
    if after == 0 and first is not None and first == begin + 1:
        after = begin
    if first is None or not first - 1 <= after < end or end - after > last:
        return None
    return [
        Live(*row)
        for row in db.execute("select id, event, model_id, data from live where id > ? order by id", (after,))
    ]
