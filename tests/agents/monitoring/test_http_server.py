"""Whoever asks at once is answered, however many others hold connections open."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection

import pytest

from attributary_agents.monitoring import http_server
from attributary_agents.monitoring.http_server import HttpServer, Request, Response, SingleFlight


async def hello(request: Request) -> Response:
    if request.path == "/fails":
        raise LookupError
    return Response(HTTPStatus.OK, f"{request.path} {request.headers.get('x-name', '')}".encode())


@contextmanager
def serving(most: int = 4) -> Iterator[HttpServer]:
    server = HttpServer(("127.0.0.1", 0), hello, most)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def ask(port: int, path: str = "/a%20b", method: str = "GET") -> tuple[int, bytes, dict[str, str]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, headers={"X-Name": "n"})
        response = connection.getresponse()
        return response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}
    finally:
        connection.close()


def raw(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(data)
        received = b""
        while part := client.recv(4096):
            received += part
        return received


def test_a_request_is_answered_with_nothing_that_names_the_server() -> None:
    with serving() as server:
        status, body, headers = ask(server.port)
        assert (status, body) == (200, b"/a b n")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-length"] == "6"
        assert "server" not in headers
        assert ask(server.port, method="HEAD")[:2] == (200, b"")
        assert ask(server.port, method="POST")[0] == 405


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 17_000, b"431"),
        (b"GET /" + b"a" * 17_000, b"431"),
    ],
)
def test_what_is_no_request_is_refused(data: bytes, status: bytes) -> None:
    with serving() as server:
        assert raw(server.port, data).split(b" ")[1] == status
        assert ask(server.port)[0] == 200


def test_an_error_of_the_answer_ends_its_connection_alone(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server:
        assert raw(server.port, b"GET /fails HTTP/1.1\r\n\r\n") == b""
        assert ask(server.port)[0] == 200
    assert "LookupError" in caplog.text


def test_the_connection_that_has_waited_longest_makes_room() -> None:
    with serving(most=3) as server, ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(10)]
        assert ask(server.port)[0] == 200
        idle[0].settimeout(20)
        assert idle[0].recv(1) == b""  # closed
        idle[-1].sendall(b"GET / HTTP/1.1\r\n\r\n")
        idle[-1].settimeout(20)
        assert idle[-1].recv(12) == b"HTTP/1.1 200"


def test_one_that_never_ends_its_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "READ_WITHIN_S", 0.3)
    with serving() as server, socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
        ended = False
        for _ in range(200):
            try:
                slow.sendall(b"G")
            except OSError:
                ended = True
                break
            time.sleep(0.05)
        assert ended


def test_one_that_never_takes_its_answer_is_closed_and_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "ANSWER_WITHIN_S", 0.3)

    async def large(_: Request) -> Response:
        return Response(HTTPStatus.OK, b"a" * 50_000_000)

    server = HttpServer(("127.0.0.1", 0), large)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert ask(server.port, method="HEAD")[0] == 200
            time.sleep(1.0)
            received = 0
            with contextlib.suppress(ConnectionError):
                while part := slow.recv(2**20):
                    received += len(part)
            assert received < 50_000_000
    finally:
        server.stop()


LIMITED = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from attributary_agents.config.reading import parse_config
from attributary_agents.monitoring.web import WebServer
from attributary_agents.worker.view import WorkerView
config = parse_config({"models": {"m": {"model": {"class": "river.dummy.NoChangeClassifier"}}}, "web": {"port": 0}})
web = WebServer(config, WorkerView({}))
web.start()
held = [open("/dev/null") for _ in range(int(sys.argv[1]))]
print(web.port, flush=True)
sys.stdin.readline()
print(time.process_time(), flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("n_files", [0, 50])
def test_livez_is_answered_while_300_connections_idle_beyond_the_limit_of_files(n_files: int) -> None:
    command = [sys.executable, "-c", LIMITED, str(n_files)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child, ExitStack() as s:
        assert child.stdin is not None
        assert child.stdout is not None
        port = int(child.stdout.readline())
        idle = []
        for n in range(300):
            idle.append(s.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)))
            if n % 2:
                idle[-1].sendall(b"GET /livez")  # drips
        for path in ("/livez", "/metrics", "/livez"):
            assert ask(port, path)[0] == 200
        child.stdin.write("\n")
        child.stdin.flush()
        child.wait(60)


def test_those_who_ask_at_once_share_one_answer() -> None:
    made: list[str] = []
    go = threading.Event()

    def make(key: str) -> int:
        go.wait(20)
        made.append(key)
        return len(made)

    async def all_of_them() -> list[int]:
        flight = SingleFlight(make)
        asked = [asyncio.create_task(flight.get(key)) for key in "aaaab"]
        await asyncio.sleep(0)
        asked[0].cancel()  # who goes away does not end it for the others
        await asyncio.sleep(0)
        go.set()
        told = await asyncio.gather(*asked, return_exceptions=True)
        later = await flight.get("a")
        return [one for one in [*told, later] if isinstance(one, int)]

    assert asyncio.run(all_of_them()) == [1, 1, 1, 2, 3]
    assert made == ["a", "b", "a"]


def test_a_client_who_connects_at_the_moment_of_the_stop_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server:
        ask(server.port)
        server._loop.call_soon_threadsafe(time.sleep, 0.5)  # so that the loop finds the stop and the client at once
        with socket.create_connection(("127.0.0.1", server.port), timeout=20):
            server.stop()
    assert [record.getMessage() for record in caplog.records] == []


def test_any_other_error_that_nobody_has_caught_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server:
        server._loop.call_exception_handler({"message": "nobody has caught this", "exception": LookupError()})
    assert "nobody has caught this" in caplog.text
