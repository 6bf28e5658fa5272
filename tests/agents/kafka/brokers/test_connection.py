"""How clients connect to a broker that comes and goes, against a port that nobody listens at and one that hangs."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import pkgutil
import socket
import time
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import aiokafka
import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import NodeNotReadyError, NotLeaderForPartitionError, TopicAuthorizationFailedError
from aiokafka.structs import BrokerMetadata

from attributary_agents.demo.local_broker import free_port
from attributary_agents.kafka.brokers import connection
from attributary_agents.kafka.brokers import watch as watch_module
from attributary_agents.kafka.brokers.connection import (
    FIRST_WAIT_S,
    LONGEST_WAIT_S,
    UNACKNOWLEDGED_S,
    Backoff,
    keep_asking,
)
from attributary_agents.kafka.brokers.watch import BrokerWatch
from tests.agents.kafka.fake_cluster import FakeCluster, FakeTopic


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerWatch]:
    """What this test's clients see."""
    connection.install()
    fresh = BrokerWatch()
    monkeypatch.setattr(connection, "BROKERS", fresh)
    return fresh


def test_waits_double_from_the_least_to_the_longest_with_jitter_and_begin_anew() -> None:
    for draw in (0.0, 1.0):
        backoff = Backoff(float, partial(float, draw))
        assert backoff.wait_s == 0
        waits = []
        for _ in range(2000):
            backoff.note(connected=False)
            waits.append(backoff.wait_s)
        wanted = [min(FIRST_WAIT_S * 2**n, LONGEST_WAIT_S) * (1 + draw) / 2 for n in range(8)]
        assert waits[:8] == wanted
        assert waits[-1] == LONGEST_WAIT_S * (1 + draw) / 2
        backoff.note(connected=True)
        assert backoff.wait_s == 0
        backoff.note(connected=False)
        assert backoff.wait_s == wanted[0]


async def _client_of(port: int) -> AIOKafkaClient:
    client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{port}")
    client.cluster._brokers = {1: BrokerMetadata(1, "127.0.0.1", port, None)}
    return client


def test_a_broker_that_refuses_is_not_asked_again_before_its_time(watch: BrokerWatch) -> None:
    async def run() -> None:
        client = await _client_of(free_port())
        found = await asyncio.gather(*(client._get_conn(1) for _ in range(50)))
        assert found == [None] * 50
        assert watch.n_attempts == 1, "the others come in the back-off's time"
        await asyncio.sleep(2 * FIRST_WAIT_S)
        assert await client._get_conn(1) is None
        assert watch.n_attempts == 2
        await client.close()

    asyncio.run(run())
    assert watch.is_failing
    assert not watch.is_settled


class Answers:
    """A connection to a broker of a cluster that answers from memory."""

    def __init__(self, cluster: FakeCluster, number: int) -> None:
        self._cluster, self._number = cluster, number
        self._writer = None

    async def send(self, request: Any) -> Any:
        return self._cluster.answer(self._number, request)

    def connected(self) -> bool:
        return self._number not in self._cluster.down

    def close(self, reason: Any = None) -> asyncio.Future[None]:
        return asyncio.ensure_future(asyncio.sleep(0))


def test_a_client_whose_brokers_have_gone_finds_those_that_are_back_by_the_configured_ones(
    watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last answer came while brokers 1 and 2 were away; now 3 is, and they are back."""
    cluster = FakeCluster(3, {"observations": FakeTopic(2)})
    cluster.down, attempts = {3}, []

    async def create(host: str, port: int, **options: Any) -> Any:
        attempts.append((port, options["client_id"], options["sasl_mechanism"]))
        if port - 9000 in cluster.down:
            raise ConnectionRefusedError
        return Answers(cluster, port - 9000)

    monkeypatch.setattr(connection, "_create_conn", create)

    async def run() -> None:
        client = AIOKafkaClient(
            bootstrap_servers=[f"127.0.0.1:900{n}" for n in (1, 2, 3)], client_id="ours", sasl_mechanism="GSSAPI"
        )
        client.cluster._brokers = {3: BrokerMetadata(3, "127.0.0.1", 9003, None)}
        told: list[set[str]] = []
        client.cluster.add_listener(lambda known: told.append(known.topics()))
        assert await client._metadata_update(client.cluster, {"observations"})
        assert {broker.nodeId for broker in client.cluster.brokers()} == {1, 2, 3}
        assert client.cluster.partitions_for_topic("observations") == {0, 1}
        assert told == [{"observations"}], "no answer without the topics is taken for one about them"
        assert {attempt[1:] for attempt in attempts} == {("ours", "GSSAPI")}
        await client.close()

    asyncio.run(run())


def test_where_all_configured_brokers_are_known_no_further_one_is_looked_for(watch: BrokerWatch) -> None:
    async def run() -> None:
        client = await _client_of(free_port())
        assert not await client._metadata_update(client.cluster, {"observations"})
        assert watch.n_attempts == 1
        await client.close()

    asyncio.run(run())


def test_brokers_are_looked_for_with_a_back_off(watch: BrokerWatch) -> None:
    async def run() -> None:
        client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{free_port()}")
        for _ in range(20):
            assert not await client._metadata_update(client.cluster, {"observations"})
        assert watch.n_attempts == 1
        await asyncio.sleep(2 * FIRST_WAIT_S)
        assert not await client._metadata_update(client.cluster, {"observations"})
        assert watch.n_attempts == 2
        await client.close()

    asyncio.run(run())


def test_a_broker_that_accepts_and_does_not_answer_fails_in_time(
    watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_WITHIN_S", 0.2)

    async def run(port: int) -> None:
        client = await _client_of(port)
        assert await client._get_conn(1) is None
        await client.close()

    with socket.create_server(("127.0.0.1", 0)) as hanging:
        port = hanging.getsockname()[1]
        asyncio.run(run(port))
    assert watch.nodes == f"127.0.0.1:{port}"
    assert watch.last_answer_s is None


def test_a_network_that_swallows_what_is_sent_ends_the_connection() -> None:
    if not hasattr(socket, "TCP_USER_TIMEOUT"):
        pytest.skip("only Linux bounds how long what is sent may be unacknowledged")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        writer = SimpleNamespace(get_extra_info={"socket": ours}.get)
        connection._end_when_unacknowledged(SimpleNamespace(_writer=writer))
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNACKNOWLEDGED_S * 1000
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == UNACKNOWLEDGED_S


def test_a_silent_broker_is_asked_and_fails_where_it_does_not_answer(
    watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ANSWER_WITHIN_S", 0.0)

    class Hanging:
        """A client whose broker keeps its connection and does not answer."""

        cluster = SimpleNamespace(brokers=lambda: {BrokerMetadata(1, "kafka", 9092, None)})

        async def _get_conn(self, _node_id: int) -> None:
            await asyncio.Event().wait()

    async def run() -> None:
        asking = asyncio.ensure_future(keep_asking(Hanging))
        while not watch.is_failing:
            await asyncio.sleep(0.05)
        asking.cancel()

    asyncio.run(run())
    assert watch.nodes == "kafka:9092"


class Nodes:
    """A client of three nodes that answer, but for those that are frozen."""

    def __init__(self, watch: BrokerWatch, *frozen: int) -> None:
        self.asked: list[int] = []
        self.cluster = SimpleNamespace(brokers=lambda: {BrokerMetadata(n, f"n{n}", 9092, None) for n in (1, 2, 3)})
        self._watch, self._frozen = watch, frozen

    async def _get_conn(self, node_id: int) -> None:
        self.asked.append(node_id)
        if node_id in self._frozen:
            await asyncio.Event().wait()
        for _ in range(4):  # a client reads an answer in several turns of the event loop
            await asyncio.sleep(0)
        self._watch.answer(f"n{node_id}:9092")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds of `keep_asking` are hundredths."""
    monkeypatch.setattr(connection, "_LOOK_S", 0.01)
    monkeypatch.setattr(connection, "ANSWER_WITHIN_S", 0.05)
    monkeypatch.setattr(connection, "ASK_AFTER_S", 0.05)


@pytest.mark.usefixtures("quick")
def test_the_others_are_asked_again_while_one_does_not_answer(watch: BrokerWatch) -> None:
    client = Nodes(watch, 3)

    async def run() -> None:
        asking = asyncio.ensure_future(keep_asking(lambda: client))
        while not watch.is_failing or min(client.asked.count(1), client.asked.count(2)) < 5:
            await asyncio.sleep(0.01)
            assert watch.away_s is None
        asking.cancel()

    asyncio.run(run())
    assert client.asked.count(3) == 1
    assert watch.nodes == "n3:9092"


@pytest.mark.usefixtures("quick")
def test_a_broker_that_clients_try_no_more_is_found_back(
    watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watch_module, "PROBE_AFTER_S", 0.05)
    node = "127.0.0.1:9"
    closed: list[str] = []

    async def answer(_host: str, _port: int, **options: Any) -> Any:
        assert options.pop("on_close") is not None
        assert options == {"client_id": "ours"}
        return SimpleNamespace(_writer=None, close=lambda: closed.append(node))

    async def refuse(_host: str, _port: int, **_options: Any) -> Any:
        raise ConnectionRefusedError(111, "refused")

    async def run() -> None:
        monkeypatch.setattr(connection, "_create_conn", refuse)
        with pytest.raises(ConnectionRefusedError):
            await connection._watched_create_conn("127.0.0.1", 9, client_id="ours")
        watch._failing[node].said_at = 0.0
        asking = asyncio.ensure_future(keep_asking(lambda: None))
        while watch.n_attempts < 3:
            await asyncio.sleep(0.01)
        assert watch.is_failing
        monkeypatch.setattr(connection, "_create_conn", answer)
        while watch.is_failing:
            await asyncio.sleep(0.01)
        asking.cancel()

    asyncio.run(run())
    assert closed == [node]
    assert f"the broker at {node} answers again" in caplog.text


def test_a_connection_that_comes_when_nobody_waits_for_it_is_closed(
    watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []

    async def stubborn(_host: str, _port: int, **_options: Any) -> Any:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
        return SimpleNamespace(close=lambda: closed.append(True))

    monkeypatch.setattr(connection, "_create_conn", stubborn)

    async def run() -> None:
        connecting = asyncio.ensure_future(connection._watched_create_conn("127.0.0.1", 9))
        await asyncio.sleep(0.01)
        connecting.cancel()
        await asyncio.wait([connecting])
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert closed == [True]
    assert not watch.is_failing, "who gives up has not found out anything"


@pytest.mark.usefixtures("quick")
def test_a_busy_event_loop_is_no_silence_of_the_brokers(watch: BrokerWatch) -> None:
    client = Nodes(watch)

    async def run() -> None:
        asking = asyncio.ensure_future(keep_asking(lambda: client))
        while len(client.asked) < 9:
            time.sleep(0.03)  # a step
            await asyncio.sleep(0)
            assert not watch.is_failing
        asking.cancel()

    asyncio.run(run())
    assert watch.is_known


def test_the_lines_of_clients_are_ours_while_brokers_are_away(
    watch: BrokerWatch, caplog: pytest.LogCaptureFixture
) -> None:
    client, group = logging.getLogger("aiokafka"), logging.getLogger("aiokafka.consumer.group_coordinator")

    def log() -> int:
        caplog.clear()
        client.error("Unable connect to node with id %s: %s", 1, "refused")
        group.error("Heartbeat failed")
        return len(caplog.messages)

    assert log() == 2, "nothing is known to be away"
    watch.fail("one", "refused")
    assert log() == 0
    watch.answer("two")
    assert log() == 1, "one broker of two is away: only lines about connecting are ours"
    watch.answer("one")
    assert log() == 2


def test_a_request_that_is_repeated_is_no_error_and_one_of_a_broker_that_is_away_no_news(
    watch: BrokerWatch, caplog: pytest.LogCaptureFixture
) -> None:
    group = logging.getLogger("aiokafka.consumer.group_coordinator")

    def log(error: Exception | type[Exception]) -> list[str]:
        caplog.clear()
        group.error("Group Coordinator Request failed: %s", error)
        return [record.levelname for record in caplog.records]

    moving, wrong = NotLeaderForPartitionError(), TopicAuthorizationFailedError()
    assert log(moving) == ["WARNING"]
    assert log(wrong) == ["ERROR"]
    watch.fail("one", "refused")
    watch.answer("two")
    assert log(NodeNotReadyError()) == log(NodeNotReadyError) == [], "one of two brokers is away, which is told already"
    assert log(wrong) == ["ERROR"]
    watch.answer("one")
    assert log(NodeNotReadyError()) == ["WARNING"]


def test_every_logger_of_the_clients_is_known() -> None:
    """A filter of a logger does not concern those below it."""
    names = [module.name for module in pkgutil.walk_packages(aiokafka.__path__, "aiokafka.")]
    modules = [
        importlib.import_module(name) for name in names if not name.startswith(("aiokafka.record", "aiokafka.helpers"))
    ]
    loggers = {value.name for each in modules for value in vars(each).values() if isinstance(value, logging.Logger)}
    others = ("aiokafka.admin", "aiokafka.coordinator", "aiokafka.consumer.subscription_state")
    assert {name for name in loggers if not name.startswith(others)} == set(connection._CLIENTS)
