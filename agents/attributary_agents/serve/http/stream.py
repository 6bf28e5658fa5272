"""Server-sent events for open pages: new events, and missed events.

A page that was away is sent again the events that it has missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ..store.rows import Live
from .errors import ProblemError
from .parameters import LONGEST_ID, only_known
from .site import Listener, Site, site_of

QUIET_S = 15.0
"""Seconds without an event after which a comment says that the stream is alive."""

router = APIRouter()


@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events, without end: hello, importance, incident, status, dead_letter_counts, "
            "gone, reload, broker.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
    dependencies=[Depends(only_known)],
)
async def stream(
    request: Request,
    model: Annotated[str | None, Query(max_length=LONGEST_ID, description="Of this model alone.")] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="The last event that was received: what came since is repeated.")
    ] = None,
) -> StreamingResponse:
    """Stream what is new, as it comes."""
    site = site_of(request)
    if site.feed.is_full:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"{len(site.feed)} streams are open already",
            "close other pages, or ask again in some seconds",
            {"Retry-After": "10"},
        )
    return _Stream(site, site.feed.listen(model), last_event_id)


class _Stream(StreamingResponse):
    """Streaming response that ends with its listener.

    The system cuts off a client that takes nothing.
    """

    def __init__(self, site: Site, listener: Listener, last: str | None) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(_events(site, listener, last), media_type="text/event-stream", headers=headers)
        self._feed, self._listener = site.feed, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.forget(self._listener)


async def _events(site: Site, listener: Listener, last: str | None) -> AsyncIterator[bytes]:
    position = site.store.position
    yield b"retry: 1000\n\n"
    yield sent("hello", orjson.dumps({"build": site.build, "position": position}), position if last is None else 0)
    if last is not None:
        missed = await _missed(site, listener, last, position)
        if missed is None:
            yield sent("reload", b"{}", position)
        else:
            yield b"".join(_sent(event) for event in missed)
            position = missed[-1].id if missed else position
    reading = site.reading()
    if reading.broker == "away":
        yield sent("broker", orjson.dumps({"answers": False, "since_ms": reading.broker_since_ms}))
    while not listener.is_over:
        events = await listener.next(QUIET_S)
        new = [event for event in events if event.id == 0 or event.id > position]
        if not listener.is_over:
            yield b"".join(map(_sent, new)) or b": still here\n\n"


async def _missed(site: Site, listener: Listener, last: str, position: int) -> list[Live] | None:
    """Return the events since an id; None if unknown or too many."""
    if not last.isascii() or not last.isdecimal() or int(last) > position:
        return None  # of another store
    if int(last) == position:
        return []
    events = await asyncio.to_thread(site.store.live, int(last))
    if events is None or len(events) > site.feed.longest:
        return None
    return [event for event in events if listener.wants(event)]


def _sent(event: Live) -> bytes:
    return sent(event.event, event.data, event.id)


def sent(event: str, data: bytes, id_: int = 0) -> bytes:
    """Return an event in the form of server-sent events.

    `data` is JSON, which has no line ends. Without an id the event is not repeated.
    """
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {event}\ndata: ".encode() + data + b"\n\n"
