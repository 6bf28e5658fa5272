"""Two thousand records of garbage among good ones, on both topics: the worker lives, and each is accounted for."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from support.kafka import produce, read_all
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_topics import REASONS
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N = 2000
HEADERS: list[Any] = [
    [],
    [("trace", None)],
    [("", b"")],
    [("ü" * 2000, b"\x00\xff"), ("ü" * 2000, None)],
    [("ce_id", b"\xff"), ("ce_time", b"never"), ("attributary-dlq-reason", b"mine")],
    [(f"h{i}", b"v") for i in range(500)],
    [("large", b"\x00" * 300_000)],
]


def garbage(rng: random.Random, i: int) -> tuple[bytes | None, bytes | None, Any]:
    """A record that no worker can use."""
    good = observation(i)
    values: list[bytes | None] = [
        None,
        b"",
        rng.randbytes(rng.randint(1, 200)),
        good[: rng.randrange(len(good))],
        b"[" * rng.randint(1, 50_000),
        b'{"x": {"a": Infinity, "b": 1, "c": 1}, "y": true}',
        b'{"x": {"a": 1, "b": 1, "c": 1e999}, "y": true}',
        json.dumps({"x": {"a": 1, "b": 2, "c": 3, "d": 4}, "y": True}).encode(),
        json.dumps({"x": {f"f{k}": 1 for k in range(2000)}, "y": True}).encode(),
        json.dumps({"x": {"a": [1], "b": 2, "c": 3}, "y": True}).encode(),
    ]
    if i % 500 == 7:
        return b"credit", rng.randbytes(900_000), []
    if i % 500 == 8:
        return b"k" * 900_000, good, []
    keys = [None, b"", b"\xff\xfe", b"debit", b"credit\x00", rng.randbytes(20)]
    headers = rng.choice(HEADERS[:-1]) if i % 100 else HEADERS[-1]
    if rng.random() < 0.3:
        return rng.choice(keys), good, headers
    return b"credit", rng.choice(values), headers


def test_garbage_on_both_topics_is_accounted_for_and_the_worker_lives(kafka_broker: Broker, tmp_path: Path) -> None:
    # A dead letter of 900 kB and its headers hardly fits.
    raw, config = created(kafka_broker, kafka={"max_record_bytes": 1_000_000})
    topics = config.kafka.topics
    rng = random.Random(5)
    bad = [garbage(rng, i) for i in range(N)]
    records = []
    for i, one in enumerate(bad):
        records += [one, *([(b"credit", observation(i // 4), [])] if i % 4 == 0 else [])]
    produce(kafka_broker.bootstrap, topics.observations, records, partition=0)
    # A compacted topic takes no record without a key.
    controls = [(key if key is not None else b"", value, headers) for key, value, headers in bad[::4]]
    produce(kafka_broker.bootstrap, topics.models, controls, partition=0)

    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(len(records) + len(controls), timeout_s=60)
        assert worker.total("model_observations_total") == N // 4
        counted = worker.metrics()["attributary_dead_letters_total"]
        assert worker.stop() == 0

    letters = read_all(kafka_broker.bootstrap, topics.dead_letters)
    found = {
        (headers["attributary-dlq-topic"].decode(), int(headers["attributary-dlq-offset"])): (letter, headers)
        for letter in letters
        for headers in [dict(letter.headers)]
    }
    assert len(letters) == len(found) == N + len(controls)
    for topic, sent in ((topics.observations, records), (topics.models, controls)):
        letters_of = {offset: of for (name, offset), of in found.items() if name == topic}
        for offset, (letter, headers) in letters_of.items():
            key, value, original = sent[offset]
            assert headers["attributary-dlq-reason"].decode() in REASONS
            assert letter.key == key
            cut = int(headers.get("attributary-dlq-truncated-bytes", b"0"))
            assert letter.value == (value[: len(value) - cut] if cut and value else value)
            assert list(letter.headers[: len(original)]) == list(original)
        reasons = Counter(headers["attributary-dlq-reason"].decode() for _, headers in letters_of.values())
        assert reasons == {dict(at)["reason"]: n for at, n in counted.items() if dict(at)["topic"] == topic and n}


async def _produce_transactions(bootstrap: str, topic: str) -> None:
    """100 observations in transactions of ten, and before every third of these one that is aborted."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-test")
    await producer.start()
    try:
        for begin in range(0, 100, 10):
            for committed in (False, True) if begin % 30 == 0 else (True,):
                await producer.begin_transaction()
                for i in range(begin, begin + 10):
                    # The aborted ones say the opposite: whoever learns from them is found out.
                    await producer.send_and_wait(topic, observation(i, flipped=not committed), b"credit", 0)
                await (producer.commit_transaction() if committed else producer.abort_transaction())
    finally:
        await producer.stop()


def test_what_a_producer_has_aborted_is_not_learnt(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(kafka_broker)
    topics = config.kafka.topics
    asyncio.run(_produce_transactions(kafka_broker.bootstrap, topics.observations))
    produce(kafka_broker.bootstrap, topics.observations, [(b"credit", observation(i), []) for i in range(100, 120)])
    undisturbed = Partition(topics.observations, 0, config, {}.get)
    for i in range(120):
        undisturbed.handle(Record(topics.observations, 0, i, 1, b"credit", observation(i)))
    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(120, timeout_s=60)
        assert worker.total("model_observations_total") == 120
        # 4 times 10 aborted records, and the marker of each of 14 transactions.
        assert worker.total("transaction_offsets_total") == 54
        assert worker.total("records_unavailable_total") == 0
        (loss,) = worker.metrics()["attributary_model_loss"].values()
        assert loss == undisturbed.models["credit"].model_loss.value
        assert worker.stop() == 0
