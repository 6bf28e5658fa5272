"""/metrics, /livez and /readyz, answered by a thread of its own: a busy event loop does not silence them."""

from __future__ import annotations

import gzip
import logging
import socket
from collections.abc import Callable
from http import HTTPStatus

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from ..config.settings import Config
from ..errors import PreflightError
from ..kafka.brokers.writes import HOW_TO_LOOK, NOT_READY_AFTER_S
from ..sources.mappers.board import SourcesBoard
from ..worker.view import WorkerView
from .http_server import HttpServer, Request, Response, SingleFlight, listen, text_response
from .metrics import AttributaryCollector

logger = logging.getLogger(__name__)

NOT_FOUND = "/metrics, /livez or /readyz"
"""What is told of any other path."""


def registry(config: Config, view: WorkerView, board: SourcesBoard | None = None) -> CollectorRegistry:
    """Return a fresh registry with our metrics and those of the process."""
    fresh = CollectorRegistry()
    fresh.register(AttributaryCollector(config, view, board))
    ProcessCollector(registry=fresh)
    PlatformCollector(registry=fresh)
    GCCollector(registry=fresh)
    return fresh


def encoder(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    """Return what encodes metrics as a header Accept asks for, and the type of what comes out."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # a version that is none
        return choose_encoder("")


def listen_as_configured(config: Config) -> socket.socket:
    """Return a socket that listens at the configured address, and say in the log which that is.

    Raises
    ------
    PreflightError
        The address is in use or not ours.
    """
    host, port = config.web.host, config.web.port
    try:
        listener = listen((host, port))
    except OSError as error:
        raise PreflightError(
            f"cannot listen on {host}:{port} ({error.strerror}): set web.port to another one, or 0 for any"
        ) from None
    logger.info("metrics at http://%s:%d/metrics", host, listener.getsockname()[1])
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
        self._server: HttpServer | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        if self._server is None:
            raise RuntimeError("the web server has not been started")
        return self._server.port

    def start(self) -> None:
        """Listen and serve; where it does already, nothing happens.

        Raises
        ------
        PreflightError
            The address is in use or not ours.
        """
        if self._server is not None:
            return
        self._metrics = SingleFlight(self._render)
        self._server = HttpServer(listen_as_configured(self._config), self._answer)
        self._server.start()

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    async def _answer(self, request: Request) -> Response:
        path = request.path
        if path == "/metrics":
            is_packed = gzip_accepted(request.headers.get("accept-encoding", ""))
            return await self._metrics.get(f"{is_packed:d}{request.headers.get('accept', '')}")
        if path == "/livez":
            silent, limit = self._view.activity.silent_s, self._config.web.stuck_after_s
            alive = silent < limit
            steps = self._view.activity.steps
            # The last to begin is what blocks the loop, if anything does; the first is what has waited longest.
            where = ", in " + " and ".join(map(str, dict.fromkeys(steps[:1] + steps[-1:]))) if steps else ""
            text = "alive" if alive else f"stuck: no sign of life for {silent:.0f} s{where}"
            return text_response(HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE, text)
        if path == "/readyz":
            reason = self._why_not_ready()
            status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
            return text_response(status, f"not ready: {reason}" if reason else "ready")
        return text_response(HTTPStatus.NOT_FOUND, NOT_FOUND)

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

    def _render(self, key: str) -> Response:
        """Return the metrics as who asks so takes them: 1 for packed or 0, and the header Accept."""
        encode, content_type = encoder(key[1:])
        body = encode(self._registry)
        if key[0] == "0":
            return Response(HTTPStatus.OK, body, content_type)
        return Response(HTTPStatus.OK, gzip.compress(body, 1), content_type, {"Content-Encoding": "gzip"})
