"""A small HTTP server that strangers cannot hold up: every wait has a limit, and so has the number of connections.

Servers of the standard library and waitress keep a connection for as long as its client likes, or refuse new ones when
there are too many. Here the connection that has waited longest makes room for a new one, so that whoever asks at once
is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Generic, TypeVar
from urllib.parse import unquote, urlsplit

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_CONNECTIONS = 64
"""Connections at once; fewer where a quarter of the files that the process may open is less."""

READ_WITHIN_S = 10.0
"""Longest from the connection to the end of the request, however its bytes drip in."""

ANSWER_WITHIN_S = 30.0
"""Longest from there until the client has the answer."""

MAX_REQUEST_BYTES = 16_384
"""Request line and headers together."""

_RETRY_S = 0.1
_END = b"\r\n\r\n"


@dataclass(frozen=True)
class Request:
    """A request without a body: path, decoded, and the headers by their names in lower case."""

    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Response:
    """An answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)

    def encode(self, *, with_body: bool = True) -> bytes:
        """Return it as it is sent."""
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
            "X-Content-Type-Options: nosniff",
            "Cache-Control: no-store",
            "Connection: close",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join(lines).encode("latin-1", "replace") + _END + (self.body if with_body else b"")


def text_response(status: HTTPStatus, text: str) -> Response:
    """Return an answer of one line of text."""
    return Response(status, text.encode("utf-8", "replace") + b"\n")


def listen(address: tuple[str, int]) -> socket.socket:
    """Return a socket that listens at host and port; port 0 takes a free one.

    Raises
    ------
    OSError
        The address is in use or not ours.
    """
    return socket.create_server(address, family=socket.AF_INET6 if ":" in address[0] else socket.AF_INET, backlog=128)


class HttpServer:
    """Answers requests in a thread of its own, one per connection, until `stop`.

    Parameters
    ----------
    address
        As for `listen`, or a socket that listens already.
    answer
        Returns the answer to a request. It must not block: what takes long is awaited.
    max_connections
        As `MAX_CONNECTIONS`.

    Raises
    ------
    OSError
        The address is in use or not ours.
    """

    def __init__(
        self,
        address: tuple[str, int] | socket.socket,
        answer: Callable[[Request], Awaitable[Response]],
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._listener = address if isinstance(address, socket.socket) else listen(address)
        self._listener.setblocking(False)
        self._answer = answer
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = max(min(max_connections, files // 4), 1)
        self._connections: dict[asyncio.Task[None], bool] = {}
        """The oldest first; whether it has sent its request."""
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._tell)
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)
        self._accepting: asyncio.Task[Any] | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        port: int = self._listener.getsockname()[1]
        return port

    def start(self) -> None:
        """Serve."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection."""
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._end)
        self._thread.join(5.0)
        self._listener.close()

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serve_all())
        self._loop.close()

    async def _serve_all(self) -> None:
        self._accepting = asyncio.current_task()
        try:
            await self._accept()
        finally:
            connections = list(self._connections)
            for task in connections:
                task.cancel()
            if connections:
                await asyncio.wait(connections)

    def _end(self) -> None:
        self._is_ending = True
        if self._accepting is not None:
            self._accepting.cancel()

    def _tell(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what nobody has caught, but for the client who connects in the moment at which accepting is cancelled.

        asyncio hands them to a future that has ended already.
        """
        if not (self._is_ending and isinstance(context.get("exception"), asyncio.InvalidStateError)):
            loop.default_exception_handler(context)

    async def _accept(self) -> None:
        while True:
            try:
                client, _ = await self._loop.sock_accept(self._listener)
            except OSError:  # no file is left for it, or it has gone
                if not await self._make_room():
                    await asyncio.sleep(_RETRY_S)
                continue
            if len(self._connections) >= self._most:
                await self._make_room()
            task = self._loop.create_task(self._serve(client))
            self._connections[task] = False
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task, None)
        if not task.cancelled() and (error := task.exception()):
            logger.warning("a request could not be answered: %s", type(error).__name__)

    async def _make_room(self) -> bool:
        """Close the oldest connection without a request, or else the oldest; return whether there is one."""
        waiting = [task for task, has_asked in self._connections.items() if not has_asked]
        for task in waiting[:1] or list(self._connections)[:1]:
            task.cancel()
            await asyncio.wait([task])
            return True
        return False

    async def _serve(self, client: socket.socket) -> None:
        # What a client does that goes away, or never asks, is no news.
        with client, contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(READ_WITHIN_S):
                head = await self._read(client)
            if (task := asyncio.current_task()) is not None:
                self._connections[task] = True
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._loop.sock_sendall(client, await self._response(head))
                client.shutdown(socket.SHUT_WR)

    async def _read(self, client: socket.socket) -> bytes:
        head = b""
        while _END not in head and len(head) <= MAX_REQUEST_BYTES:
            received = await self._loop.sock_recv(client, 4096)
            if not received:
                raise ConnectionResetError
            head += received
        return head.partition(_END)[0] if _END in head else b""

    async def _response(self, head: bytes) -> bytes:
        if not head:
            return _refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        line, *rest = head.decode("latin-1").split("\r\n")
        words = line.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _refused(HTTPStatus.BAD_REQUEST)
        if words[0] not in ("GET", "HEAD"):
            return _refused(HTTPStatus.METHOD_NOT_ALLOWED)
        try:
            path = unquote(urlsplit(words[1]).path)
        except ValueError:  # an address in it that is none
            return _refused(HTTPStatus.BAD_REQUEST)
        pairs = (header.partition(":") for header in rest)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        response = await self._answer(Request(path, headers))
        return response.encode(with_body=words[0] == "GET")


def _refused(status: HTTPStatus) -> bytes:
    return Response(status, status.phrase.encode() + b"\n").encode()


class SingleFlight(Generic[T]):
    """Lets those who ask for the same at the same time share one answer, which a thread makes.

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
        """Return the answer; one who goes away does not end it for the others."""
        made = self._under_way.get(key)
        if made is None:
            made = asyncio.get_running_loop().run_in_executor(self._thread, self._make, key)
            self._under_way[key] = made
            made.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await asyncio.shield(made)
