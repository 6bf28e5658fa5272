"""How clients connect to a broker that comes and goes, against a port that nobody listens at and one that hangs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.structs import BrokerMetadata

from attributary_agents.demo.local_broker import free_port
from attributary_agents.kafka.brokers import FIRST_WAIT_S, BrokerWatch
from attributary_agents.kafka.upstream import aiokafka_client
from attributary_agents.kafka.upstream.aiokafka_client import UNACKNOWLEDGED_S
from tests.agents.kafka.fake_cluster import FakeCluster, FakeTopic


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> BrokerWatch:
    """What this test's clients see."""
    aiokafka_client.watch_connections()
    fresh = BrokerWatch()
    monkeypatch.setattr(aiokafka_client, "BROKERS", fresh)
    return fresh


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

    monkeypatch.setattr(aiokafka_client, "_create_conn", create)

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
    monkeypatch.setattr(aiokafka_client, "CONNECT_WITHIN_S", 0.2)

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
        aiokafka_client._end_when_unacknowledged(SimpleNamespace(_writer=writer))
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNACKNOWLEDGED_S * 1000
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == UNACKNOWLEDGED_S


def test_a_connection_that_comes_when_nobody_waits_for_it_is_closed(
    watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []

    async def stubborn(_host: str, _port: int, **_options: Any) -> Any:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
        return SimpleNamespace(close=lambda: closed.append(True))

    monkeypatch.setattr(aiokafka_client, "_create_conn", stubborn)

    async def run() -> None:
        connecting = asyncio.ensure_future(aiokafka_client._watched_create_conn("127.0.0.1", 9))
        await asyncio.sleep(0.01)
        connecting.cancel()
        await asyncio.wait([connecting])
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert closed == [True]
    assert not watch.is_failing, "who gives up has not found out anything"


def test_upstream_tries_again_at_once(watch: BrokerWatch) -> None:
    async def run() -> None:
        client = await _client_of(free_port())
        for _ in range(5):
            assert await aiokafka_client._get_conn(client, 1) is None
        await client.close()

    asyncio.run(run())
    assert watch.n_attempts == 5


def test_upstream_does_not_find_other_brokers_by_the_configured_ones(watch: BrokerWatch) -> None:
    async def run() -> None:
        client = await _client_of(free_port())
        client._bootstrap_servers = f"127.0.0.1:{free_port()}"
        assert not await aiokafka_client._metadata_update(client, client.cluster, {"observations"})
        await client.close()

    asyncio.run(run())
    assert len(watch.nodes.split(",")) == 1


def test_a_broker_that_hangs_holds_up_no_other(watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    async def create(_host: str, port: int, **_options: Any) -> Any:
        if port == 9001:
            await asyncio.Event().wait()
        raise ConnectionRefusedError

    monkeypatch.setattr(aiokafka_client, "_create_conn", create)

    async def run() -> None:
        client = AIOKafkaClient()
        client.cluster._brokers = {n: BrokerMetadata(n, "127.0.0.1", 9000 + n, None) for n in (1, 2)}
        hanging = asyncio.ensure_future(client._get_conn(1))
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            assert await client._get_conn(2) is None
        hanging.cancel()
        await asyncio.wait([hanging])

    asyncio.run(run())
    assert watch.nodes == "127.0.0.1:9002"
