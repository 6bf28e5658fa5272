"""Finds changes, what belongs to them, and whether they are open."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from typing import Any

import orjson

from ..rows import StoredChange

CLOSED_BY = {
    "alarm": ("explanation", "not_confirmed"),
    "importance_shift": ("importance_shift_released",),
    "loss_shift": ("loss_shift_released",),
}
"""Kinds of events that are open until one of those kinds names them in `change_id`."""

_CLOSERS = tuple(kind for kinds in CLOSED_BY.values() for kind in kinds)
_IS_OPEN = " or ".join(
    f"(one.event = '{kind}' and not exists (select 1 from changes other where other.change_id = one.id "
    f"and other.event in ({', '.join(repr(closer) for closer in closers)})))"
    for kind, closers in CLOSED_BY.items()
)
_COLUMNS = f"one.id, one.model_id, one.t, one.observation, one.event, one.change_id, ({_IS_OPEN}), one.value"
_IN_TIME = "coalesce(one.t, 0), one.seq"
# Of one model they come in their order; of several it is by chance which one is read first.
_NEWEST = "coalesce(one.t, 0) desc, one.model_id, one.seq desc"


def _change(row: Any) -> StoredChange:
    change_id, model_id, t, observation, event, of, is_open, value = row
    return StoredChange(
        change_id, model_id, t, observation, of if event in _CLOSERS else None, bool(is_open), orjson.loads(value)
    )


def find_change(db: sqlite3.Connection, change_id: str) -> StoredChange | None:
    """Return a change by its id."""
    row = db.execute(f"select {_COLUMNS} from changes one where one.id = ?", (change_id,)).fetchone()
    return None if row is None else _change(row)


def find_changes(
    db: sqlite3.Connection,
    model_id: str | None,
    start_ms: int | None,
    end_ms: int | None,
    events: Collection[str],
    is_open: bool | None,
    last: int | None,
) -> list[StoredChange]:
    """Return changes, the newest first; see `Store.changes`."""
    where, values = _where(model_id, start_ms, end_ms, events)
    if is_open is not None:
        where += f" and {'' if is_open else 'not '}({_IS_OPEN})"
    limit = "" if last is None else f" limit {max(int(last), 0)}"
    rows = db.execute(f"select {_COLUMNS} from changes one where {where} order by {_NEWEST}{limit}", values)
    return [_change(row) for row in rows]


def count_changes(
    db: sqlite3.Connection, model_id: str | None, start_ms: int | None, end_ms: int | None, events: Collection[str]
) -> int:
    """Return how many there are."""
    where, values = _where(model_id, start_ms, end_ms, events)
    return int(db.execute(f"select count(*) from changes one where {where}", values).fetchone()[0])


def _where(
    model_id: str | None, start_ms: int | None, end_ms: int | None, events: Collection[str]
) -> tuple[str, list[Any]]:
    parts: Iterable[tuple[str, Any]] = (
        ("one.model_id = ?", model_id),
        ("one.t >= ?", start_ms),
        ("one.t <= ?", end_ms),
    )
    where = [text for text, value in parts if value is not None]
    values = [value for _, value in parts if value is not None]
    if events:
        where.append(f"one.event in ({', '.join('?' * len(events))})")
        values += events
    return " and ".join(where) or "1", values


def find_chain(db: sqlite3.Connection, change_id: str) -> list[StoredChange]:
    """Return what belongs to a change in the order of time: what names it or what it names, and the change itself."""
    found = db.execute("select coalesce(change_id, id) from changes where id = ?", (change_id,)).fetchone()
    if found is None:
        return []
    rows = db.execute(
        f"select {_COLUMNS} from changes one where one.id = ? or one.change_id = ? order by {_IN_TIME}",
        (found[0], found[0]),
    )
    return [_change(row) for row in rows]
