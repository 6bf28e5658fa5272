"""A TCP proxy that knows enough of Kafka's protocol to fail exactly where it hurts."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from attributary_agents.demo.local_broker import HOST

_PRODUCE = 0


@dataclass(frozen=True)
class Fault:
    """What is done to one produce request.

    Attributes
    ----------
    how
        "reset before": the connection is reset instead of forwarding it. "reset after": when the broker has it, before
        its answer. "swallow request", "swallow answer": nothing comes through for `seconds`, then the connection is
        reset. "delay": it is forwarded after `seconds`.
    topic
        A part of the body: of requests that write to this topic.
    """

    how: str
    topic: str
    seconds: float = 0.0


class Proxy(threading.Thread):
    """Forwards between workers and a broker; faults are armed from another thread, and each hits one request."""

    def __init__(self, listen_port: int, target_port: int) -> None:
        super().__init__(name="proxy", daemon=True)
        self._ports = listen_port, target_port
        self._armed: list[Fault] = []
        self._lock = threading.Lock()
        self._up: Future[None] = Future()
        self._loop = asyncio.new_event_loop()
        self.done: list[Fault] = []
        """Faults that have hit a request."""
        self.n_produced = 0
        """Produce requests that came by."""

    def arm(self, fault: Fault) -> None:
        """Let the next matching request meet the fault."""
        with self._lock:
            self._armed.append(fault)

    def disarm(self) -> None:
        """Take back what has not hit yet."""
        with self._lock:
            self._armed.clear()

    @property
    def n_armed(self) -> int:
        """Faults that have not hit yet."""
        with self._lock:
            return len(self._armed)

    def run(self) -> None:
        """Called by `start`, in the thread."""
        self._loop.run_until_complete(self._listen())
        self._loop.run_forever()

    def wait_up(self) -> None:
        """Return once it listens; raise where it cannot."""
        self._up.result(10)

    def stop(self) -> None:
        """Drop all connections and listen no more."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join()

    async def _listen(self) -> None:
        try:
            await asyncio.start_server(self._connected, HOST, self._ports[0])
        except OSError as error:
            self._up.set_exception(error)
        else:
            self._up.set_result(None)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker_reader, broker_writer = await asyncio.open_connection(HOST, self._ports[1])
        except OSError:  # the broker is away: so are we
            writer.transport.abort()
            return
        connection = _Connection(writer, broker_writer)
        await asyncio.gather(
            self._requests(reader, connection), _answers(broker_reader, connection), return_exceptions=True
        )
        connection.reset()

    async def _requests(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        try:
            while True:
                head = await reader.readexactly(4)
                request = await reader.readexactly(struct.unpack(">i", head)[0])
                fault = self._fault(request)
                if fault is None or await _meet(fault, connection, head + request):
                    connection.broker.write(head + request)
                    await connection.broker.drain()
        except (asyncio.IncompleteReadError, OSError):
            connection.reset()

    def _fault(self, request: bytes) -> Fault | None:
        if struct.unpack(">h", request[:2])[0] != _PRODUCE:
            return None
        with self._lock:
            self.n_produced += 1
            for fault in self._armed:
                if fault.topic.encode() in request:
                    self._armed.remove(fault)
                    self.done.append(fault)
                    return fault
        return None


async def _meet(fault: Fault, connection: _Connection, request: bytes) -> bool:
    """Do it; return whether the request is still to be forwarded."""
    if fault.how == "delay":
        await asyncio.sleep(fault.seconds)
        return True
    if fault.how in ("reset after", "swallow answer"):
        connection.mute = True
        connection.broker.write(request)
        await connection.broker.drain()
        await asyncio.sleep(0.1)  # for the broker to write it down
    if fault.how in ("swallow request", "swallow answer"):
        await asyncio.sleep(fault.seconds)
    connection.reset()
    return False


class _Connection:
    """Both sides of one connection."""

    def __init__(self, worker: asyncio.StreamWriter, broker: asyncio.StreamWriter) -> None:
        self.worker = worker
        self.broker = broker
        self.mute = False
        """Whether answers are dropped."""

    def reset(self) -> None:
        """RST on both sides."""
        for side in (self.worker, self.broker):
            if (sock := side.get_extra_info("socket")) is not None and sock.fileno() >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            side.transport.abort()


async def _answers(reader: asyncio.StreamReader, connection: _Connection) -> None:
    try:
        while part := await reader.read(65536):
            if not connection.mute:
                connection.worker.write(part)
                await connection.worker.drain()
    except OSError:
        pass
    connection.reset()


def plan(n: int, rng: random.Random, topics: list[str], longest_s: float) -> list[Fault]:
    """Faults of every kind in random order, half of them on the first topic."""
    kinds: list[Callable[[str], Fault]] = [
        lambda topic: Fault("reset before", topic),
        lambda topic: Fault("reset after", topic),
        lambda topic: Fault("swallow request", topic, rng.uniform(0.2, 1) * longest_s),
        lambda topic: Fault("swallow answer", topic, rng.uniform(0.2, 1) * longest_s),
        lambda topic: Fault("delay", topic, rng.uniform(0.2, 1) * longest_s),
    ]
    made = [kinds[i % len(kinds)](topics[0] if i % 2 == 0 else rng.choice(topics)) for i in range(n)]
    rng.shuffle(made)
    return made
