"""Records made of events, and their delivery to a Kafka client."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from inspect import iscoroutine
from typing import Protocol

from attributary_topics import IncidentEvent, Place, ShardImportance, Topics, encode_json, event_headers

from .events import Event


class Publisher(Protocol):
    """A function that sends a record, by Kafka or in any other way."""

    def __call__(self, topic: str, key: bytes, value: bytes, headers: list[tuple[str, bytes]], /) -> object:  # noqa: D102
        ...


Published = tuple[str, bytes, bytes, list[tuple[str, bytes]]]
"""Topic, key, value and headers of a record."""

OUTCOMES = ("published", "failed", "dropped")
"""What can become of an event."""

MOST_EVENTS = 10_000
"""Events that wait for a publisher at most; the oldest give way."""


def record_of(event: Event, topics: Topics, shards: str, place: Place, timestamp_ms: int, n: int) -> Published:
    """Return the record of an event, the n-th of its observation.

    What a shard says goes to the topic `shards`.
    """
    if isinstance(event, IncidentEvent):
        kind, topic = "incident", topics.incidents
    elif isinstance(event, ShardImportance):
        kind, topic = "shard", shards
    else:
        kind, topic = "importance", topics.importances
    headers = event_headers(kind, event.model_id, place, timestamp_ms, n)
    return topic, event.model_id.encode(), encode_json(event), headers


class Outbox:
    """Keeps the records of events until the publisher has taken them.

    `count` counts an event of a model by what became of it; `fail` tells of what the publisher has raised.
    """

    def __init__(self, count: Callable[[str, str], None], fail: Callable[[str, Exception], None]) -> None:
        self.publisher: Publisher | None = None
        self._count, self._fail = count, fail
        self._waiting: deque[tuple[str, Published]] = deque()
        self._publishing = threading.Lock()
        self._by: int | None = None

    def put(self, model_id: str, record: Published) -> None:
        """Keep a record; where too many wait, the oldest is dropped."""
        self._waiting.append((model_id, record))
        while len(self._waiting) > MOST_EVENTS:
            self._count(self._waiting.popleft()[0], "dropped")

    def publish(self) -> None:
        """Give the publisher the waiting events, then any it causes itself."""
        if self.publisher is None or self._by == threading.get_ident():
            return
        with self._publishing:
            self._by = threading.get_ident()
            try:
                while self._waiting and self.publisher is not None:
                    self._publish_next(self.publisher)
            finally:
                self._by = None

    def _publish_next(self, publisher: Publisher) -> None:
        try:
            model_id, record = self._waiting.popleft()
        except IndexError:  # dropped meanwhile
            return
        try:
            _send(publisher, record)
        except Exception as error:  # noqa: BLE001 - a publisher is the user's code
            self._count(model_id, "failed")
            self._fail(model_id, error)
        else:
            self._count(model_id, "published")

    def snapshot(self) -> list[tuple[str, Published]]:
        """Return plain data to restore from."""
        return list(self._waiting)

    def restore(self, snapshot: Iterable[tuple[str, Published]]) -> None:
        """Restore the state from a snapshot."""
        self._waiting = deque(snapshot)


def _send(publisher: Publisher, record: Published) -> None:
    sent = publisher(*record)
    if iscoroutine(sent):
        sent.close()
        raise TypeError("the publisher returns a coroutine, which nobody awaits")
