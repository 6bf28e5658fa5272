"""Silent brokers are asked, those that the log has told of are tried, and a busy event loop is no silence."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.structs import BrokerMetadata

from attributary_agents.kafka import brokers, liveness
from attributary_agents.kafka.brokers import BrokerWatch
from attributary_agents.kafka.liveness import keep_asking
from attributary_agents.kafka.upstream import aiokafka_client


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> BrokerWatch:
    """What this test's clients see."""
    fresh = BrokerWatch()
    monkeypatch.setattr(aiokafka_client, "BROKERS", fresh)
    monkeypatch.setattr(liveness, "BROKERS", fresh)
    return fresh


def test_a_silent_broker_is_asked_and_fails_where_it_does_not_answer(
    watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "ANSWER_WITHIN_S", 0.0)

    class Hanging:
        """A client whose broker keeps its connection and does not answer."""

        cluster = SimpleNamespace(brokers=lambda: {BrokerMetadata(1, "kafka", 9092, None)})

        async def send(self, _node_id: int, _request: object) -> None:
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

    async def send(self, node_id: int, _request: object) -> None:
        self.asked.append(node_id)
        if node_id in self._frozen:
            await asyncio.Event().wait()
        for _ in range(4):  # a client reads an answer in several turns of the event loop
            await asyncio.sleep(0)
        self._watch.answer(f"n{node_id}:9092")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds of `keep_asking` are hundredths."""
    monkeypatch.setattr(liveness, "_LOOK_S", 0.01)
    monkeypatch.setattr(liveness, "ANSWER_WITHIN_S", 0.05)
    monkeypatch.setattr(liveness, "ASK_AFTER_S", 0.05)


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
    monkeypatch.setattr(brokers, "PROBE_AFTER_S", 0.05)
    node = "127.0.0.1:9"
    closed: list[str] = []

    async def answer(_host: str, _port: int, **options: Any) -> Any:
        assert options.pop("on_close") is not None
        assert options == {"client_id": "ours"}
        return SimpleNamespace(_writer=None, close=lambda: closed.append(node))

    async def refuse(_host: str, _port: int, **_options: Any) -> Any:
        raise ConnectionRefusedError(111, "refused")

    async def run() -> None:
        monkeypatch.setattr(aiokafka_client, "_create_conn", refuse)
        with pytest.raises(ConnectionRefusedError):
            await aiokafka_client._watched_create_conn("127.0.0.1", 9, client_id="ours")
        watch._failing[node].said_at = 0.0
        asking = asyncio.ensure_future(keep_asking(lambda: None))
        while watch.n_attempts < 3:
            await asyncio.sleep(0.01)
        assert watch.is_failing
        monkeypatch.setattr(aiokafka_client, "_create_conn", answer)
        while watch.is_failing:
            await asyncio.sleep(0.01)
        asking.cancel()

    asyncio.run(run())
    assert closed == [node]
    assert f"the broker at {node} answers again" in caplog.text


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
