"""A server of models over HTTP, as Open Inference V2 and as JSON, that fails as it is told to."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Predict = Callable[[list[dict[str, Any]]], Sequence[Any]]
"""Rows by name to a prediction for each: a number, a label, or a list of probabilities."""

HANG_S = 30.0


class ServedModels:
    """Serves models in a thread of this process.

    Parameters
    ----------
    models
        Name to what predicts.
    port
        Where; 0 takes a free one.

    Attributes
    ----------
    plan
        How the next requests fail, in turn; None where one does not.
    failures
        Of those after that, way to fail to its share of the requests: a status such as 500, `reset`, or `hang`.
    refuses
        Returns whether a row is refused, by which the whole request is answered 400.
    n_requests, n_rows
        By model, of those that were answered.
    failed
        Requests by the way in which they failed.
    """

    def __init__(self, models: dict[str, Predict], port: int = 0, seed: int = 1) -> None:
        self.models = models
        self.plan: list[int | str | None] = []
        self.failures: dict[int | str, float] = {}
        self.refuses: Callable[[dict[str, Any]], bool] = lambda _row: False
        self.takes_s = 0.0
        self.headers: dict[str, str] = {}
        """Headers of answers that are failures."""
        self.seen: list[dict[str, str]] = []
        """Headers of the last requests."""
        self.n_requests: Counter[str] = Counter()
        self.n_rows: Counter[str] = Counter()
        self.failed: Counter[int | str] = Counter()
        self.most_at_once = 0
        self.port = port
        self._at_once = 0
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._open: set[socket.socket] = set()
        self._ending = threading.Event()

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def address(self, model: str) -> str:
        """Return the address of a model in V2."""
        return f"{self.url}/v2/models/{model}"

    def start(self) -> None:
        """Serve, at the same port as before."""
        self._ending = threading.Event()
        self._server = _Server(("127.0.0.1", self.port), _handler(self))
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """End at once: connections are refused from now on, and those that are open are closed."""
        if self._server is not None:
            self._ending.set()
            self._server.shutdown()
            self._server.server_close()
            for connection in list(self._open):
                _reset(connection)
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def failure(self) -> int | str | None:
        """Return how the next request fails; None where it does not."""
        with self._lock:
            way = self.plan.pop(0) if self.plan else self._drawn()
            if way is not None:
                self.failed[way] += 1
            return way

    def _drawn(self) -> int | str | None:
        drawn = self._rng.random()
        for way, share in self.failures.items():
            drawn -= share
            if drawn < 0.0:
                return way
        return None

    def answer(self, path: str, asked: Any) -> tuple[int, Any]:
        """Return status and content of the answer to a request."""
        *_, name = path.removesuffix("/infer").rsplit("/", 1)
        if name not in self.models:
            return 404, {"error": f"no model {name}"}
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self.takes_s:
                time.sleep(self.takes_s)
            is_v2 = path.endswith("/infer")
            rows = _rows(asked) if is_v2 else asked["instances"]
            if any(map(self.refuses, rows)):
                return 400, {"error": "a row cannot be used"}
            found = list(self.models[name](rows))
            with self._lock:
                self.n_requests[name] += 1
                self.n_rows[name] += len(rows)
            return 200, _tensor(name, found) if is_v2 else {"predictions": found}
        finally:
            with self._lock:
                self._at_once -= 1

    def hang(self) -> None:
        """Wait for longer than anybody does, or until it ends."""
        self._ending.wait(HANG_S)


def _rows(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a request in V2: those of one tensor are named f0, f1 and so on."""
    first = asked["inputs"][0]
    n = first["shape"][0]
    if len(asked["inputs"]) == 1 and first["shape"][1:] != [1]:
        width = first["shape"][1]
        data = first["data"]
        return [{f"f{k}": data[i * width + k] for k in range(width)} for i in range(n)]
    return [{one["name"]: one["data"][i] for one in asked["inputs"]} for i in range(n)]


def _tensor(name: str, found: list[Any]) -> dict[str, Any]:
    wide = isinstance(found[0], list)
    shape = [len(found), *([len(found[0])] if wide else [])]
    data = [value for row in found for value in row] if wide else found
    kind = "BYTES" if isinstance(data[0], str) else "FP64"
    output = {"name": "predictions", "shape": shape, "datatype": kind, "data": data}
    return {"model_name": name, "outputs": [output, {"name": "other", "shape": [1], "datatype": "FP64", "data": [0]}]}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes is what tests are about."""


def _reset(connection: socket.socket) -> None:
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
    except OSError:
        pass


def _handler(served: ServedModels) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def setup(self) -> None:
            super().setup()
            served._open.add(self.connection)

        def finish(self) -> None:
            served._open.discard(self.connection)
            super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            served.seen = [*served.seen[-9:], dict(self.headers.items())]
            way = served.failure()
            if way == "reset":
                _reset(self.connection)
                self.close_connection = True
                return
            if way == "hang":
                served.hang()
                self.close_connection = True
                return
            if isinstance(way, int):
                self._send(way, {"error": "as told"}, served.headers)
            else:
                self._send(*served.answer(self.path, json.loads(body)), {})

        def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            """Write nothing."""

    return Handler
