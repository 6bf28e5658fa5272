"""Hands what is new on to all pages that are open; one that reads too slowly holds up nobody and is let go."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson

from ..store.rows import Live

LONGEST_QUEUE = 1000
"""Events that may wait for one page; one that has more waiting is let go, and reads anew when it is back."""

MOST_STREAMS = 100
"""Pages that may be open."""


class Listener:
    """Holds what one page is still to be told.

    Parameters
    ----------
    model_id
        The one model that it asks for; None: all.
    """

    def __init__(self, model_id: str | None, longest: int) -> None:
        self._model_id = model_id
        self._longest = longest
        self._waiting: deque[Live] = deque()
        self._woken = asyncio.Event()
        self.is_over = False
        """Whether it is told nothing more: it was too slow, or the server ends."""

    def wants(self, event: Live) -> bool:
        """Return whether an event is of its model, or of none."""
        return self._model_id is None or event.model_id in ("", self._model_id)

    def put(self, event: Live) -> None:
        """Take an event, and be over where too many wait."""
        if self.is_over or not self.wants(event):
            return
        if len(self._waiting) >= self._longest:
            self.end()
            return
        self._waiting.append(event)
        self._woken.set()

    def end(self) -> None:
        """Be told nothing more."""
        self.is_over = True
        self._waiting.clear()
        self._woken.set()

    async def next(self, within_s: float) -> list[Live]:
        """Return all that waits, as soon as something does; empty after so many seconds, or where it is over."""
        try:
            async with asyncio.timeout(within_s):
                await self._woken.wait()
        except TimeoutError:
            return []
        found = list(self._waiting)
        self._waiting.clear()
        if not self.is_over:
            self._woken.clear()
        return found


class Feed:
    """Knows all who listen. It is called in the event loop alone.

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
        """Whether nobody more may listen."""
        return self._is_over or len(self._listeners) >= self.most

    @contextmanager
    def listener(self, model_id: str | None) -> Iterator[Listener]:
        """Give one who listens as long as the block lasts."""
        one = Listener(model_id, self.longest)
        self._listeners.add(one)
        try:
            yield one
        finally:
            self._listeners.discard(one)

    def publish(self, events: Sequence[Live]) -> None:
        """Tell all what is new."""
        for event in events:
            for one in self._listeners:
                one.put(event)

    def tell_broker(self, answers: bool, since_ms: int | None) -> None:
        """Tell all whether brokers answer; that has no id, and is not repeated to who was away."""
        data = orjson.dumps({"answers": answers, "since_ms": since_ms})
        self.publish([Live(0, "broker", "", data)])

    def end(self) -> None:
        """Let all streams end."""
        self._is_over = True
        for one in self._listeners:
            one.end()
