"""What must not be passed over: offsets without a record, records before the offset, another topic of the same name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from support.kafka import create_topics, produce
from support.worker_process import WorkerProcess

from attributary_agents.config.settings import KafkaConfig
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.admin import with_admin
from attributary_agents.kafka.clients import client_options
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]


async def _delete_before(admin: AIOKafkaAdminClient, topic: str, offset: int) -> None:
    await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=offset)})


async def _delete_topic(admin: AIOKafkaAdminClient, topic: str) -> None:
    await admin.delete_topics([topic])
    while topic in await admin.list_topics():
        await asyncio.sleep(0.05)


def _stopped_after_100(broker: Broker, folder: Path) -> tuple[WorkerProcess, KafkaConfig, str]:
    """A worker that has handled 100 observations and stopped, its Kafka, and its topic."""
    raw, config = created(broker)
    topic = config.kafka.topics.observations
    produce(broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(100)])
    worker = WorkerProcess(raw, folder)
    worker.run_until(100, timeout_s=60)
    return worker, config.kafka, topic


def test_records_lost_to_retention_are_counted_and_the_work_goes_on(kafka_broker: Broker, tmp_path: Path) -> None:
    worker, kafka, topic = _stopped_after_100(kafka_broker, tmp_path)
    produce(kafka_broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(100, 300)])
    with_admin(kafka, lambda admin: _delete_before(admin, topic, 150))
    with worker:
        worker.wait_consumed(250, timeout_s=60)
        assert worker.total("records_unavailable_total") == 50
        assert worker.total("records_consumed_total") == worker.total("model_observations_total") == 250
        assert worker.stop() == 0


def test_a_group_that_is_beyond_its_checkpoint_is_set_back_to_it(kafka_broker: Broker, tmp_path: Path) -> None:
    worker, kafka, topic = _stopped_after_100(kafka_broker, tmp_path)
    produce(kafka_broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(100, 250)])
    asyncio.run(_commit(kafka, topic, 180))
    with worker:
        assert worker.wait(60) == 1
    assert "offset 100 was skipped on the way here (got 180 after 99); restart the worker" in worker.log_tail
    with worker:
        worker.wait_consumed(250, timeout_s=60)
        assert worker.total("records_unavailable_total") == 0
        assert worker.total("model_observations_total") == 250
        assert worker.stop() == 0


async def _commit(kafka: KafkaConfig, topic: str, offset: int) -> None:
    consumer = AIOKafkaConsumer(**client_options(kafka), group_id=kafka.group, enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.commit({TopicPartition(topic, 0): offset})
    finally:
        await consumer.stop()


def test_a_topic_that_was_made_again_stops_the_worker(kafka_broker: Broker, tmp_path: Path) -> None:
    worker, kafka, topic = _stopped_after_100(kafka_broker, tmp_path)
    with_admin(kafka, lambda admin: _delete_topic(admin, topic))
    create_topics(kafka_broker.bootstrap, {topic: 1})
    produce(kafka_broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(20)])
    with worker:
        assert worker.wait(60) == 1
    assert "was deleted and made again" in worker.log_tail
