"""Reads incidents from their topic, for the command line."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

from attributary_topics import InvalidRecordError, decode_json

from ...config.settings import Config
from ..reading import topic_reader

OPEN = ("suspected", "confirmed")
"""Values of the field `life` of an incident that is open."""

_NEEDED = {"id", "life", "severity", "since", "sentence"}


async def read_incidents(
    config: Config,
    model_id: str | None = None,
    last: int | None = None,
    *,
    only_open: bool = False,
    revisions: bool = False,
    follow: bool = False,
    told: Callable[[int], None] = lambda _: None,
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield each incident's newest revision, the oldest incident first.

    With `follow`, later revisions come as they arrive. A revision comes once, though the topic may have it twice after
    a crash, with `time` of its headers.

    Parameters
    ----------
    model_id
        Yield incidents of this model only.
    last
        Yield at most this many incidents of those that there are.
    only_open
        Leave out incidents that are over or withdrawn, of those that there are.
    revisions
        Yield all revisions of an incident, one after the other.
    follow
        Whether to go on with each revision as it comes, for ever.
    told
        Called with the number of incidents that there are, when they have been yielded.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    seen: set[str] = set()
    found: list[Any] = []
    async with topic_reader(config.kafka, config.kafka.topics.incidents) as reader:
        async for batch in reader.present():
            found += [record for record in batch if model_id in (None, _key(record))]
        found.sort(key=lambda record: (record.partition, record.offset))
        known: dict[str, list[dict[str, Any]]] = {}
        for event in _events(found, seen):
            known.setdefault(event["id"], []).append(event)
        incidents = [one for one in known.values() if not only_open or one[-1]["life"] in OPEN]
        incidents.sort(key=lambda one: onset_time(one[-1]) or "")
        incidents = incidents if last is None else incidents[-last:]
        for incident in incidents:
            for event in incident if revisions else incident[-1:]:
                yield event
        told(len(incidents))
        if follow:
            async for batch in reader.to_come():
                for event in _events([record for record in batch if model_id in (None, _key(record))], seen):
                    yield event


def onset_time(event: dict[str, Any]) -> str | None:
    """Return when an incident began, or its event's time if not known."""
    time: str | None = event["since"]["time"] or event["time"]
    return time


def _key(record: Any) -> str:
    return (record.key or b"").decode(errors="replace")


def _events(records: list[Any], seen: set[str]) -> list[dict[str, Any]]:
    """Return the events of incidents that have not been seen.

    Records that are no incident were written by somebody else, and are passed over.
    """
    events = []
    for record in records:
        headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
        event_id = headers.get("ce_id", f"{record.topic}:{record.partition}:{record.offset}")
        try:
            event = decode_json(record.value or b"")
        except InvalidRecordError:
            continue
        if event_id not in seen and isinstance(event, dict) and event.keys() >= _NEEDED:
            seen.add(event_id)
            events.append({**event, "time": headers.get("ce_time")})
    return events
