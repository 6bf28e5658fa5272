"""Decoding of the output topics' records: model, time and event."""

from __future__ import annotations

from typing import Any

from attributary_topics import InvalidRecordError, Topics, decode_dead_letter, decode_json, read_time

from ..store.rows import Arrived, Kind

_LATEST_MS = 253_402_300_799_999  # the end of the year 9999


def kinds_of(topics: Topics) -> dict[str, Kind]:
    """Return the topics that are read, each with the kind of its records."""
    return {
        topics.importances: "importance",
        topics.incidents: "incident",
        topics.dead_letters: "dead_letter",
        topics.status: "status",
    }


def arrived(record: Any, kind: Kind) -> Arrived:
    """Return a record in the form that the store takes.

    Raises
    ------
    InvalidRecordError
        It is none that workers write.
    """
    place = int(record.partition), int(record.offset)
    model_id = (record.key or b"").decode("utf-8", "replace")
    if kind == "dead_letter":
        letter = decode_dead_letter(record.key, None, record.headers)
        # When it became one: the original may be of any time.
        return Arrived(
            kind, *place, letter.id, model_id, _sane(record.timestamp), {"reason": letter.reason, "stage": letter.stage}
        )
    if kind == "status":
        event = {} if record.value is None else _object(record.value)
        return Arrived(kind, *place, model_id, model_id, _sane(record.timestamp), event)
    headers = {name: value for name, value in record.headers if name in ("ce_id", "ce_time")}
    event_id = (headers.get("ce_id") or b"").decode("utf-8", "replace")
    event_id = event_id or f"{record.topic}:{record.partition}:{record.offset}"
    time_ms = _time(headers.get("ce_time"))
    return Arrived(
        kind,
        *place,
        event_id,
        model_id,
        _sane(record.timestamp) if time_ms is None else time_ms,
        _object(record.value or b""),
    )


def _object(value: bytes) -> dict[str, Any]:
    event = decode_json(value)
    if not isinstance(event, dict):
        raise InvalidRecordError("wrong_type", "value", "an object", value)
    return event


def _time(value: bytes | None) -> int | None:
    try:
        return None if value is None else _sane(read_time(value.decode("utf-8", "replace")))
    except ValueError:
        return None


def _sane(time_ms: Any) -> int | None:
    return time_ms if isinstance(time_ms, int) and 0 <= time_ms <= _LATEST_MS else None
