"""State that all requests are answered from, and the feed of live events."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import orjson
from fastapi import Request

from ...config.settings import Config
from ..answers import Health, WebhookCount
from ..reading import ReadingState
from ..store.rows import Live
from ..store.store import Store

LONGEST_QUEUE = 1000
"""Events that may wait for one page. For more it is told to load anew; one that takes not even that is let go."""

MOST_STREAMS = 100
"""Pages that may be open."""


class Listener:
    """Queue of the events that a page has not been told yet.

    Parameters
    ----------
    model_id
        The one model that it asks for; None: all.
    """

    def __init__(self, model_id: str | None, longest: int) -> None:
        self._model_id = model_id
        self._longest = longest
        self._waiting: deque[Live] = deque()
        self._is_to_load = False
        self._woken = asyncio.Event()
        self.is_over = False
        """Whether it is told nothing more: it was too slow, or the server ends."""

    def wants(self, event: Live) -> bool:
        """Return whether an event is of the listener's model, or of no model."""
        return self._model_id is None or event.model_id in ("", self._model_id)

    def put(self, events: Sequence[Live]) -> None:
        """Take events, or a reload in their place where too many wait.

        End where even the reload was not fetched before the next overflow.
        """
        wanted = [event for event in events if self.wants(event)]
        if self.is_over or not wanted:
            return
        if len(self._waiting) + len(wanted) > self._longest:
            if self._is_to_load:
                self.end()
                return
            self._waiting.clear()
            wanted, self._is_to_load = [Live(max(event.id for event in events), "reload", "", b"{}")], True
        self._waiting.extend(wanted)
        self._woken.set()

    def end(self) -> None:
        """End the stream of this listener."""
        self.is_over = True
        self._waiting.clear()
        self._woken.set()

    async def next(self, within_s: float) -> list[Live]:
        """Wait for events and return all that are queued.

        Empty when the seconds have passed without one, or where the listener has ended.
        """
        try:
            async with asyncio.timeout(within_s):
                await self._woken.wait()
        except TimeoutError:
            return []
        found = list(self._waiting)
        self._waiting.clear()
        self._is_to_load = False
        if not self.is_over:
            self._woken.clear()
        return found


class Feed:
    """Feed of live events to all listeners.

    It is called in the event loop alone.

    Parameters
    ----------
    longest
        Events that may wait for one of them.
    most
        How many may listen.
    """

    def __init__(self, longest: int = LONGEST_QUEUE, most: int = MOST_STREAMS) -> None:
        self.longest, self.most = longest, most
        self._listeners: set[Listener] = set()
        self._is_over = False

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def is_full(self) -> bool:
        """Whether no further listener is let in."""
        return self._is_over or len(self._listeners) >= self.most

    def listen(self, model_id: str | None) -> Listener:
        """Return a new listener, which hears events until it is forgotten."""
        one = Listener(model_id, self.longest)
        self._listeners.add(one)
        return one

    def forget(self, one: Listener) -> None:
        """Remove a listener."""
        self._listeners.discard(one)

    def publish(self, events: Sequence[Live]) -> None:
        """Tell all listeners about new events."""
        for one in self._listeners.copy():
            one.put(events)
            if one.is_over:
                self.forget(one)

    def tell_broker(self, answers: bool, since_ms: int | None) -> None:
        """Tell all listeners whether brokers answer.

        Such an event has no id, and is not repeated to a page that was away.
        """
        data = orjson.dumps({"answers": answers, "since_ms": since_ms})
        self.publish([Live(0, "broker", "", data)])

    def end(self) -> None:
        """End all streams."""
        self._is_over = True
        for one in self._listeners:
            one.end()


@dataclass(frozen=True)
class Site:
    """Store, reading state, listeners and request counts of a server.

    Attributes
    ----------
    reading
        Returns how far the topics are read.
    build
        Version of Attributary and of the page's files: a page of another build loads itself anew.
    webhooks
        Returns what became of the events for each webhook.
    now_ms
        Milliseconds since the epoch.
    requests
        Class of the route and status to how many there were.
    """

    config: Config
    store: Store
    reading: Callable[[], ReadingState]
    build: str
    webhooks: Callable[[], Sequence[WebhookCount]] = list
    feed: Feed = field(default_factory=Feed)
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    requests: Counter[tuple[str, int]] = field(default_factory=Counter)

    def health(self) -> Health:
        """Return the health of the server."""
        reading = self.reading()
        return Health(
            build=self.build,
            position=self.store.position,
            broker=reading.broker,
            broker_since_ms=reading.broker_since_ms,
            is_reading_past=reading.is_reading_past,
            read_share=reading.read_share,
            last_event_ms=reading.last_event_ms or self.store.seen_ms,  # of the server before this one
            importances_topic=self.config.kafka.topics.importances,
            webhooks=list(self.webhooks()),
            fault=reading.fault,
        )


def site_of(request: Request) -> Site:
    """Return the site that a request is answered from."""
    site = request.app.state.site
    assert isinstance(site, Site)
    return site
