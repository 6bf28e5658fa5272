"""Process of `attributary serve`: reading, answering and webhooks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import resource
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from starlette.types import ASGIApp

from ..config.settings import Config
from ..errors import AttributaryError, ConfigError, without_text
from ..private_files import make_private_folder
from ..sockets import listen
from .http.access import configured_token, is_loopback
from .http.app import make_app
from .http.site import Feed, Site
from .page import Page
from .reading import Reading
from .store.store import Store
from .webhooks.webhooks import Webhooks

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


logger = logging.getLogger(__name__)

_BEAT_S = 0.25
"""Seconds between two looks at how far the topics are read."""

_ENDS_WITHIN_S = 3.0
"""Seconds in which readers and webhooks end what they are at."""

_STOP = (signal.SIGTERM, signal.SIGINT)


@dataclass
class Shown:
    """Messages to whoever has started the server.

    Attributes
    ----------
    address
        Called once with the address of the page, when it answers there.
    share
        Called now and then while the server reads what the topics have, with how much of it is read, in [0, 1].
    """

    address: Callable[[str], None] = field(default=lambda _: None)
    share: Callable[[float], None] = field(default=lambda _: None)


def run_server(config: Config, shown: Shown | None = None) -> None:
    """Serve the page until SIGINT or SIGTERM; end at once at a second signal.

    Raises
    ------
    ConfigError
        The token is not set or too short, or a webhook cannot be used.
    PreflightError
        The address is taken.
    StoreError
        The store cannot be opened, or another server has it open.
    """
    token = configured_token(config.serve)
    path = config.serve.store or default_store(config)
    try:
        make_private_folder(path.parent)
    except OSError as error:
        raise ConfigError(f"serve.store: cannot make {path.parent} ({error.strerror})") from None
    with (
        Store(path, max_bytes=config.serve.max_bytes, max_age_s=config.serve.max_age) as store,
        listen(config.serve.host, config.serve.port, "give --{0}, or set serve.{0},") as listener,
    ):
        for number in _STOP:
            signal.signal(number, _end)  # until the server listens to them: nothing has begun
        server = Server(config, store, listener, token, shown or Shown())
        if token is None and not is_loopback(config.serve.host):
            logger.warning(
                "whoever reaches %s:%d sees the page: set serve.token_env, or serve.host to 127.0.0.1",
                config.serve.host,
                server.port,
            )
        asyncio.run(server.run())


def _end(_number: int, _frame: object) -> None:
    raise SystemExit(0)


def default_store(config: Config) -> Path:
    """Return the default file of the store: a file per group and cluster."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    group = config.kafka.group
    of = sha256("\0".join([group, *sorted(config.kafka.brokers), config.kafka.topics.importances]).encode())
    name = re.sub(r"[^A-Za-z0-9._-]", "_", group)[:80]
    return folder / "attributary" / f"{name}-{of.hexdigest()[:8]}.sqlite"


class Server:
    """All parts of the server, run together: if any ends, all end.

    Parameters
    ----------
    listener
        Where it is asked.
    token
        What is asked for; None: nothing is.
    """

    def __init__(self, config: Config, store: Store, listener: socket.socket, token: str | None, shown: Shown) -> None:
        self._config, self._store, self._listener, self._shown = config, store, listener, shown
        self._token = token
        self._webhooks = Webhooks(config)
        self._feed = Feed()
        self._stop = asyncio.Event()
        self.port: int = listener.getsockname()[1]

    async def run(self) -> None:
        """Serve until a signal."""
        page = Page(version("attributary"))
        reading = Reading(self._config, self._store, told=self._feed.publish, broker=self._feed.tell_broker)
        site = Site(
            config=self._config,
            store=self._store,
            reading=reading.state,
            build=page.build,
            webhooks=self._webhooks.counts,
            feed=self._feed,
        )
        service = HttpService(make_app(site, page, self._token))
        parts: dict[str, Coroutine[Any, Any, None]] = {
            "HTTP": service.run_on(self._listener),
            "reading of the topics": reading.run(),
            "watch": self._watch(reading),
            "webhooks": self._webhooks.run(),
        }
        with self._signals():
            tasks = {asyncio.create_task(work): name for name, work in parts.items()}
            self._shown.address(address_of(self._config.serve.host, self.port))
            stop = asyncio.create_task(self._stop.wait())
            await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            failed = {name: error for task, name in tasks.items() if task.done() and (error := task.exception())}
            self._feed.end()
            service.end()
            http, *others = tasks
            for task in others:
                task.cancel()
            await asyncio.wait([http])
            await asyncio.wait(others, timeout=_ENDS_WITHIN_S)
        for name, error in failed.items():
            if isinstance(error, AttributaryError):
                raise error
            raise AttributaryError(f"the {name} failed: {without_text(error)}; please report that") from error

    async def _watch(self, reading: Reading) -> None:
        """Show how far the past is read, until it is."""
        began = time.monotonic()
        while (state := reading.state()).is_reading_past:
            self._shown.share(state.read_share or 0.0)
            await asyncio.sleep(_BEAT_S)
        self._shown.share(1.0)
        logger.info("the page shows all that the topics have, after %.1f s", time.monotonic() - began)
        await asyncio.Event().wait()

    @contextlib.contextmanager
    def _signals(self) -> Any:
        loop = asyncio.get_running_loop()

        def on_signal(number: signal.Signals) -> None:
            if self._stop.is_set():
                os._exit(128 + number)
            self._stop.set()

        for number in _STOP:
            loop.add_signal_handler(number, on_signal, number)
        try:
            yield
        finally:
            for number in _STOP:
                loop.remove_signal_handler(number)


def address_of(host: str, port: int) -> str:
    """Return the address at which a browser on this machine finds the page."""
    name = "localhost" if host in ("", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/"
