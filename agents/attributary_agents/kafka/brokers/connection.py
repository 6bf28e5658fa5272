"""Corrections to how aiokafka 0.14.0 connects to brokers.

There is a back-off for each broker, connecting has a time limit, and `BROKERS` sees each attempt and answer. Where no
broker that a client knows answers, it finds others by the configured ones.

Upstream tries again every 100 ms, from each of its loops, and logs each attempt at ERROR. An attempt may last as long
as a request, which for a worker is minutes. A network that drops what is sent is noticed after as long.

`python -m benchmarks.cluster away` counts the attempts to connect.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import aiokafka.client
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaConnectionError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    NotCoordinatorForGroupError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
)

from .watch import BROKERS, cause_of

T = TypeVar("T")

FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 2.0
"""Seconds between two attempts to connect to the same broker: at first, and at most."""

CONNECT_WITHIN_S = 10.0
"""Longest attempt to connect, with TLS and SASL."""

UNACKNOWLEDGED_S = 15
"""Seconds for which the network may leave what was sent without an acknowledgement; then the connection ends."""

ASK_AFTER_S, ANSWER_WITHIN_S = 5.0, 5.0
"""A broker that has been silent for the first is asked, and fails where it does not answer within the second."""


class Backoff:
    """Back-off after failures to connect to a broker, with jitter.

    Each wait is twice as long as the last.

    Parameters
    ----------
    draw
        Returns a number between 0 and 1, by which the brokers' clients do not come all at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, draw: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._draw = draw
        self._n_failures = 0
        self._not_before = -math.inf
        self.lock = asyncio.Lock()
        """Held by the one attempt that is under way."""

    @property
    def wait_s(self) -> float:
        """Seconds to the next attempt; 0 where it is time for it."""
        return max(self._not_before - self._clock(), 0.0)

    def note(self, *, connected: bool) -> None:
        """Note how an attempt has ended."""
        self._n_failures = 0 if connected else self._n_failures + 1
        if connected:
            self._not_before = -math.inf
            return
        longest = min(FIRST_WAIT_S * 2 ** min(self._n_failures - 1, 30), LONGEST_WAIT_S)
        self._not_before = self._clock() + longest * (1 + self._draw()) / 2


async def keep_asking(find_client: Callable[[], AIOKafkaClient | None]) -> None:
    """Ask silent brokers, so that a broker that hangs is noticed.

    A broker is asked where nothing has been heard of it for a time; this never ends. A broker that has stopped in the
    middle of something keeps its connections: no other request would end for minutes.

    Parameters
    ----------
    find_client
        Returns the client that asks, of the running event loop; None while there is none.
    """
    asked: dict[str, _Question] = {}
    while True:
        began = time.monotonic()
        await asyncio.sleep(_LOOK_S)
        is_free = time.monotonic() - began < 1.5 * _LOOK_S
        for node, question in list(asked.items()):
            if question.answer.done():
                if not question.answer.cancelled():
                    question.answer.exception()  # noted where it arose
                del asked[node]
                continue
            if BROKERS.silent_s_of(node) < ASK_AFTER_S:  # by another connection
                question.waited_s = 0.0
            elif is_free:  # an answer that has arrived is not read while a step blocks the event loop
                question.waited_s += _LOOK_S
            if question.waited_s >= ANSWER_WITHIN_S:
                BROKERS.fail(node, f"connected, and no answer within {ANSWER_WITHIN_S:g} s")
        for node in BROKERS.to_probe:
            if node not in asked and node in _addresses:
                asked[node] = _Question(asyncio.ensure_future(_probe(node)))
        client = find_client()
        if client is None or (BROKERS.silent_s < ASK_AFTER_S and not BROKERS.is_lost):
            continue
        nodes = {f"{broker.host}:{broker.port}": broker.nodeId for broker in client.cluster.brokers()}
        others = sorted(nodes.keys() - asked.keys(), key=lambda node: (BROKERS.silent_s_of(node), node))
        for node in others[:_ASKED]:
            asked[node] = _Question(asyncio.ensure_future(_ask(client, nodes[node])))


_LOOK_S = 1.0  # between two looks at what has answered
_ASKED = 3  # brokers that are asked at each look


@dataclass
class _Question:
    """Question to a broker, and how long its answer has been missing.

    Only time counts in which the event loop could have read it.
    """

    answer: asyncio.Future[None]
    waited_s: float = 0.0


async def _probe(node: str) -> None:
    """Connect to a broker once, with the options of an earlier client.

    How the attempt ends is noted.
    """
    host, port, options = _addresses[node]
    (await _watched_create_conn(host, port, **options)).close()


_addresses: dict[str, tuple[str, int, dict[str, Any]]] = {}
"""How the clients of this process connect to each broker."""


async def _ask(client: AIOKafkaClient, node_id: int) -> None:
    conn = await client._get_conn(node_id)
    if conn is not None:
        await conn.send(aiokafka.client.MetadataRequest([]))


async def _within(task: asyncio.Future[T], seconds: float) -> T:
    """Return a task's result; raise TimeoutError after some seconds.

    Seconds in which the event loop was blocked do not count.
    """
    try:
        while True:
            began = time.monotonic()
            await asyncio.wait({task}, timeout=seconds)
            if task.done():
                return task.result()
            if time.monotonic() - began < 1.5 * seconds:
                raise TimeoutError(f"not connected within {seconds:g} s")
    finally:
        task.cancel()


def _close_unseen(connecting: asyncio.Future[AIOKafkaConnection]) -> None:
    """Close a connection that came when nobody waited for it any more."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()


_create_conn = aiokafka.client.create_conn
_get_conn = AIOKafkaClient._get_conn
_metadata_update = AIOKafkaClient._metadata_update
_handle_frame = AIOKafkaConnection._handle_frame


async def _watched_create_conn(host: str, port: int, **options: Any) -> AIOKafkaConnection:
    """Connect as upstream does, within CONNECT_WITHIN_S, and note how it ends."""
    node, on_close = f"{host}:{port}", options.pop("on_close", None)
    _addresses[node] = host, port, options

    def closed(conn: AIOKafkaConnection, reason: CloseReason) -> None:
        if reason in (CloseReason.CONNECTION_BROKEN, CloseReason.CONNECTION_TIMEOUT):
            BROKERS.fail(node, "the connection broke" if reason is CloseReason.CONNECTION_BROKEN else "no answer")
        if on_close is not None:
            on_close(conn, reason)

    BROKERS.attempt()
    connecting = asyncio.ensure_future(_create_conn(host, port, on_close=closed, **options))
    try:
        conn = await _within(connecting, CONNECT_WITHIN_S)
    except BaseException as error:
        connecting.add_done_callback(_close_unseen)
        if isinstance(error, Exception):
            BROKERS.fail(node, cause_of(error))
        raise
    conn.is_established = True
    _end_when_unacknowledged(conn)
    BROKERS.answer(node)
    return conn


def _end_when_unacknowledged(conn: AIOKafkaConnection) -> None:
    """Let the system end a connection over which nothing comes through.

    Then the machine or the network is gone. A blocked event loop does not count, nor does a stopped broker that has
    room for what arrives: their systems acknowledge it. Where that room is full, Linux ends the connection from 5.11
    on, and the next attempt fails in time.
    """
    found = None if conn._writer is None else conn._writer.get_extra_info("socket")
    if found is None or not hasattr(socket, "TCP_USER_TIMEOUT"):  # only Linux has it
        return
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_S * 1000)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, UNACKNOWLEDGED_S)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, UNACKNOWLEDGED_S // 3)


async def _patient_get_conn(self: AIOKafkaClient, node_id: Any, **options: Any) -> AIOKafkaConnection | None:
    """Return a connection; None at once while the broker's back-off lasts."""
    conn = self._conns.get((node_id, options.get("group", aiokafka.client.ConnectionGroup.DEFAULT)))
    broker = self.cluster.broker_metadata(node_id)
    if broker is None or (conn is not None and conn.connected()):
        return await _get_conn(self, node_id, **options)
    backoffs: dict[tuple[str, int], Backoff] = self.__dict__.setdefault("_backoffs", {})
    backoff = backoffs.setdefault((broker.host, broker.port), Backoff())
    async with backoff.lock:
        if backoff.wait_s:
            return None
        conn = await _get_conn(self, node_id, **options)
        backoff.note(connected=conn is not None)
        return conn


async def _found_metadata_update(self: AIOKafkaClient, cluster: ClusterMetadata, topics: Any) -> bool:
    """Update metadata, by the configured brokers if no known broker answers.

    A client knows the brokers that its last answer named. Where that was while others were away, and these are away in
    turn, upstream waits for them, though the others are back: for so long a worker gets and sends nothing.
    """
    if await _metadata_update(self, cluster, topics):
        return True
    known = {(broker.host, broker.port) for broker in self.cluster.brokers()}
    hosts = [(f"[{host}]" if ":" in host else host, port) for host, port, _ in self.hosts if (host, port) not in known]
    backoff: Backoff = self.__dict__.setdefault("_finding", Backoff())
    if not hosts or backoff.wait_s:
        return False
    options = {name: getattr(self, f"_{name}") for name in _OF_CONNECTIONS}
    other = AIOKafkaClient(bootstrap_servers=[f"{host}:{port}" for host, port in hosts], **options)
    try:
        await other.bootstrap()
    except KafkaConnectionError:
        backoff.note(connected=False)
        return False
    finally:
        await other.close()
    backoff.note(connected=True)
    # The brokers alone: an answer without the topics would be taken for one that says that there are none.
    self.cluster._brokers.update({broker.nodeId: broker for broker in other.cluster.brokers()})
    return bool(await _metadata_update(self, cluster, topics))


_OF_CONNECTIONS = (
    "client_id",
    "request_timeout_ms",
    "connections_max_idle_ms",
    "security_protocol",
    "ssl_context",
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "sasl_kerberos_service_name",
    "sasl_kerberos_domain_name",
    "sasl_oauth_token_provider",
)
"""What clients have in common that connect in the same way."""


def _seen_handle_frame(self: AIOKafkaConnection, resp: Any) -> None:
    _handle_frame(self, resp)
    if getattr(self, "is_established", False):  # a broker that refuses answers as well
        BROKERS.answer(f"{self.host}:{self.port}")


_ABOUT_CONNECTING = (
    "Unable connect to",
    "Unable to request metadata",
    "Unable to update metadata",
    "Heartbeat session expired",
)

_PASSING = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaConnectionError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    NotCoordinatorForGroupError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
)
"""Errors of requests to a broker that has gone, or that is no longer or not yet responsible: clients ask again."""


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a client's log line is to be written.

    Lines that follow from a broker that is away are not: BROKERS says that it is. Where no broker is known to be away,
    a request that the client repeats is no error.
    """
    if record.levelno >= logging.CRITICAL:
        return True
    arguments = record.args if isinstance(record.args, tuple) else ()
    is_passing = any(isinstance(one, _PASSING) or one in _PASSING for one in arguments)
    if BROKERS.is_failing and (is_passing or str(record.msg).startswith(_ABOUT_CONNECTING)):
        return False
    if is_passing and record.levelno == logging.ERROR:
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    return BROKERS.is_settled


_CLIENTS = (
    "aiokafka",
    "aiokafka.cluster",
    "aiokafka.conn",
    "aiokafka.consumer.consumer",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
    "aiokafka.producer.producer",
    "aiokafka.producer.sender",
)
"""Loggers of aiokafka: a filter does not concern the loggers below its own."""


def install() -> None:
    """Make all clients of this process connect by these corrections.

    Further calls change nothing.
    """
    aiokafka.client.create_conn = _watched_create_conn
    AIOKafkaClient._get_conn = _patient_get_conn
    AIOKafkaClient._metadata_update = _found_metadata_update
    AIOKafkaConnection._handle_frame = _seen_handle_frame
    for name in _CLIENTS:
        logging.getLogger(name).addFilter(_is_news)
