"""Importances and incidents, read from their topics."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from attributary_topics import InvalidRecordError, decode_json

from ..config.settings import Config
from .readers import topic_reader

STEP = 200
"""Offsets at the end of each partition in which importances are looked for first."""

MOST = 200_000
"""Offsets at the end of each partition beyond which no importances are looked for."""

OPEN = ("suspected", "confirmed")
"""Values of the field `life` of an incident that is open."""

_LATELY = 10_000  # ids of events that are known, so that one comes once
_OF_IMPORTANCE = {"explainer", "features"}
_OF_INCIDENT = {"id", "life", "severity", "since", "sentence"}


def _decoded(
    records: list[Any], needed: set[str], seen: dict[str, None]
) -> Iterator[tuple[str, str | None, bytes, dict[str, Any]]]:
    """Yield id, time, value and event of records with unseen events.

    Records without the needed fields are somebody else's. The topic may have an event twice after a crash.
    """
    for record in records:
        headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
        event_id = headers.get("ce_id", f"{record.topic}:{record.partition}:{record.offset}")
        try:
            event = decode_json(record.value or b"")
        except InvalidRecordError:
            continue
        if event_id not in seen and isinstance(event, dict) and event.keys() >= needed:
            seen[event_id] = None
            if len(seen) > _LATELY:
                del seen[next(iter(seen))]
            yield event_id, headers.get("ce_time"), record.value, event


@dataclass(frozen=True)
class ReadImportance:
    """An importance event as the topic has it.

    Attributes
    ----------
    raw
        The record's value, unaltered.
    """

    id: str
    time: str | None
    raw: bytes
    event: dict[str, Any]

    @property
    def explainer(self) -> str:
        """Name of the explainer."""
        return str(self.event["explainer"])


Latest = tuple[ReadImportance, ReadImportance | None]
"""An event, and the one of the same explainer before it; None where that is not known."""


async def read_importances(
    config: Config,
    model_id: str,
    *,
    follow: bool = False,
    told: Callable[[int], None] = lambda _: None,
    away: Callable[[bool], None] = lambda _: None,
) -> AsyncGenerator[Latest]:
    """Yield the latest importance event of each explainer of a model.

    With `follow`, later events come as they arrive. It reads from the end backwards until it has two of each configured
    explainer, so that it is quick where the topic is long; from `MOST` offsets before the end on it looks no further.
    An event comes once, though the topic may have it twice after a crash.

    Parameters
    ----------
    follow
        Whether to go on with those to come, for ever.
    told
        Called with the number of explainers of which there is an event, when these have been yielded.
    away
        Called with True where brokers do not answer any more while it goes on, and with False when they do again.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    model = config.find(model_id)
    wanted = () if model is None else model.explainers.of_importance
    key, found, on = model_id.encode(), list[Any](), set[int]()

    def of_model(records: list[Any]) -> list[Any]:
        return [record for record in records if record.key == key]

    def is_enough() -> bool:
        events = _importances(found, {})
        return all(sum(one.explainer == name for one in events) > 1 for name in wanted)

    async with topic_reader(config.kafka, config.kafka.topics.importances) as reader:
        # All events of a model are on one partition, that of its id.
        async with aclosing(reader.backwards(STEP, MOST, lambda n: not on or n in on)) as blocks:
            async for records in blocks:
                found = of_model(records) + found
                on.update(record.partition for record in found)
                if is_enough():
                    break
        found.sort(key=lambda record: (record.timestamp, record.partition, record.offset))
        seen: dict[str, None] = {}
        last: dict[str, Latest] = {}
        for one in _importances(found, seen):
            last[one.explainer] = one, last[one.explainer][0] if one.explainer in last else None
        for name in sorted(last, key=lambda name: (name not in wanted, name)):
            yield last[name]
        told(len(last))
        if follow:
            async for batch in reader.to_come(away):
                for one in _importances(of_model(batch), seen):
                    last[one.explainer] = one, last[one.explainer][0] if one.explainer in last else None
                    yield last[one.explainer]


def _importances(records: list[Any], seen: dict[str, None]) -> list[ReadImportance]:
    return [ReadImportance(*decoded) for decoded in _decoded(records, _OF_IMPORTANCE, seen)]


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
    seen: dict[str, None] = {}
    found: list[Any] = []
    async with topic_reader(config.kafka, config.kafka.topics.incidents) as reader:
        async for batch in reader.present():
            found += [record for record in batch if model_id in (None, _key(record))]
        found.sort(key=lambda record: (record.partition, record.offset))
        known: dict[str, list[dict[str, Any]]] = {}
        for event in _incidents(found, seen):
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
                for event in _incidents([record for record in batch if model_id in (None, _key(record))], seen):
                    yield event


def onset_time(event: dict[str, Any]) -> str | None:
    """Return when an incident began, or its event's time if not known."""
    time: str | None = event["since"]["time"] or event["time"]
    return time


def _key(record: Any) -> str:
    return (record.key or b"").decode(errors="replace")


def _incidents(records: list[Any], seen: dict[str, None]) -> list[dict[str, Any]]:
    return [{**event, "time": time} for _, time, _, event in _decoded(records, _OF_INCIDENT, seen)]
