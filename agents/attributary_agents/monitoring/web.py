"""Web thread that answers /metrics, /livez and /readyz.

A busy event loop does not silence them.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import resource
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeVar

from aiohttp import web
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

from ..config.settings import Config
from ..errors import without_text
from ..kafka.brokers import HOW_TO_LOOK, NOT_READY_AFTER_S
from ..sockets import listen
from ..sources.mappers.board import SourcesBoard
from ..worker.view import WorkerView
from .metrics import registry

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_CONNECTIONS = 64
"""Connections at once; fewer where a quarter of the files that the process may open is less."""

LASTS_S = 30.0
"""Longest that a connection lasts, however its bytes drip in and whoever takes its answer."""

NOT_FOUND = "/metrics, /livez or /readyz"
"""The answer to any other path."""

_RETRY_S = 0.1
_STOPS_WITHIN_S = 0.5

# aiohttp logs each request that is none, with its bytes and a traceback.
_visitors = logging.getLogger(f"{__name__}.visitors")
_visitors.setLevel(logging.CRITICAL)


class Page(NamedTuple):
    """Answer that several visitors may share.

    A response of aiohttp can be sent only once.
    """

    status: HTTPStatus
    body: bytes
    headers: Mapping[str, str] = {"Content-Type": "text/plain; charset=utf-8"}


def text_page(status: HTTPStatus, text: str) -> Page:
    """Return an answer with a single line of text."""
    return Page(status, text.encode("utf-8", "replace") + b"\n")


class HttpThread:
    """Answers GET and HEAD by aiohttp, in a thread of its own, until `stop`.

    aiohttp waits for a request as long as its client likes, and takes all connections that come. Here the one that has
    waited longest makes room for a new one, so that whoever asks at once is answered.

    Parameters
    ----------
    listener
        A socket that listens; it is closed at the end.
    answer
        Returns the answer to a request. It must not block: what takes long is awaited.
    """

    def __init__(self, listener: socket.socket, answer: Callable[[web.Request], Awaitable[Page]]) -> None:
        listener.setblocking(False)
        self._listener, self._answer = listener, answer
        self._timers: dict[asyncio.Transport, asyncio.TimerHandle] = {}
        """Of each connection, the oldest first, what ends it."""
        self._asked: set[asyncio.BaseTransport | None] = set()
        """The connections that have sent their request."""
        self._loop = asyncio.new_event_loop()
        self._serving = self._loop.create_task(self._serve())
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection."""
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._end)
        self._thread.join(5.0)
        self._listener.close()

    def _end(self) -> None:
        # First: asyncio would hand a client who connects in this moment to a future that has ended.
        self._loop.remove_reader(self._listener)
        self._serving.cancel()

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serving)
        self._loop.close()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._respond)
        runner = web.AppRunner(
            app, access_log=None, logger=_visitors, lingering_time=0, shutdown_timeout=_STOPS_WITHIN_S
        )
        app.on_response_prepare.append(_prepare)
        await runner.setup()
        assert runner.server is not None
        try:
            await self._accept(runner.server)
        finally:
            await runner.cleanup()

    async def _accept(self, server: web.Server) -> None:
        most = max(min(MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4), 1)
        while True:
            try:
                client, _ = await self._loop.sock_accept(self._listener)
            except OSError:  # no file is left for it, or it has gone
                await asyncio.sleep(0 if self._make_room() else _RETRY_S)
                continue
            for one in [one for one in self._timers if one.is_closing()]:
                self._forget(one)
            if len(self._timers) >= most:
                self._make_room()
            try:
                transport, _ = await self._loop.connect_accepted_socket(server, client)
            except OSError:  # the client has gone in this moment
                client.close()
                continue
            self._timers[transport] = self._loop.call_later(LASTS_S, transport.abort)

    def _make_room(self) -> bool:
        """Close the oldest connection to make room; return whether it could.

        A connection without a request goes first.
        """
        for one in [*(one for one in self._timers if one not in self._asked), *self._timers][:1]:
            one.abort()
            self._forget(one)
            return True
        return False

    def _forget(self, one: asyncio.Transport) -> None:
        self._timers.pop(one).cancel()
        self._asked.discard(one)

    async def _respond(self, request: web.Request) -> web.Response:
        if request.transport in self._timers:
            self._asked.add(request.transport)
        try:
            page = await self._answer(request)
        except Exception as error:  # noqa: BLE001 - aiohttp would log its stack, and its text
            logger.warning("a request could not be answered: %s", without_text(error))
            page = text_page(HTTPStatus.INTERNAL_SERVER_ERROR, "this could not be answered: the log says why")
        return web.Response(status=page.status, body=page.body, headers=page.headers)


async def _prepare(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update({"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"})
    response.headers.popall("Server", None)
    response.force_close()


class SingleFlight(Generic[T]):
    """Sharing of an answer among simultaneous requests for the same.

    A thread makes the answer.

    Parameters
    ----------
    make
        Makes the answer to a key; one answer is made at a time.
    """

    def __init__(self, make: Callable[[str], T]) -> None:
        self._make = make
        self._thread = ThreadPoolExecutor(1)
        self._under_way: dict[str, asyncio.Future[T]] = {}

    async def get(self, key: str) -> T:
        """Return the answer for a key.

        A visitor who goes away does not end it for the others.
        """
        made = self._under_way.get(key)
        if made is None:
            made = asyncio.get_running_loop().run_in_executor(self._thread, self._make, key)
            self._under_way[key] = made
            made.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await asyncio.shield(made)


def metrics_key(request: web.Request) -> str:
    """Return how the metrics are wanted: 1 for packed or 0, and their type.

    There are few of these, so that many headers do not ask for many answers.
    """
    is_packed = gzip_accepted(request.headers.get("Accept-Encoding", ""))
    return f"{is_packed:d}{encoder(request.headers.get('Accept', ''))[1]}"


def metrics_page(key: str, body: bytes, content_type: str) -> Page:
    """Return metrics, packed where the key says so."""
    headers = {"Content-Type": content_type}
    if key[0] == "0":
        return Page(HTTPStatus.OK, body, headers)
    return Page(HTTPStatus.OK, gzip.compress(body, 1), {**headers, "Content-Encoding": "gzip"})


def encoder(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    """Return the encoder for an Accept header, and its content type."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # a version that is none
        return choose_encoder("")


def listen_as_configured(config: Config) -> socket.socket:
    """Return a listening socket at the configured address, and log it.

    Raises
    ------
    PreflightError
        The address is in use or not ours.
    """
    listener = listen(config.web.host, config.web.port, "set web.{}")
    logger.info("metrics at http://%s:%d/metrics", config.web.host, listener.getsockname()[1])
    return listener


class WebServer:
    """Serves until `stop`.

    Parameters
    ----------
    board
        The sources that this process maps; None: it maps none.
    """

    def __init__(self, config: Config, view: WorkerView, board: SourcesBoard | None = None) -> None:
        self._config = config
        self._view = view
        self._registry = registry(config, view, board)
        self._listener: socket.socket | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        if self._listener is None:
            raise RuntimeError("the web server has not been started")
        port: int = self._listener.getsockname()[1]
        return port

    def start(self) -> None:
        """Listen and serve; where it does already, nothing happens.

        Raises
        ------
        PreflightError
            The address is in use or not ours.
        """
        if self._listener is not None:
            return
        self._metrics = SingleFlight(self._render)
        self._listener = listen_as_configured(self._config)
        self._thread = HttpThread(self._listener, self._answer)

    def stop(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            self._thread.stop()
            self._listener = None

    async def _answer(self, request: web.Request) -> Page:
        if request.path == "/metrics":
            return await self._metrics.get(metrics_key(request))
        if request.path == "/livez":
            silent, limit = self._view.activity.silent_s, self._config.web.stuck_after_s
            alive = silent < limit
            steps = self._view.activity.steps
            # The last to begin is what blocks the loop, if anything does; the first is what has waited longest.
            where = ", in " + " and ".join(map(str, dict.fromkeys(steps[:1] + steps[-1:]))) if steps else ""
            text = "alive" if alive else f"stuck: no sign of life for {silent:.0f} s{where}"
            return text_page(HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE, text)
        if request.path == "/readyz":
            reason = self._why_not_ready()
            status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
            return text_page(status, f"not ready: {reason}" if reason else "ready")
        return text_page(HTTPStatus.NOT_FOUND, NOT_FOUND)

    def _why_not_ready(self) -> str:
        """Return why the worker does not do its work; empty where it does."""
        brokers = self._view.brokers
        if (away_s := brokers.away_s) is not None:
            return f"no broker answers ({brokers.nodes}) for {away_s:.0f} s"
        if (withheld_s := brokers.writes.withheld_s) >= NOT_READY_AFTER_S:
            return (
                f"brokers have not acknowledged writes for {withheld_s:.0f} s ({brokers.writes.names}): fewer replicas "
                f"in sync than min.insync.replicas, or a partition without a leader? {HOW_TO_LOOK}"
            )
        activity = self._view.activity
        return "" if activity.ready else "joining the group or recovering"

    def _render(self, key: str) -> Page:
        encode, content_type = encoder(key[1:])
        return metrics_page(key, encode(self._registry), content_type)
