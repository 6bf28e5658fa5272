"""What must not be passed over: offsets without a record, records before the offset, another topic of the same name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from support.kafka import create_topics as make_topics
from support.kafka import produce
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics
from tests.integration.configs import logistic_config, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]


async def _delete_before(bootstrap: str, topic: str, offset: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=offset)})
    finally:
        await admin.close()


async def _delete_topic(bootstrap: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.delete_topics([topic])
        while topic in await admin.list_topics():
            await asyncio.sleep(0.05)
    finally:
        await admin.close()


def _stopped_after_100(broker: Broker, folder: Path) -> tuple[WorkerProcess, str]:
    """A worker that has handled 100 observations and stopped, and its topic."""
    raw = logistic_config(broker.bootstrap)
    config = parse_config(raw)
    topic = config.kafka.topics.observations
    create_topics(config)
    produce(broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(100)])
    with WorkerProcess(raw, folder) as worker:
        worker.wait_consumed(100, timeout_s=60)
        assert worker.stop() == 0
    return worker, topic


def test_records_lost_to_retention_are_counted_and_the_work_goes_on(kafka_broker: Broker, tmp_path: Path) -> None:
    worker, topic = _stopped_after_100(kafka_broker, tmp_path)
    produce(kafka_broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(100, 300)])
    asyncio.run(_delete_before(kafka_broker.bootstrap, topic, 150))
    with worker:
        worker.wait_consumed(250, timeout_s=60)
        assert worker.total("records_unavailable_total") == 50
        assert worker.total("records_consumed_total") == worker.total("model_observations_total") == 250
        assert worker.stop() == 0


def test_a_group_that_is_beyond_its_checkpoint_is_set_back_to_it(kafka_broker: Broker, tmp_path: Path) -> None:
    worker, topic = _stopped_after_100(kafka_broker, tmp_path)
    produce(kafka_broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(100, 250)])
    group = topic.split(".")[0]
    asyncio.run(_commit(kafka_broker.bootstrap, group, topic, 180))
    with worker:
        assert worker.wait(60) == 1
    assert "offset 100 was skipped on the way here (got 180 after 99); restart the worker" in worker.log_tail
    with worker:
        worker.wait_consumed(250, timeout_s=60)
        assert worker.total("records_unavailable_total") == 0
        assert worker.total("model_observations_total") == 250
        assert worker.stop() == 0


async def _commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.commit({TopicPartition(topic, 0): offset})
    finally:
        await consumer.stop()


def test_a_topic_that_was_made_again_stops_the_worker(kafka_broker: Broker, tmp_path: Path) -> None:
    worker, topic = _stopped_after_100(kafka_broker, tmp_path)
    asyncio.run(_delete_topic(kafka_broker.bootstrap, topic))
    make_topics(kafka_broker.bootstrap, {topic: 1})
    produce(kafka_broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(20)])
    with worker:
        assert worker.wait(60) == 1
    assert "was deleted and made again" in worker.log_tail
