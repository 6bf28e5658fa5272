"""Writes incidents, statuses, dead letters and partial dependences."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from attributary_topics import IncidentEvent, InvalidRecordError, ModelGuard, read_time

from ..asking.incidents import find_incident
from ..rows import Arrived, StoredIncident
from .parsing import MOST_TEXT, count_of, text_of

HOUR_MS = 3_600_000
KEPT_LETTER_IDS = 200_000
"""Dead letters by whose ids one that comes twice is known."""

_GUARD = TypeAdapter(ModelGuard | None)
_INCIDENT = TypeAdapter(IncidentEvent)
_REVISED = ("revision", "t", "begun", "since", "observation", "is_open", "brief", "value")


def take_incident(db: sqlite3.Connection, record: Arrived) -> StoredIncident | None:
    """Write a revision of an incident; return it, or None where the store has it, or a newer one, already."""
    value = orjson.dumps(record.event)
    try:
        event = _INCIDENT.validate_json(value, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "value"
        raise InvalidRecordError("wrong_type", name, first["msg"], None) from None
    is_open = event.life in ("suspected", "confirmed")
    row = (
        *(text_of(record.event, "id"), record.model_id, count_of(record.event, "revision")),
        *(record.time_ms, _begun_ms(event, record.time_ms), count_of(record.event["since"], "observation")),
        *(count_of(record.event, "observation"), is_open, orjson.dumps(_brief(record.event)), value),
    )
    written = db.execute(
        f"insert into incidents (id, model_id, {', '.join(_REVISED)}) values (?, ?{', ?' * len(_REVISED)}) "
        f"on conflict (id) do update set {', '.join(f'{name} = excluded.{name}' for name in _REVISED)} "
        "where excluded.revision > incidents.revision and excluded.model_id = incidents.model_id",
        row,
    )
    return find_incident(db, event.id) if written.rowcount > 0 else None


def _brief(event: Mapping[str, Any]) -> dict[str, Any]:
    explanation = event["explanation"] and {"threshold": event["explanation"]["threshold"]}
    features = dict.fromkeys(event["features"])
    return {**event, "features": features, "effects": [], "evidence": [], "explanation": explanation}


def _begun_ms(event: IncidentEvent, time_ms: int | None) -> int | None:
    """Return when an incident began; without times, as a replay's events are, nothing has one."""
    if time_ms is None or event.since.time is None:
        return time_ms
    try:
        return max(read_time(event.since.time), 0)
    except ValueError:
        raise InvalidRecordError("wrong_type", "since.time", "a time or null", None) from None


def take_status(db: sqlite3.Connection, record: Arrived) -> bool:
    """Write a status; return whether it says something new. One without a value takes all back."""
    if not record.event:
        return db.execute("delete from statuses where model_id = ?", (record.model_id,)).rowcount > 0
    text_of(record.event, "state")
    part = count_of(record.event, "partition")
    try:
        _GUARD.validate_python(record.event.get("guard"))
    except ValidationError:
        raise InvalidRecordError("wrong_type", "guard", "a guard", None) from None
    value = orjson.dumps(record.event)
    found = db.execute(
        "select t, value from statuses where model_id = ? and part = ?", (record.model_id, part)
    ).fetchone()
    if found is not None and found[0] is not None and record.time_ms is not None and record.time_ms < found[0]:
        return False
    db.execute("insert or replace into statuses values (?, ?, ?, ?)", (record.model_id, part, record.time_ms, value))
    return found is None or found[1] != value


def take_dependence(db: sqlite3.Connection, record: Arrived) -> bool:
    """Write a partial dependence where it is the latest of its feature; return whether it is."""
    event = record.event
    label = event.get("label")
    if not isinstance(label, str | int | float | None):
        raise InvalidRecordError("wrong_type", "label", "a label or null", None)
    for name in ("values", "mean", "half_width"):
        if not isinstance(event.get(name), list):
            raise InvalidRecordError("wrong_type", name, "a list", None)
    key = record.model_id, text_of(event, "explainer"), text_of(event, "feature"), orjson.dumps(label).decode()
    found = db.execute(
        "select t, observation from dependences where model_id = ? and explainer = ? and feature = ? and label = ?", key
    ).fetchone()
    now = record.time_ms or 0, count_of(event, "observation")
    if found is not None and now <= (found[0] or 0, found[1]):
        return False
    db.execute(
        "insert or replace into dependences values (?, ?, ?, ?, ?, ?, ?)",
        (*key, record.time_ms, now[1], orjson.dumps(event)),
    )
    return True


class Letters:
    """Counts dead letters in the transaction that is open; `flush` writes the counts of many at once."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget what is not written: the transaction has failed."""
        self._counts: dict[tuple[str, str, str, int], list[int]] = {}
        self.n_new: dict[str, int] = defaultdict(int)
        """New dead letters by model, since `told` was called last."""

    def take(self, db: sqlite3.Connection, record: Arrived) -> bool:
        """Count a dead letter; return whether it is new."""
        reason, stage = text_of(record.event, "reason"), text_of(record.event, "stage")
        number = int.from_bytes(hashlib.blake2b(record.id.encode(), digest_size=8).digest(), "big", signed=True)
        (seq,) = db.execute("select coalesce(max(seq), 0) + 1 from letter_ids").fetchone()
        if db.execute("insert or ignore into letter_ids values (?, ?)", (number, seq)).rowcount < 1:
            return False
        if seq % 1000 == 0:
            db.execute("delete from letter_ids where seq <= ?", (seq - KEPT_LETTER_IDS,))
        t = record.time_ms or 0
        key = record.model_id[:MOST_TEXT], reason, stage, t // HOUR_MS
        found = self._counts.setdefault(key, [0, t, t])
        found[0], found[1], found[2] = found[0] + 1, min(found[1], t), max(found[2], t)
        self.n_new[record.model_id] += 1
        return True

    def flush(self, db: sqlite3.Connection) -> None:
        """Write the counts."""
        db.executemany(
            "insert into letters values (?, ?, ?, ?, ?, ?, ?) on conflict do update set n = n + excluded.n, "
            "first_ms = min(first_ms, excluded.first_ms), last_ms = max(last_ms, excluded.last_ms)",
            [(*key, *counts) for key, counts in self._counts.items()],
        )
        self._counts.clear()
