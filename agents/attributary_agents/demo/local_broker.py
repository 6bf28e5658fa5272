"""Interface of a broker, and a broker that runs as a child process."""

import abc
import atexit
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import ClassVar, Self

from ..errors import AttributaryError
from .processes import kill_child, start_child, stop_child

HOST = "127.0.0.1"
# Below the range from which Linux takes the ports of outgoing connections: otherwise a client that keeps
# trying while the broker restarts can be given the broker's own port, connect to itself and hold it.
_ALL_PORTS = (20_000, 32_000)
_ports = _ALL_PORTS
_given: set[int] = set()
_random = random.SystemRandom()  # not the global one: test processes with equal seeds would pick equal ports
_STOP_TIMEOUT_S = 30.0
_LOG_LINES_SHOWN = 15


class BrokerError(AttributaryError):
    """Failure to start or reach a broker; the text says how to fix it."""


class BrokerMissingError(BrokerError):
    """Says that something the broker needs is not installed."""


class Broker(abc.ABC):
    """A Kafka broker; as a context manager it runs inside the block.

    After the block nothing of it is left, unless the caller gave the data folder.
    """

    name: ClassVar[str]

    @property
    @abc.abstractmethod
    def bootstrap(self) -> str:
        """Where clients connect: host:port."""

    @property
    def pid(self) -> int | None:
        """Process id of a broker that runs and was started here."""
        return None

    @abc.abstractmethod
    def start(self) -> None:
        """Return once the broker serves requests.

        After `stop` or `kill` it has the same port and data as before.
        """

    @abc.abstractmethod
    def stop(self) -> None:
        """End the broker in an orderly way and keep its data."""

    @abc.abstractmethod
    def kill(self) -> None:
        """End the broker with SIGKILL."""

    def close(self) -> None:
        """Stop, and remove the data unless its folder was given by the caller."""
        self.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LocalBroker(Broker):
    """Runs a broker as a child process."""

    _death_signal: ClassVar[signal.Signals]
    _start_timeout_s: ClassVar[float]

    def __init__(self, data_dir: Path | None = None) -> None:
        self._dir = data_dir.absolute() if data_dir else None
        self._dir_is_ours = False
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect: host:port."""
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int | None:
        """The broker's process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start the process and return once it answers a request."""
        if self.pid is None:
            self.launch()
            self.wait_until_ready()

    def launch(self) -> None:
        """Start the process and return at once."""
        self._require()
        if self._dir is None:
            self._dir = Path(tempfile.mkdtemp(prefix=f"attributary-{self.name}-"))
            self._dir_is_ours = True
            atexit.register(self.close)
        self._dir.mkdir(parents=True, exist_ok=True)
        argv = self._prepare(self._dir)
        self._process = start_child(argv, log=self.log, death_signal=self._death_signal)

    def wait_until_ready(self) -> None:
        """Return once the process that was launched answers a request."""
        assert self._process is not None
        try:
            self._wait_until_served(self._process)
            self._configure()
        except BaseException:  # Ctrl-C too
            kill_child(self._process)
            raise

    def stop(self) -> None:
        """End the broker in an orderly way and keep its data."""
        if self._process is not None:
            stop_child(self._process, _STOP_TIMEOUT_S)

    def kill(self) -> None:
        """End the broker with SIGKILL."""
        if self._process is not None:
            kill_child(self._process)

    def close(self) -> None:
        """Stop, and remove the data unless its folder was given by the caller."""
        self.stop()
        atexit.unregister(self.close)
        if self._dir_is_ours and self._dir is not None:
            shutil.rmtree(self._dir, ignore_errors=True)
            self._dir, self._dir_is_ours = None, False

    @abc.abstractmethod
    def _require(self) -> None:
        """Raise BrokerMissingError where something needed is not installed."""

    @abc.abstractmethod
    def _prepare(self, folder: Path) -> list[str]:
        """Write the broker's start-up files and return its command line."""

    def _configure(self) -> None:
        """Apply settings that can only be set while the broker runs."""

    @property
    def log(self) -> Path:
        """File to which the broker's output goes."""
        assert self._dir is not None
        return self._dir / "broker.log"

    def _wait_until_served(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        while not _serves(self._port):
            if (status := process.poll()) is not None:
                raise self.failure(f"ended with status {status}")
            if time.monotonic() > deadline:
                raise self.failure(f"served no request within {self._start_timeout_s:.0f} s")
            time.sleep(0.02)

    def failure(self, what: str) -> BrokerError:
        """Return an error that starting failed, with the end of the log."""
        self._dir_is_ours = False  # the message names the log: leave it there
        with self.log.open(encoding="utf-8", errors="replace") as lines:
            telling = (line for line in lines if not line.startswith("\t"))  # no frames of Java's stack traces
            tail = "".join(deque(telling, _LOG_LINES_SHOWN)).rstrip()
        return BrokerError(f"the {self.name} broker {what}; the end of its log {self.log}:\n{tail}")


def use_share_of_ports(number: int, of: int) -> None:
    """Restrict `free_port` to share `number` of `of` equal shares.

    Shares are counted from 0. Processes with different shares never get the same port, not even that of a broker which
    is down for a while.
    """
    global _ports
    first, end = _ALL_PORTS
    width = (end - first) // of
    _ports = (first + number * width, first + (number + 1) * width)


def free_port() -> int:
    """Return a port on which nothing listens, another at each call.

    The owner of an earlier port may not listen yet, or may be down.
    """
    if 2 * len(_given) > _ports[1] - _ports[0]:
        _given.clear()
    for _ in range(1000):
        port = _random.randrange(*_ports)
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise BrokerError(f"no free port between {_ports[0]} and {_ports[1]}: end what listens there")


def ask(port: int, api: int, version: int, body: bytes) -> bytes:
    """Send a Kafka request to a local broker and return its answer.

    The answer comes without the correlation id. Two requests written by hand, because a client library wants an event
    loop and the caller may be in one.
    """
    header = struct.pack(">hhih", api, version, 1, -1)  # correlation id 1, no client id
    with socket.create_connection((HOST, port), timeout=5) as connection:
        connection.sendall(struct.pack(">i", len(header + body)) + header + body)
        (length,) = struct.unpack(">i", _receive(connection, 4))
        return _receive(connection, length)[4:]


def _receive(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        part = connection.recv(length - len(received))
        if not part:
            raise ConnectionError("the broker closed the connection")
        received += part
    return received


def _serves(port: int) -> bool:
    """Return whether the broker counts itself as alive.

    An open port is not enough: Kafka accepts connections before its controller counts it as alive, and
    refuses to create topics until then.
    """
    try:
        answer = ask(port, 3, 1, struct.pack(">i", 0))  # Metadata v1 of no topic: the live brokers
    except OSError:
        return False
    return bool(struct.unpack(">i", answer[:4])[0] > 0)
