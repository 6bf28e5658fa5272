"""Finds incidents, each as its newest revision says."""

from __future__ import annotations

import sqlite3
from typing import Any

import orjson

from ..rows import StoredIncident

_COLUMNS = "id, model_id, t, begun, observation, is_open"
# Of one model they come in their order; of several it is by chance which one is read first.
_NEWEST = "coalesce(begun, 0) desc, model_id, since desc, seq desc"


def _incident(row: Any) -> StoredIncident:
    incident_id, model_id, t, begun, observation, is_open, value = row
    return StoredIncident(incident_id, model_id, t, begun, observation, bool(is_open), orjson.loads(value))


def find_incident(db: sqlite3.Connection, incident_id: str) -> StoredIncident | None:
    """Return an incident by its id."""
    row = db.execute(f"select {_COLUMNS}, value from incidents where id = ?", (incident_id,)).fetchone()
    return None if row is None else _incident(row)


def find_incidents(
    db: sqlite3.Connection,
    model_id: str | None,
    start_ms: int | None,
    end_ms: int | None,
    is_open: bool | None,
    last: int | None,
) -> list[StoredIncident]:
    """Return incidents, those first that began last; see `Store.incidents`."""
    where, values = _where(model_id, start_ms, end_ms, is_open)
    limit = "" if last is None else f" limit {max(int(last), 0)}"
    rows = db.execute(f"select {_COLUMNS}, brief from incidents where {where} order by {_NEWEST}{limit}", values)
    return [_incident(row) for row in rows]


def count_incidents(
    db: sqlite3.Connection, model_id: str | None, start_ms: int | None, end_ms: int | None, is_open: bool | None
) -> int:
    """Return how many there are."""
    where, values = _where(model_id, start_ms, end_ms, is_open)
    return int(db.execute(f"select count(*) from incidents where {where}", values).fetchone()[0])


def _where(
    model_id: str | None, start_ms: int | None, end_ms: int | None, is_open: bool | None
) -> tuple[str, list[Any]]:
    parts = (
        ("model_id = ?", model_id),
        ("(is_open or t >= ?)", start_ms),
        ("begun <= ?", end_ms),
        ("is_open = ?", is_open),
    )
    where = [text for text, value in parts if value is not None]
    return " and ".join(where) or "1", [value for _, value in parts if value is not None]
