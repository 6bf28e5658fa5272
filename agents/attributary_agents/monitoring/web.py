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
from .metrics import AttributaryCollector

logger = logging.getLogger(__name__)

_OK, _NOT_FOUND, _UNAVAILABLE = "200 OK", "404 Not Found", "503 Service Unavailable"

_CHANGES = "/changes"
"""The last change of each model on this worker, as JSON; with `/` and a model id that of one."""


def registry(config: Config, view: WorkerView) -> CollectorRegistry:
    """Return a fresh registry with our metrics and those of the process."""
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
            metrics: Iterable[bytes] = self._metrics(environ, start_response)
            return metrics
        if path == "/livez":
            silent, limit = self._view.activity.silent_s, self._config.web.stuck_after_s
            alive = silent < limit
            steps = self._view.activity.steps
            # The last to begin is what blocks the loop, if anything does; the first is what has waited longest.
            where = ", in " + " and ".join(map(str, dict.fromkeys(steps[:1] + steps[-1:]))) if steps else ""
            text = "alive" if alive else f"stuck: no sign of life for {silent:.0f} s{where}"
            return _text(start_response, _OK if alive else _UNAVAILABLE, text)
        if path == "/readyz":
            ready = self._view.activity.ready
            text = "ready" if ready else "not ready: joining the group or recovering"
            return _text(start_response, _OK if ready else _UNAVAILABLE, text)
        if path == _CHANGES or path.startswith(f"{_CHANGES}/"):
            # The server gives the path's bytes as Latin-1.
            decoded = path.encode("latin-1").decode("utf-8", "replace")
            status, body = self._changes(decoded.removeprefix(_CHANGES).removeprefix("/"))
            if isinstance(body, str):
                return _text(start_response, status, body)
            start_response(status, [("Content-Type", "application/json")])
            return [orjson.dumps(body)]
        return _text(start_response, _NOT_FOUND, "/metrics, /livez, /readyz or /changes")

    def _changes(self, model_id: str) -> tuple[str, str | dict[str, Any]]:
        """Status and body, text or an object for JSON: the last change of the model, or of every one for no id."""
        found = self._last_changes()
        if found is None:
            return _UNAVAILABLE, "the worker is at an observation that takes long: ask again"
        if not model_id:
            return _OK, found
        if model_id in found:
            return _OK, found[model_id]
        if model_id not in self._config.models:
            configured = ", ".join(self._config.models)
            return _NOT_FOUND, f"no model {model_id!r} is configured, but {configured}"
        topic = self._config.kafka.topics.changes
        return _NOT_FOUND, (
            f"this worker knows no change of {model_id!r}: it has not changed, or is on another worker. The topic "
            f"{topic} has all changes: attributary changes {model_id}"
        )

    def _last_changes(self) -> dict[str, dict[str, Any]] | None:
        """Return the last change of each model by id; None while a step takes longer than a second."""
        if not self._view.lock.acquire(timeout=1.0):
            return None
        try:
            states = [state for owned in self._view.partitions.values() for state in owned.partition.models.values()]
            return {state.model_id: state.last_change for state in states if state.last_change is not None}
        finally:
            self._view.lock.release()


def _text(start_response: Any, status: str, text: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode("utf-8", "replace") + b"\n"]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """A scrape every few seconds is no news."""
