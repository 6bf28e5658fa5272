"""Whoever asks at once is answered, however many others hold connections open."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection

import pytest
from aiohttp import web as http

from attributary_agents.monitoring import web
from attributary_agents.monitoring.web import HttpThread, Page, SingleFlight


async def hello(request: http.Request) -> Page:
    if request.path == "/fails":
        raise LookupError("a value of somebody")
    return Page(HTTPStatus.OK, f"{request.path} {request.headers.get('x-name', '')}".encode())


@contextmanager
def serving(answer: Callable[[http.Request], Awaitable[Page]] = hello) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    port = listener.getsockname()[1]
    server = HttpThread(listener, answer)
    try:
        yield port
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
    with serving() as port:
        status, body, headers = ask(port)
        assert (status, body) == (200, b"/a b n")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-length"] == "6"
        assert "server" not in headers
        assert ask(port, method="HEAD")[:2] == (200, b"")
        assert ask(port, method="POST")[0] == 405


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / FTP/1.1\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 17_000, b"400"),
        (b"GET /" + b"a" * 17_000, b"400"),
    ],
)
def test_what_is_no_request_is_refused(data: bytes, status: bytes) -> None:
    with serving() as port:
        assert raw(port, data).split(b" ")[1] == status
        assert ask(port)[0] == 200


def test_an_error_of_the_answer_is_told_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as port:
        assert ask(port, "/fails")[:2] == (500, b"this could not be answered: the log says why\n")
        assert ask(port)[0] == 200
    assert "LookupError" in caplog.text
    assert "somebody" not in caplog.text


def test_what_is_no_request_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as port:
        raw(port, b"forged\x1b[31m line\r\n\r\n")
    assert caplog.text == ""


def test_the_connection_that_has_waited_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MAX_CONNECTIONS", 3)
    with serving() as port, ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(10)]
        assert ask(port)[0] == 200
        idle[0].settimeout(20)
        assert is_closed(idle[0])
        idle[-1].sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        idle[-1].settimeout(20)
        assert idle[-1].recv(12) == b"HTTP/1.1 200"


def is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


def test_one_whose_answer_is_being_made_stays_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MAX_CONNECTIONS", 3)
    go, begun = threading.Event(), threading.Event()

    async def slow(request: http.Request) -> Page:
        begun.set()
        await asyncio.to_thread(go.wait, 20)
        return await hello(request)

    with serving(slow) as port, ExitStack() as stack:
        first = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        first.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert begun.wait(20)
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)) for _ in range(10)]
        assert all(is_closed(one) for one in idle[:8])
        go.set()
        assert first.recv(12) == b"HTTP/1.1 200"


def test_one_that_never_ends_its_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "LASTS_S", 0.3)
    with serving() as port, socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
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
    monkeypatch.setattr(web, "LASTS_S", 2.0)

    async def large(_: http.Request) -> Page:
        return Page(HTTPStatus.OK, b"a" * 50_000_000)

    with serving(large) as port, socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert ask(port, method="HEAD")[0] == 200
        time.sleep(3.0)
        received = 0
        with contextlib.suppress(ConnectionError):
            while part := slow.recv(2**20):
                received += len(part)
        assert received < 50_000_000


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
    async def pause(request: http.Request) -> Page:
        time.sleep(0.5)  # so that the loop finds the stop and the client at once
        return await hello(request)

    listener = socket.create_server(("127.0.0.1", 0))
    server = HttpThread(listener, pause)
    with socket.create_connection(listener.getsockname(), timeout=20) as asks:
        asks.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        with socket.create_connection(listener.getsockname(), timeout=20):
            server.stop()
    assert [record.getMessage() for record in caplog.records] == []
