"""Serves the page's files and canned answers over HTTP, events as they are pushed; only the standard library."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import mimetypes
import queue
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import attributary_agents.serve
from attributary_agents.serve.page import as_served

from .answers import BUILD, Answers, UnknownError
from .compared import compare

STATIC = Path(attributary_agents.serve.__file__).parent / "static"
BASE = f"/static/{BUILD}"
WINDOWS = {"1h": 3_600_000, "24h": 86_400_000, "7d": 7 * 86_400_000, "all": None, "": None}
_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)
_PLAIN = "<!doctype html><html lang=en><title>Attributary</title><p>There is no index.html yet."


class StandIn:
    """Runs the server in threads; `url` says where. What it answers is in `answers`, which tests may change."""

    def __init__(self, port: int = 0, *, static: tuple[Path, ...] = (STATIC,), **kwargs: Any) -> None:
        self.static = static
        self.answers = Answers(int(time.time() * 1000), **kwargs)
        self.port = port
        self.requests: list[str] = []
        self.delay_s = 0.0
        self._streams: set[queue.SimpleQueue[bytes | None]] = set()
        self._connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, on the same port as before."""
        handler = type("Handler", (_Handler,), {"stand_in": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """End all streams and close the port: what a server that is lost looks like."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        for stream in list(self._streams):
            stream.put(None)
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def push(self, event: str, data: Any) -> None:
        """Send an event to all streams."""
        self.answers.position += 1
        text = f"id: {self.answers.position}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode()
        for stream in list(self._streams):
            stream.put(text)

    def push_importance(self, model_id: str, explainer: str = "pfi", later_ms: int = 0) -> None:
        """Send the latest importance of a model again, as if it were new."""
        spec = self.answers.spec(model_id)
        row, series = self.answers.row(spec), self.answers.series(model_id, explainer, points=2, top=50)
        last = {
            name: (values or [None])[-1] for name, values in series.figures.model_dump().items() if name[:4] != "qual"
        }
        self.push("importance", {
            "model_id": model_id, "explainer": explainer, "time_ms": int(time.time() * 1000) + later_ms,
            "observation": (row.n_observations or 0) + self.answers.position * 500, "version": row.version,
            "n_features": row.n_features, "n_observations": 2_000, "model_loss": last["model_loss"],
            "baseline_loss": last["baseline_loss"], "present_loss": last["present_loss"],
            "discrepancy": last["discrepancy"], "shift": last["shift"], "n_waiting": last["n_waiting"],
            "n_expired": last["n_expired"], "fidelity": last["fidelity"],
            "features": {one.feature: [one.latest, one.latest_half_width, one.latest_share, one.latest_rank]
                         for one in series.features},
        })  # fmt: skip

    def push_incident(self, like: str, **changed: Any) -> dict[str, Any]:
        """Send a new revision of an incident, which the answers have from then on; another `id` is another one."""
        place = next(i for i, one in enumerate(self.answers.told) if one.id == like)
        found, now_ms = self.answers.told[place], int(time.time() * 1000)
        event = {**found.event, "revision": found.event["revision"] + 1, **changed}
        is_new = event["id"] != like
        new = type(found)(event, now_ms, now_ms if is_new else found.begun_ms)
        self.answers.told[place : place + (not is_new)] = [new]
        row = new.row.model_dump(mode="json")
        self.push("incident", row)
        return row

    def away(self, is_away: bool) -> None:
        """Say that brokers no longer answer, or that they do again."""
        self.answers.away_since_ms = self.answers.now_ms if is_away else None
        self.push("broker", {"answers": not is_away, "since_ms": self.answers.away_since_ms})


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    stand_in: StandIn
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        """Keep the connection, so that all can be closed."""
        super().setup()
        self.stand_in._connections.add(self.connection)

    def handle(self) -> None:
        """Answer until whoever asks goes away."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def finish(self) -> None:
        """Forget the connection."""
        self.stand_in._connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer what is asked for."""
        self.stand_in.requests.append(self.path)
        parts = urlsplit(self.path)
        path = [unquote(one) for one in parts.path.strip("/").split("/")]
        with contextlib.suppress(ConnectionError):
            if path[0] == "static":
                self._file("/".join(path[2:]))
            elif path[:2] == ["api", "v1"]:
                time.sleep(self.stand_in.delay_s)
                self._api(path[2:], {name: ",".join(values) for name, values in parse_qs(parts.query).items()})
            else:
                self._page()

    def do_POST(self) -> None:
        """Push an event by hand: POST /stand-in/push {"event": …, "data": …}."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self.stand_in.push(body["event"], body.get("data", {}))
        self._send(204, b"", "text/plain")

    def _page(self) -> None:
        path = self._found("index.html")
        text = (path.read_text() if path else _PLAIN).replace("{{base}}", BASE)
        found = _MAP.search(text)
        digest = base64.b64encode(hashlib.sha256((found[1] if found else "").encode()).digest()).decode()
        policy = (
            f"default-src 'self'; script-src 'self' 'sha256-{digest}'; style-src 'self'; img-src 'self' data: blob:; "
            "connect-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'self'"
        )
        self._send(200, text.encode(), "text/html; charset=utf-8", {"Content-Security-Policy": policy})

    def _file(self, name: str) -> None:
        path = self._found(name)
        if path is None:
            self._problem(404, "Not found", f"No file {name}.")
            return
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        body = as_served(name, path.read_text()).encode() if name.endswith((".js", ".css")) else path.read_bytes()
        self._send(200, body, "text/javascript" if name.endswith(".js") else kind)

    def _found(self, name: str) -> Path | None:
        paths = ((folder, (folder / name).resolve()) for folder in self.stand_in.static)
        return next((path for folder, path in paths if path.is_relative_to(folder) and path.is_file()), None)

    def _api(self, path: list[str], query: dict[str, str]) -> None:
        if path == ["stream"]:
            self._stream(query.get("model"))
            return
        try:
            answer = self._answer(path, query)
        except UnknownError as error:
            self._problem(404, "Not found", str(error), error.suggestion)
        except ValueError as error:
            self._problem(400, "Bad request", str(error))
        else:
            if answer is None:
                self._problem(404, "Not found", f"No such address: {self.path}")
                return
            body = json.dumps(answer if isinstance(answer, (list, dict)) else answer.model_dump(mode="json"))
            self._send(200, body.encode(), "application/json")

    def _answer(self, path: list[str], query: dict[str, str]) -> Any:
        answers = self.stand_in.answers
        window = query.get("window", "24h")
        window_ms = WINDOWS[window] if window in WINDOWS else int(window)
        start, end = (float(query[name]) if query.get(name) else None for name in ("from", "to"))
        match path:
            case ["health"]:
                return answers.health()
            case ["models"]:
                return answers.fleet(window_ms, query.get("q", ""), int(query.get("offset") or 0),
                                     int(query.get("limit") or 50))  # fmt: skip
            case ["models", model_id]:
                return answers.model(model_id, window_ms)
            case ["models", model_id, "importances"]:
                named, top = query.get("features", ""), query.get("top") or 10
                if named.isdigit():
                    named, top = "", named
                return answers.series(
                    model_id, query.get("explainer") or None, start, end, query.get("by", "time"),  # type: ignore[arg-type]
                    int(query.get("points") or 600), int(top), named.split(",") if named else None,
                )  # fmt: skip
            case ["models", model_id, "incidents"]:
                return answers.incidents(model_id, start, end)
            case ["models", model_id, "dead-letters"]:
                return answers.dead_letters(model_id)
            case ["models", model_id, "dependences"]:
                return answers.dependences(model_id)
            case ["incidents", id_]:
                return answers.incident(id_)
            case ["compare"]:
                return compare(answers, query.get("a", ""), query.get("b", ""), query.get("explainer") or None)
            case ["annotations"]:
                return answers.annotations()
        return None

    def _stream(self, model_id: str | None) -> None:
        mine: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.stand_in._streams.add(mine)
        try:
            self.send_response(200)
            for name, value in (("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")):
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            hello = {"build": BUILD, "position": self.stand_in.answers.position}
            self.wfile.write(f"retry: 300\nevent: hello\ndata: {json.dumps(hello)}\n\n".encode())
            while (text := self._next(mine)) is not None:
                # Narrowed to a model the stream has what is of it, and what is of none.
                if (
                    model_id is None
                    or b'"model_id"' not in text
                    or f'"model_id": {json.dumps(model_id)}'.encode() in text
                ):
                    self.wfile.write(text)
        finally:
            self.stand_in._streams.discard(mine)
            self.close_connection = True

    @staticmethod
    def _next(mine: queue.SimpleQueue[bytes | None]) -> bytes | None:
        try:
            return mine.get(timeout=15.0)
        except queue.Empty:
            return b": still here\n\n"

    def _problem(self, status: int, title: str, detail: str, suggestion: str | None = None) -> None:
        body = {"type": "about:blank", "status": status, "title": title, "detail": detail, "suggestion": suggestion}
        self._send(status, json.dumps(body).encode(), "application/problem+json")

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        self.wfile.write(body)
