"""The topic of statuses on Apache Kafka: what a worker writes there, and that it goes on without."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from support.kafka import produce, read_all
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N = 300


def stream() -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    return [(model_id, observation(i), []) for i in range(N) for model_id in (b"m", b"n")]


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_worker_tells_of_each_model_that_has_changed(delivery: str, kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(kafka_broker, partitions=2, models=("m", "n", "silent"), delivery=delivery)
    topic = config.kafka.topics.status
    produce(kafka_broker.bootstrap, config.kafka.topics.observations, stream())
    with WorkerProcess(raw, tmp_path) as worker:
        wait_for("both are told of", lambda: len(read_all(kafka_broker.bootstrap, topic)) == 2, 120)
        assert worker.stop() == 0
    told = {
        (record.key or b"").decode(): json.loads(record.value) for record in read_all(kafka_broker.bootstrap, topic)
    }
    assert told.keys() == {"m", "n"}, "the third has not changed"
    for model_id, status in told.items():
        assert (status["model_id"], status["model_version"], status["n_refused"]) == (model_id, "1", 0)
        assert status["state"] in ("learning", "explained", "changed")
        assert 0 < status["n_observations"] <= N
        assert status["event_time"].startswith("20")
        assert "n_waiting" not in status
    assert topic not in worker.log.read_text(), "nothing went wrong"


def test_an_installation_without_the_topic_goes_on_and_says_what_makes_it(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(kafka_broker, models=("m", "n"))
    topic = config.kafka.topics.status

    async def delete() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap)
        await admin.start()
        try:
            await admin.delete_topics([topic])
        finally:
            await admin.close()

    asyncio.run(delete())
    produce(kafka_broker.bootstrap, config.kafka.topics.observations, stream(), partition=0)
    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(2 * N, timeout_s=120)
        wait_for("it is said", lambda: f"there is no topic {topic}" in worker.log.read_text(), 60)
        assert worker.stop() == 0
    lines = [line for line in worker.log.read_text().splitlines() if topic in line]
    assert len(lines) == 1
    assert "WARNING" in lines[0]
    assert "`attributary topics create`" in lines[0]
    with pytest.raises(LookupError):
        read_all(kafka_broker.bootstrap, topic)
