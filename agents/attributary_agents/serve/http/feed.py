"""Live feed of new events to all open pages.

A page that reads too slowly holds up nobody, and is let go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

import orjson

from ..store.rows import Live

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
