"""/metrics, /livez, /readyz and /changes, answered by a thread of its own: a busy event loop does not silence them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import orjson
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from ..config.settings import Config
from ..errors import PreflightError
from ..worker.view import WorkerView
from . import changes_page
from .metrics import AttributaryCollector

logger = logging.getLogger(__name__)


def registry(config: Config, view: WorkerView) -> CollectorRegistry:
    """A fresh registry with our metrics and those of the process."""
    fresh = CollectorRegistry()
    fresh.register(AttributaryCollector(config, view))
    ProcessCollector(registry=fresh)
    PlatformCollector(registry=fresh)
    GCCollector(registry=fresh)
    return fresh


class WebServer:
    """Serves until `stop`."""

    def __init__(self, config: Config, view: WorkerView) -> None:
        self._config = config
        self._view = view
        self._metrics = make_wsgi_app(registry(config, view))
        self._server: WSGIServer | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        if self._server is None:
            raise RuntimeError("the web server has not been started")
        return self._server.server_port

    def start(self) -> None:
        """Listen and serve.

        Raises
        ------
        PreflightError
            The address is in use or not ours.
        """
        host, port = self._config.web.host, self._config.web.port
        try:
            self._server = make_server(host, port, self._answer, _Server, _QuietHandler)
        except OSError as error:
            raise PreflightError(
                f"cannot listen on {host}:{port} ({error.strerror}): set web.port to another one, or 0 for any"
            ) from None
        threading.Thread(target=self._server.serve_forever, name="web", daemon=True).start()
        logger.info("metrics at http://%s:%d/metrics", host, self.port)

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        if path == "/metrics":
            body: Iterable[bytes] = self._metrics(environ, start_response)
            return body
        if path == "/livez":
            silent, limit = self._view.silent_s, self._config.web.stuck_after_s
            alive = silent < limit
            steps = self._view.under_way
            # The last to begin is what blocks the loop, if anything does; the first is what has waited longest.
            where = ", in " + " and ".join(map(str, dict.fromkeys(steps[:1] + steps[-1:]))) if steps else ""
            return _text(
                start_response, alive, "alive" if alive else f"stuck: no sign of life for {silent:.0f} s{where}"
            )
        if path == "/readyz":
            ready = self._view.ready
            return _text(start_response, ready, "ready" if ready else "not ready: joining the group or recovering")
        if path == changes_page.PREFIX or path.startswith(f"{changes_page.PREFIX}/"):
            # The server gives the path's bytes as Latin-1.
            told = path.encode("latin-1").decode("utf-8", "replace")
            return _changes(start_response, *changes_page.answer(told, self._config, self._view))
        start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"/metrics, /livez, /readyz or /changes\n"]


def _text(start_response: Any, good: bool, text: str) -> Iterable[bytes]:
    start_response("200 OK" if good else "503 Service Unavailable", [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode() + b"\n"]


def _changes(start_response: Any, status: str, body: Any) -> Iterable[bytes]:
    if isinstance(body, str):
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [body.encode("utf-8", "replace") + b"\n"]
    start_response(status, [("Content-Type", "application/json")])
    return [orjson.dumps(body)]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """A scrape every few seconds is no news."""
