"""Reads change events from their topic, for the command line."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection
from typing import Any

from attributary_topics import decode_json

from ...config.settings import Config
from ..reading import topic_reader


async def read_changes(
    config: Config,
    model_id: str | None = None,
    last: int | None = None,
    kinds: Collection[str] = (),
    *,
    follow: bool = False,
    told: Callable[[int], None] = lambda _: None,
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the change events that there are in the order of their times, then those to come as they come.

    An event comes once, though the topic may have it twice after a crash, with `id` and `time` of its headers.

    Parameters
    ----------
    model_id
        Yield events of this model only.
    last
        Yield at most this many of those that there are.
    kinds
        Values of the field `event`: yield events of these only; none for all.
    follow
        Whether to go on with those to come, for ever.
    told
        Called with the number of events that there are, when they have been yielded.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    seen: set[str] = set()
    found: list[Any] = []
    async with topic_reader(config.kafka, config.kafka.topics.changes) as reader:
        async for batch in reader.present():
            found += [record for record in batch if model_id in (None, _key(record))]
        found.sort(key=lambda record: (record.partition, record.offset))
        events = _events(found, seen, kinds)
        events.sort(key=lambda event: event["time"] or "")  # the observations' own
        for event in deque(events, maxlen=last):
            yield event
        told(len(events))
        if follow:
            async for batch in reader.to_come():
                for event in _events([record for record in batch if model_id in (None, _key(record))], seen, kinds):
                    yield event


def _key(record: Any) -> str:
    return (record.key or b"").decode(errors="replace")


def _events(records: list[Any], seen: set[str], kinds: Collection[str]) -> list[dict[str, Any]]:
    events = []
    for record in records:
        headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
        if (event_id := headers.get("ce_id", f"{record.topic}:{record.partition}:{record.offset}")) not in seen:
            seen.add(event_id)
            ours = {"id": event_id, "time": headers.get("ce_time")}
            events.append({**ours, **decode_json(record.value), **ours})
    return [event for event in events if not kinds or event.get("event") in kinds]
