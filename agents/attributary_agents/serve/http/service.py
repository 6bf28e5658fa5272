"""HTTP service by uvicorn, with limits on connections, heads and threads."""

from __future__ import annotations

import contextlib
import logging
import resource
import socket
from collections.abc import Iterator

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from starlette.types import ASGIApp

MAX_CONNECTIONS = 512
"""Connections at once; fewer where half of the files that the process may open is less."""

AT_ONCE = 4
"""Requests that work at the same time, each in a thread; the others wait, and the live stream goes on."""

LONGEST_HEAD = 65_536
"""Bytes of request line and headers: two ids of 2 kB and 50 names of features, percent-encoded."""

TAKEN_WITHIN_S = 30.0
"""Longest until a client takes something of what it is sent; by the system, on Linux."""

ENDS_WITHIN_S = 5
"""Longest that answers which are under way are waited for at the end."""


class HttpService(uvicorn.Server):
    """HTTP server of an application on a socket, which runs until `end`.

    Signals are left to others.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._most = max(min(MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2), 2)
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                log_level=logging.WARNING,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=self._most,
                timeout_graceful_shutdown=ENDS_WITHIN_S,
                h11_max_incomplete_event_size=LONGEST_HEAD,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Close idle connections if over half are taken; return whether to end."""
        if len(self.server_state.connections) > self._most // 2:
            for one in self.server_state.connections.copy():
                if not one.transport.is_closing():
                    one.shutdown()
        return await super().on_tick(counter)

    async def run_on(self, listener: socket.socket) -> None:
        """Answer on a socket until `end`."""
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections have it from their listener
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(TAKEN_WITHIN_S * 1000))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        current_default_thread_limiter().total_tokens = AT_ONCE
        await self.serve(sockets=[listener])

    def end(self) -> None:
        """End, after the answers that are under way."""
        self.should_exit = True
