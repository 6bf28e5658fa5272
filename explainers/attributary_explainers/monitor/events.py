"""Makes of events what a client of Kafka sends."""

from __future__ import annotations

from typing import Protocol

from attributary_topics import ChangeEvent, Place, ShardImportance, Topics, encode_json, event_headers

from .telling.following import Event


class Publisher(Protocol):
    """Sends a record: whatever client of Kafka a service has, or anything else that takes the four."""

    def __call__(self, topic: str, key: bytes, value: bytes, headers: list[tuple[str, bytes]], /) -> object:  # noqa: D102
        ...


Published = tuple[str, bytes, bytes, list[tuple[str, bytes]]]
"""Topic, key, value and headers of a record."""


def record_of(event: Event, topics: Topics, shards: str, place: Place, timestamp_ms: int, n: int) -> Published:
    """Return the record of an event.

    Parameters
    ----------
    topics, shards
        Names of the topics, and of that of what shards say.
    place, timestamp_ms
        Place and time of the observation that it follows from.
    n
        Number of the event among those of the same observation.
    """
    if isinstance(event, ChangeEvent):
        kind, topic = "change", topics.changes
    elif isinstance(event, ShardImportance):
        kind, topic = "shard", shards
    else:
        kind, topic = "importance", topics.importances
    headers = event_headers(kind, event.model_id, place, timestamp_ms, n)
    return topic, event.model_id.encode(), encode_json(event), headers
