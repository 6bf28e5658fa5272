"""Transactions: a changelog whose end holds no committed record, and observations that come in transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from support.kafka import produce, read_all
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]


@asynccontextmanager
async def _producer(broker: Broker, topic: str) -> AsyncIterator[AIOKafkaProducer]:
    """A producer with transactions. Where one is open behind the block, it stays open, as after SIGKILL."""
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"{topic}-test")
    await producer.start()
    try:
        yield producer
    finally:
        if producer._txn_manager.is_in_transaction():
            producer._closed = True
            await producer._sender.close()
            await producer.client.close()
        else:
            await producer.stop()


async def _commit_marker(producer: AIOKafkaProducer, topic: str, _keys: list[bytes]) -> None:
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"a record of no worker", b"test", 0)
    await producer.commit_transaction()


async def _abort_300(producer: AIOKafkaProducer, topic: str, keys: list[bytes]) -> None:
    for begin in range(0, 300, 10):
        await producer.begin_transaction()
        for i in range(begin, begin + 10):
            await producer.send_and_wait(topic, None, keys[i % len(keys)], 0)
        await producer.abort_transaction()


async def _leave_open(producer: AIOKafkaProducer, topic: str, keys: list[bytes]) -> None:
    await _abort_300(producer, topic, keys)
    await producer.begin_transaction()
    for key in keys:
        await producer.send_and_wait(topic, None, key, 0)


ENDS = {"a marker": _commit_marker, "300 aborted records": _abort_300, "an open transaction": _leave_open}


def _end(broker: Broker, topic: str, how: str) -> None:
    """End the changelog: what is not committed would delete all that is stored."""
    keys = sorted({record.key for record in read_all(broker.bootstrap, topic)} | {b"test"})

    async def write() -> None:
        async with _producer(broker, topic) as producer:
            await ENDS[how](producer, topic, keys)

    asyncio.run(write())


def _loss_of_undisturbed(config: Config, n: int) -> float:
    topic = config.kafka.topics.observations
    undisturbed = Partition(topic, 0, config, {}.get)
    for i in range(n):
        undisturbed.handle(Record(topic, 0, i, 1, b"credit", observation(i)))
    return undisturbed.models["credit"].model_loss.value


@pytest.mark.parametrize("how", ENDS)
def test_a_worker_recovers_what_its_changelog_has_committed_and_goes_on(
    how: str, kafka_broker: Broker, tmp_path: Path
) -> None:
    raw, config = created(kafka_broker)
    topic, worker = config.kafka.topics.observations, WorkerProcess(raw, tmp_path)
    produce(kafka_broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(150)])
    worker.run_until(150, timeout_s=60)
    _end(kafka_broker, config.kafka.changelog, how)
    produce(kafka_broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(150, 200)])
    with worker:
        worker.wait_consumed(200, timeout_s=60)
        assert worker.total("records_consumed_total") == worker.total("model_observations_total") == 200
        assert set(worker.metrics()["attributary_model_loss"].values()) == {_loss_of_undisturbed(config, 200)}
        assert worker.stop() == 0


@pytest.mark.parametrize("how", ["300 aborted records", "an open transaction"])
def test_a_worker_begins_where_nothing_of_its_changelog_is_committed(
    how: str, kafka_broker: Broker, tmp_path: Path
) -> None:
    raw, config = created(kafka_broker)
    _end(kafka_broker, config.kafka.changelog, how)
    records = [(b"credit", observation(i), []) for i in range(50)]
    produce(kafka_broker.bootstrap, config.kafka.topics.observations, records)
    WorkerProcess(raw, tmp_path).run_until(50, timeout_s=60)


async def _produce_transactions(broker: Broker, topic: str, n: int) -> None:
    """`n` observations in transactions of twenty, and before every third of these one of ten that is aborted."""
    async with _producer(broker, topic) as producer:
        for number, begin in enumerate(range(0, n, 20)):
            if number % 3 == 0:
                await producer.begin_transaction()
                for i in range(begin, begin + 10):
                    # The aborted ones say the opposite: whoever learns from them is found out.
                    await producer.send_and_wait(topic, observation(i, flipped=True), b"credit", 0)
                await producer.abort_transaction()
            await producer.begin_transaction()
            await asyncio.gather(
                *[await producer.send(topic, observation(i), b"credit", 0) for i in range(begin, begin + 20)]
            )
            await producer.commit_transaction()


def test_transactions_upstream_cost_no_question_and_no_line(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(kafka_broker)
    topic, worker = config.kafka.topics.observations, WorkerProcess(raw, tmp_path)
    place = (("partition", "0"), ("topic", topic))
    asyncio.run(_produce_transactions(kafka_broker, topic, 240))
    with worker:
        worker.wait_consumed(240, timeout_s=60)
        # A marker is behind the last record.
        wait_for("no lag", lambda: worker.samples("attributary_consumer_lag_records").get(place) == 0)
        worker.kill()
    asyncio.run(_produce_transactions(kafka_broker, topic, 120))
    with worker:
        worker.wait_consumed(360, timeout_s=60)
        assert worker.total("records_consumed_total") == worker.total("model_observations_total") == 360
        assert worker.total("dead_letters_total") == 0
        assert worker.total("records_unavailable_total") == 0
        # 12 markers of what is committed, and 4 times 10 aborted records with theirs; 6, and twice; without the last.
        assert worker.total("transaction_offsets_total") == 12 + 4 * 11 + 6 + 2 * 11 - 1
        assert worker.stop() == 0
    assert "no records at offsets" not in worker.log.read_text()
