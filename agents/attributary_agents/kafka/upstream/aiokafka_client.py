"""Correction of `aiokafka.client.AIOKafkaClient` and its connections.

- It tries again every 100 ms, from each of its loops, whatever `retry_backoff_ms` its owner can set.
- An attempt may last as long as a request, which for a worker is minutes, and holds up those to all other brokers.
- A network that drops what is sent is noticed after as long.
- It knows the brokers that its last answer named. Where that was while others were away, and these are away in turn, it
  waits for them, though the others are back (aiokafka issue 456; Kafka's own clients since KIP-899).
- It tells nobody of answers and failures, by which `BROKERS` knows who is away.

True for aiokafka 0.14.0; `test_aiokafka_client.py` says when it is mended.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import Any, NamedTuple, TypeVar

import aiokafka.client
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError

from ..brokers import BROKERS, Backoff, cause_of

T = TypeVar("T")

CONNECT_WITHIN_S = 10.0
"""Longest attempt to connect, with TLS and SASL."""

UNACKNOWLEDGED_S = 15
"""Seconds for which the network may leave what was sent without an acknowledgement; then the connection ends."""

_create_conn = aiokafka.client.create_conn
_get_conn = AIOKafkaClient._get_conn
_metadata_update = AIOKafkaClient._metadata_update
_handle_frame = AIOKafkaConnection._handle_frame

_addresses: dict[str, tuple[str, int, dict[str, Any]]] = {}
"""How the clients of this process connect to each broker."""

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


class _Connecting(NamedTuple):
    """Lock of the only attempt to connect to a broker, and its back-off."""

    lock: asyncio.Lock
    backoff: Backoff


def is_known(node: str) -> bool:
    """Return whether a client of this process has tried to connect here."""
    return node in _addresses


async def probe(node: str) -> None:
    """Connect to a broker once, with the options of an earlier client."""
    host, port, options = _addresses[node]
    (await _watched_create_conn(host, port, **options)).close()


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
    sock = None if conn._writer is None else conn._writer.get_extra_info("socket")
    if sock is None or not hasattr(socket, "TCP_USER_TIMEOUT"):  # only Linux has it
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_S * 1000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, UNACKNOWLEDGED_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, UNACKNOWLEDGED_S // 3)


async def _patient_get_conn(self: AIOKafkaClient, node_id: Any, **options: Any) -> AIOKafkaConnection | None:
    """Return a connection; None at once while the broker's back-off lasts."""
    conn = self._conns.get((node_id, options.get("group", aiokafka.client.ConnectionGroup.DEFAULT)))
    broker = self.cluster.broker_metadata(node_id)
    if broker is None or (conn is not None and conn.connected()):
        return await _get_conn(self, node_id, **options)
    self._get_conn_lock_value = contextlib.nullcontext()  # in place of the one lock for all brokers
    attempts: dict[tuple[str, int], _Connecting] = self.__dict__.setdefault("_attempts", {})
    lock, backoff = attempts.setdefault((broker.host, broker.port), _Connecting(asyncio.Lock(), Backoff()))
    async with lock:
        if backoff.wait_s:
            return None
        conn = await _get_conn(self, node_id, **options)
        backoff.note(connected=conn is not None)
        return conn


async def _found_metadata_update(self: AIOKafkaClient, cluster: ClusterMetadata, topics: Any) -> bool:
    """Update metadata, by the configured brokers if no known broker answers."""
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


def _seen_handle_frame(self: AIOKafkaConnection, resp: Any) -> None:
    _handle_frame(self, resp)
    if getattr(self, "is_established", False):  # a broker that refuses answers as well
        BROKERS.answer(f"{self.host}:{self.port}")


def watch_connections() -> None:
    """Make all clients of this process connect by these corrections."""
    aiokafka.client.create_conn = _watched_create_conn
    AIOKafkaClient._get_conn = _patient_get_conn
    AIOKafkaClient._metadata_update = _found_metadata_update
    AIOKafkaConnection._handle_frame = _seen_handle_frame
