"""Runs an application on a socket, so that strangers cannot hold it up: waits have limits, and connections are few.

uvicorn waits for the end of a request for as long as its client likes, and for a client that never reads. Here a
connection without a whole request is closed after a while, the one that has waited longest makes room for a new one,
and the system gives up a client that takes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ....monitoring.http_server import listen

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 512
"""Connections at once; fewer where a quarter of the files that the process may open is less."""

READ_WITHIN_S = 10.0
"""Longest from the connection, or from the answer before, to the end of the head of a request."""

TAKEN_WITHIN_S = 30.0
"""Longest until a client takes something of what it is sent."""

ENDS_WITHIN_S = 5
"""Longest that answers which are under way are waited for at the end."""

LONGEST_HEAD = 65_536
"""Bytes of request line and headers: two ids of 2 kB and 50 names of features, percent-encoded."""


ABORT = "attributary.abort"
"""Key of a request's scope with what closes its connection at once, whatever is still to be sent."""


class Connection(H11Protocol):
    """A connection whose waits have limits."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection, and make room for it."""
        super().connection_made(transport)
        self._wait()
        most = max(min(MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4), 1)
        if len(self.connections) > most:
            idle = [one for one in self.connections if isinstance(one, Connection) and one.is_idle and one is not self]
            if idle:
                min(idle, key=lambda one: one.waits_until).transport.abort()
            else:
                transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was waited for."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle what has come; a whole head ends the waiting for it."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._stop_waiting()
            self.cycle.scope[ABORT] = self.transport.abort  # type: ignore[literal-required]

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if not self.transport.is_closing():
            self._wait()
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Whether it waits for the head of a request."""
        return self._deadline is not None

    @property
    def waits_until(self) -> float:
        """When that is over, by the loop's clock."""
        return 0.0 if self._deadline is None else self._deadline.when()

    def _wait(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(READ_WITHIN_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class HttpService(uvicorn.Server):
    """Serves an application on a socket until `end`; signals are for others to handle."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                log_level=logging.WARNING,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=ENDS_WITHIN_S,
                h11_max_incomplete_event_size=LONGEST_HEAD,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def run_on(self, listener: socket.socket) -> None:
        """Answer on a socket until `end`."""
        await self.serve(sockets=[listener])

    def end(self, *, at_once: bool = False) -> None:
        """End: after the answers that are under way, or without them."""
        self.should_exit = True
        self.force_exit = self.force_exit or at_once


def listener_at(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one.

    Raises
    ------
    OSError
        The address is in use or not ours.
    """
    listener = listen((host, port))
    options: list[tuple[int, int, Any]] = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux: connections have it from their listener
        options.append((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(TAKEN_WITHIN_S * 1000)))
    for level, option, value in options:
        listener.setsockopt(level, option, value)
    listener.setblocking(False)
    return listener
