"""A sharded model on Apache Kafka: two workers, of which one is killed, say what one worker says of all."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from click.testing import CliRunner
from support.kafka import produce, read_all, read_committed
from support.undisturbed import event_id, events_by_id
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics
from attributary_agents.state.admin import read_records
from attributary_agents.state.names import merge_key
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_agents.worker.shards import PartitionMerges
from tests.agents.worker.sharing.streams import pair, sharded
from tests.integration.configs import logistic_config

pytestmark = [pytest.mark.long, pytest.mark.kafka]

SHARES = {0: 2000, 1: 1000, 2: 600, 3: 400}
"""Observations by partition, in multiples of `publish.every`."""


def created(broker: Broker, **sections: Any) -> tuple[dict[str, Any], Config]:
    """A configuration with a sharded model, as it is written and as it is read; its topics are there."""
    raw = logistic_config(broker.bootstrap, partitions=4) | sharded() | sections
    config = parse_config(raw)
    create_topics(config)
    return raw, config


def stream(partition: int, first: int, end: int) -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    return [(b"m", pair(10_000 * partition + i), []) for i in range(first, end)]


def send(broker: Broker, config: Config, from_part: float, to_part: float) -> None:
    for partition, n in SHARES.items():
        records = stream(partition, int(n * from_part), int(n * to_part))
        produce(broker.bootstrap, config.kafka.topics.observations, records, partition=partition)


def wait_observed(broker: Broker, config: Config, n: int, workers: list[WorkerProcess], version: str = "1") -> None:
    """Wait until an event is made of `n` observations."""
    deadline = time.monotonic() + 180
    while True:
        found = [json.loads(one.value) for one in read_all(broker.bootstrap, config.kafka.topics.importances)]
        reached = max((one["observation"] for one in found if one["model_version"] == version), default=0)
        if reached >= n:
            return
        tails = "\n".join(worker.log_tail for worker in workers)
        assert time.monotonic() < deadline, f"{reached} of {n} observations\n{tails}"
        time.sleep(0.5)


def one_worker(config: Config) -> dict[str, float]:
    """What one worker says of all; of the first observations, which are only stored, it has that of one shard."""
    topic = config.kafka.topics.observations
    partition = Partition(topic, 0, config.without_shards, lambda _key: None)
    values = [value for n in SHARES for _, value, _ in stream(n, 0 if n == 0 else 1, SHARES[n])]
    for offset, value in enumerate(values):
        partition.handle(Record(topic, 0, offset, 0, b"m", value))
    explainer = partition.models["m"].explainers["pfi"]
    assert explainer.n_observations == sum(SHARES.values()) - len(SHARES)
    return explainer.importance


def merged_again(config: Config, shards: list[ConsumerRecord]) -> dict[str, Any]:
    """What an undisturbed owner makes of the records of the topic of shards."""
    sent: dict[str, Any] = {}
    for number in {one.partition for one in shards}:
        partition = Partition(config.kafka.topics.observations, number, config, lambda _key: None)
        merges = PartitionMerges(partition, lambda _key: None)
        for one in shards:
            if one.partition == number:
                record = Record(one.topic, number, one.offset, one.timestamp, one.key, one.value)
                for outgoing in merges.take(record).outgoing:
                    assert outgoing.topic == config.kafka.topics.importances
                    sent[event_id(outgoing.headers)] = (outgoing.value, [*outgoing.headers])
    return sent


def series(workers: list[WorkerProcess]) -> list[dict[str, float]]:
    """Feature to its exported importance, of each worker that has any."""
    found = []
    for worker in workers:
        samples = worker.samples("attributary_feature_importance")
        if samples:
            found.append({dict(labels)["feature"]: value for labels, value in samples.items()})
    return found


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_worker_that_is_killed_leaves_the_merge_as_one_worker_has_it(
    delivery: str, kafka_broker: Broker, tmp_path: Path
) -> None:
    often = {"interval_s": 1, "max_observations": 300, "max_share": 0.9}
    raw, config = created(kafka_broker, delivery=delivery, checkpoint=often)
    workers = [WorkerProcess(raw, tmp_path) for _ in range(2)]
    with workers[0], workers[1]:
        deadline = time.monotonic() + 120
        while not all(worker.is_ready() for worker in workers):
            assert time.monotonic() < deadline, workers[1].log_tail
            time.sleep(0.2)
        send(kafka_broker, config, 0.0, 0.4)
        wait_observed(kafka_broker, config, 800, workers)
        send(kafka_broker, config, 0.4, 0.7)
        time.sleep(0.3)
        workers[1].kill()
        send(kafka_broker, config, 0.7, 1.0)
        workers[1].start()
        wait_observed(kafka_broker, config, sum(SHARES.values()), workers)
        # Whoever is back takes partitions over, so that for a moment nobody exports, or one that is still behind.
        wait_for("the killed one is back", workers[1].is_ready, 120)
        whole = pytest.approx(one_worker(config), abs=1e-12)
        wait_for("the owner alone exports it", lambda: series(workers) == [whole])
        assert workers[0].stop() == workers[1].stop() == 0
    topics = config.kafka.topics
    shards, events = (read_committed(kafka_broker.bootstrap, t) for t in (config.kafka.shards, topics.importances))
    if delivery == "exactly_once":
        assert set(Counter(event_id(one.headers) for one in [*shards, *events]).values()) == {1}
    said = events_by_id(shards)
    assert len(said) == sum(SHARES.values()) // 50, "each shard at each of its intervals"
    by_id = events_by_id(events)  # which asserts that duplicates have equal bytes
    assert by_id == merged_again(config, shards)
    assert read_all(kafka_broker.bootstrap, topics.dead_letters) == []
    last = json.loads(events[-1].value)
    assert (last["observation"], last["n_observations"]) == (4000, 3996), "nothing lost, nothing counted twice"
    assert {name: one["importance"] for name, one in last["features"].items()} == whole


def test_a_new_version_reaches_every_shard(kafka_broker: Broker, tmp_path: Path) -> None:
    factory = "tests.agents.worker.sharing.streams:pair_classifier"
    raw, config = created(kafka_broker, control={"allowed": [factory]})
    worker = WorkerProcess(raw, tmp_path)
    with worker:
        send(kafka_broker, config, 0.0, 0.5)
        wait_observed(kafka_broker, config, 2000, [worker])
        arguments = ["models", "deploy", "m", "--version", "2", "--factory", factory]
        done = CliRunner().invoke(cli, [*arguments, "--config", str(worker.config_path), "--json"])
        assert done.exit_code == 0, done.output
        assert [place["partition"] for place in json.loads(done.output)["places"]] == [0, 1, 2, 3]
        deadline = time.monotonic() + 120
        while worker.log.read_text().count("version 2 takes over after") < 4:
            assert time.monotonic() < deadline, worker.log_tail
            time.sleep(0.2)
        send(kafka_broker, config, 0.5, 1.0)
        wait_observed(kafka_broker, config, 4000, [worker], version="2")
        assert worker.stop() == 0
    events = [json.loads(one.value) for one in read_all(kafka_broker.bootstrap, config.kafka.topics.importances)]
    versions = [event["model_version"] for event in events]
    assert versions == sorted(versions)
    # Of the second half alone, without what each shard has stored before: explained from its first observation on.
    assert (events[-1]["model_version"], events[-1]["n_observations"]) == ("2", 2000)
    stored = names_of(config)
    assert {name for name in stored if b"merge" in name} == {merge_key("m", events_partition(kafka_broker, config))}
    assert b"m" in stored
    done = CliRunner().invoke(cli, ["models", "reset", "m", "--yes", "--config", str(worker.config_path), "--json"])
    assert json.loads(done.output)["partitions"] == [0, 1, 2, 3]
    assert not {name for name in names_of(config) if name.endswith(b"m")}, (
        "neither states nor deployments nor the merge"
    )


def names_of(config: Config) -> set[bytes]:
    """The names under which something is stored, on any partition."""
    records = asyncio.run(read_records(config))
    return {name for number in range(4) for name in records.names(number)}


def events_partition(broker: Broker, config: Config) -> int:
    (number,) = {one.partition for one in read_all(broker.bootstrap, config.kafka.shards)}
    return number
