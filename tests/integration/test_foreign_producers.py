"""What other producers may write: header names that are no UTF-8, and batches in every codec of Kafka."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.consumer import fetcher
from support.kafka import create_topics, produce, read_all
from support.raw_names import produce_raw
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.deployments import read_deployments
from attributary_agents.kafka.upstream.aiokafka_records import BoundedRecords
from attributary_agents.state.admin import read_records
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
RAW = (b"\xff\xfename", b"v")


async def _produce_compressed(bootstrap: str, topic: str, codec: str, first: int) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, linger_ms=50)
    await producer.start()
    try:
        sent = [await producer.send(topic, observation(i), b"credit", 0) for i in range(first, first + 25)]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


def test_a_worker_reads_header_names_that_are_no_utf8_and_every_codec(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(kafka_broker)
    topics = config.kafka.topics
    mixed = [(b"credit", observation(0), []), (b"credit", observation(1), [RAW]), (b"credit", b"{poison", [RAW])]
    produce_raw(kafka_broker.bootstrap, topics.observations, mixed)
    for n, codec in enumerate(CODECS):
        asyncio.run(_produce_compressed(kafka_broker.bootstrap, topics.observations, codec, 2 + 25 * n))
    produce_raw(kafka_broker.bootstrap, topics.models, [(b"credit", b"{poison", [RAW])])
    produce_raw(kafka_broker.bootstrap, config.kafka.changelog, [(b"nobody", b"nothing", [RAW])])

    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(104, timeout_s=60)
        assert worker.total("model_observations_total") == 102
        assert worker.stop() == 0

    letters = read_all(kafka_broker.bootstrap, topics.dead_letters)
    assert [letter.value for letter in letters] == [b"{poison"] * 2
    assert [letter.headers[0] for letter in letters] == [(r"\xff\xfename", b"v")] * 2
    assert [one.value for one in asyncio.run(read_deployments(config))["credit"]] == [b"{poison"]
    stored = asyncio.run(read_records(config))
    assert stored.n_foreign == 1
    assert b"credit" in stored.names(0)


def test_what_the_broker_has_compressed_is_read(kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()

    class Seen(BoundedRecords):
        def next_batch(self) -> Any:
            batch = super().next_batch()
            if batch is not None:
                seen.add(batch.compression_type)
            return batch

    monkeypatch.setattr(fetcher, "MemoryRecords", Seen)
    for codec, number in CODECS.items():
        topic = f"compressed-{codec}"
        create_topics(kafka_broker.bootstrap, {topic: 1}, {"compression.type": codec})  # by the codecs of Java
        many = [(b"k", observation(i) * (i % 7), []) for i in range(500)]
        produce(kafka_broker.bootstrap, topic, many)
        seen.clear()
        found = read_all(kafka_broker.bootstrap, topic)
        assert seen == {number}
        assert [(one.key, one.value) for one in found] == [(key, value) for key, value, _ in many]
