"""State that all requests are answered from."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fastapi import Request

from ...config.settings import Config
from ..answers.health import Health, WebhookCount
from ..reading.reading import ReadingState
from ..store.store import Store
from .feed import Feed


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
