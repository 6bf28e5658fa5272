"""The output topics are read into the store on Apache Kafka, whatever becomes of server, store and broker."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from support.kafka import create_topics, produce
from support.waiting import wait_for

from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker, BrokerMissingError, KafkaBroker
from attributary_agents.serve.store.store import Store
from tests.agents.serve.store.events import importance, incident, status
from tests.integration.serve.server import Sent, Server, answers, config_for, letter_on_wire, on_wire, topics_of

pytestmark = [pytest.mark.long, pytest.mark.kafka]

MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def now_ms() -> int:
    """Events are young: old ones would be dropped."""
    return int(time.time() * 1000)


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that other tests do not need."""
    broker = KafkaBroker(tmp_path_factory.mktemp("broker"))
    try:
        broker.start()
    except BrokerMissingError as error:
        # Under CI a missing broker is a broken pipeline; elsewhere it is somebody without Java.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    with broker:
        yield broker


def send_history(broker: Broker, config: Config, now_ms: int, begin: int, end: int) -> None:
    """Write events of two models, some twice, incidents, statuses and dead letters."""
    topics = config.kafka.topics
    for partition, model_id in enumerate(("bank", "bikes")):
        events = [
            importance(
                now_ms - (1000 - n) * 1000,
                n + 1,
                {"age": n / 8, "salary": 1.0, f"extra-{n // 20}": 0.25},
                model_id=model_id,
                version=str(n // 30),
                shift=n / 1000,
            )
            for n in range(begin, end)
        ]
        sent = on_wire([*events, *events[-3:]], now_ms)
        produce(broker.bootstrap, topics.importances, sent, partition=partition)
        told = [
            incident(f"{model_id}-{begin}", now_ms - 5000 + begin, model_id=model_id, life="suspected"),
            incident(f"{model_id}-{begin}", now_ms - 4000, 2, model_id=model_id, life="over"),
        ]
        produce(broker.bootstrap, topics.incidents, on_wire(told, now_ms), partition=partition)
        said = on_wire([status(now_ms, "changed", model_id=model_id, n_observations=end)], now_ms)
        produce(broker.bootstrap, topics.status, said, partition=partition)
    letters = [letter_on_wire(n, now_ms) for n in (begin, begin, begin + 1)]
    produce(broker.bootstrap, topics.dead_letters, letters, partition=0)


def test_history_survives_the_server_and_a_deleted_store(kafka_broker: Broker, tmp_path: Path, now_ms: int) -> None:
    config, path = config_for(kafka_broker, "serve-history"), tmp_path / "store.sqlite"
    create_topics(kafka_broker.bootstrap, topics_of(config))
    send_history(kafka_broker, config, now_ms, 0, 40)
    with Server(config, path) as server:
        wait_for("all is read", lambda: server.is_up_to_date and server.n() == 80)
        first = answers(server.store)
    send_history(kafka_broker, config, now_ms, 40, 70)
    with Store(path) as store:
        assert answers(store) == first
    with Server(config, path) as server:
        wait_for("all is read", lambda: server.is_up_to_date and server.n() == 140)
        assert server.n("incident") == 4
        assert [one.n for one in server.store.dead_letters()] == [4]
        whole = answers(server.store)
        told = {one.event for one in server.told}
        assert told <= {"importance", "incident", "status", "dead_letter_counts"}
    for one in tmp_path.iterdir():
        one.unlink()
    with Server(config, path) as server:
        wait_for("all is read", lambda: server.is_up_to_date and server.n() == 140)
        assert answers(server.store) == whole
        state = server.reading.state()
        assert (state.read_share, state.n_refused, state.fault) == (1.0, 0, None)


def test_what_is_sent_while_it_reads_is_told_at_once(kafka_broker: Broker, tmp_path: Path, now_ms: int) -> None:
    config = config_for(kafka_broker, "serve-live")
    topics = config.kafka.topics
    with Server(config, tmp_path / "s") as server:
        wait_for("the broker answers", lambda: server.reading.state().missing == tuple(topics_of(config)))
        create_topics(kafka_broker.bootstrap, topics_of(config))
        wait_for("the topics are found", lambda: server.is_up_to_date)
        events = [importance(now_ms + n, n + 1) for n in range(20)]
        garbage: list[Sent] = [
            (b"bank", value, [], now_ms) for value in (b"no JSON", b"[]", b'{"features": 3}', b"\xff", None)
        ]
        produce(kafka_broker.bootstrap, topics.importances, [*garbage, *on_wire(events, now_ms)], partition=1)
        for topic in (topics.incidents, topics.status, topics.dead_letters):
            produce(kafka_broker.bootstrap, topic, [one for one in garbage if one[1]], partition=1)
        produce(kafka_broker.bootstrap, topics.incidents, on_wire([incident("c", now_ms)], now_ms), partition=1)
        wait_for("they are told", lambda: len(server.told) == 21)
        assert [one.event for one in server.told if one.event == "importance"] == ["importance"] * 20
        ids = [one.id for one in server.told]
        assert ids == list(range(ids[0], ids[0] + 21))
        assert server.reading.state().n_refused == 5 + 4 * 3
        assert server.reading.state().fault is None


def test_a_long_past_is_told_once(kafka_broker: Broker, tmp_path: Path, now_ms: int) -> None:
    config = config_for(kafka_broker, "serve-past", max_age="1d")
    create_topics(kafka_broker.bootstrap, topics_of(config))
    topic = config.kafka.topics.importances
    events = [importance(now_ms - 3000 + n, n + 1, {"a": 1.0}) for n in range(3000)]
    old = [importance(now_ms - 2 * 86_400_000, 1, {"a": 1.0}, model_id="old")]
    produce(kafka_broker.bootstrap, topic, on_wire(old, now_ms - 2 * 86_400_000), partition=0)
    produce(kafka_broker.bootstrap, topic, on_wire(events, now_ms), partition=0)
    with Server(config, tmp_path / "s") as server:
        wait_for("all is read", lambda: server.is_up_to_date and server.n() == 3000)
        wait_for("it is told", lambda: server.told)
        assert {one.event for one in server.told} == {"reload"}
        assert [model.model_id for model in server.store.models()] == ["bank"]  # what is older than max_age is not read


def test_aborted_transactions_are_not_seen(kafka_broker: Broker, tmp_path: Path, now_ms: int) -> None:
    config = config_for(kafka_broker, "serve-aborted")
    create_topics(kafka_broker.bootstrap, topics_of(config))
    topic = config.kafka.topics.importances

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=kafka_broker.bootstrap, transactional_id="serve-aborted")
        await producer.start()
        try:
            for n in range(9):
                await producer.begin_transaction()
                for key, value, headers, at in on_wire([importance(now_ms + n, n + 1)], now_ms):
                    await producer.send_and_wait(topic, value, key, 0, at, headers)
                await (producer.commit_transaction() if n % 2 == 0 else producer.abort_transaction())
        finally:
            await producer.stop()

    asyncio.run(write())
    with Server(config, tmp_path / "s") as server:
        wait_for("all is read", lambda: server.is_up_to_date)
        found = server.store.window("bank", "pfi")
        assert found is not None
        assert found.observation.tolist() == [1, 3, 5, 7, 9]


def test_a_topic_that_is_made_anew_is_read_anew(kafka_broker: Broker, tmp_path: Path, now_ms: int) -> None:
    config = config_for(kafka_broker, "serve-anew")
    create_topics(kafka_broker.bootstrap, topics_of(config))
    topic = config.kafka.topics.importances
    produce(kafka_broker.bootstrap, topic, on_wire([importance(now_ms + n, n + 1) for n in range(5)], now_ms))

    async def delete() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap)
        await admin.start()
        try:
            await admin.delete_topics([topic])
            while topic in await admin.list_topics():
                await asyncio.sleep(0.05)
        finally:
            await admin.close()

    with Server(config, tmp_path / "s") as server:
        wait_for("all is read", lambda: server.is_up_to_date and server.n() == 5)
        asyncio.run(delete())
        wait_for("it is missed", lambda: server.reading.state().missing == (topic,))
        create_topics(kafka_broker.bootstrap, {topic: 2})
        # As many as before and more: no offset tells that they are others.
        fresh = [importance(now_ms + n, n + 1, {"city": 1.0}) for n in range(9)]
        produce(kafka_broker.bootstrap, topic, on_wire(fresh, now_ms))
        wait_for("it is read anew", lambda: server.n() == 9)
        assert server.store.models()[0].explainers[0].features == ("city",)
        assert "reload" in {one.event for one in server.told}
    asyncio.run(delete())
    create_topics(kafka_broker.bootstrap, {topic: 2})
    with Server(config, tmp_path / "s") as server:
        wait_for("what is no more is dropped", lambda: server.is_up_to_date and server.n() == 0)


def test_new_partitions_are_read(kafka_broker: Broker, tmp_path: Path, now_ms: int) -> None:
    config = config_for(kafka_broker, "serve-partitions")
    create_topics(kafka_broker.bootstrap, topics_of(config))
    topic = config.kafka.topics.importances

    async def add() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap)
        await admin.start()
        try:
            await admin.create_partitions({topic: NewPartitions(3)})
        finally:
            await admin.close()

    with Server(config, tmp_path / "s") as server:
        wait_for("it reads", lambda: server.is_up_to_date)
        asyncio.run(add())
        events = on_wire([importance(now_ms + n, n + 1) for n in range(5)], now_ms)
        wait_for("the partition is there", lambda: _sent(kafka_broker, topic, events))
        wait_for("it is read", lambda: server.n() == 5)


def _sent(broker: Broker, topic: str, events: list[Sent]) -> bool:
    try:
        return bool(produce(broker.bootstrap, topic, events, partition=2))
    except Exception:  # noqa: BLE001 - the client may not know of it yet
        return False


def test_a_broker_that_goes_and_comes_is_told_and_reading_goes_on(
    own_broker: KafkaBroker, tmp_path: Path, now_ms: int
) -> None:
    config = config_for(own_broker, "serve-away")
    create_topics(own_broker.bootstrap, topics_of(config))
    topic = config.kafka.topics.importances
    produce(own_broker.bootstrap, topic, on_wire([importance(now_ms + n, n + 1) for n in range(5)], now_ms))
    with Server(config, tmp_path / "s") as server:
        wait_for("all is read", lambda: server.n() == 5)
        own_broker.stop()
        wait_for("it is told", lambda: server.broker == [True, False])
        state = server.reading.state()
        assert state.broker == "away"
        assert (state.broker_since_ms or 0) >= now_ms
        assert server.store.window("bank", "pfi") is not None  # what was read is there
        own_broker.start()
        wait_for("it answers again", lambda: server.broker == [True, False, True])
        produce(own_broker.bootstrap, topic, on_wire([importance(now_ms + 9, 9)], now_ms))
        wait_for("it goes on", lambda: server.n() == 6)
    own_broker.stop()
    with Server(config, tmp_path / "s") as server:  # that is away when it begins
        assert server.n() == 6
        wait_for("it is told", lambda: server.broker == [False])
        own_broker.start()
        wait_for("it answers", lambda: server.broker == [False, True])
        produce(own_broker.bootstrap, topic, on_wire([importance(now_ms + 99, 99)], now_ms))
        wait_for("it reads", lambda: server.n() == 7)
