"""Models of one template over several partitions: few are in memory, workers are killed, and nothing tells of it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from support.kafka import Record, produce
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.observations import default_partition
from attributary_agents.kafka.topics import create_topics
from tests.integration.configs import logistic_config, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N, IDS, PARTITIONS, MAX_MODELS = 8000, 320, 4, 280
IDLE_S = 120


def test_models_that_rest_and_workers_that_are_killed_leave_what_an_undisturbed_run_leaves(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    raw = logistic_config(kafka_broker.bootstrap, partitions=PARTITIONS)
    (model,) = raw["models"].values()
    template = {**model, "max_models": MAX_MODELS, "idle": f"{IDLE_S}s", "publish": {"every": 5}}
    raw |= {
        "models": {"store-*": template, "store-own": model},
        "checkpoint": {"interval_s": 0.3, "max_observations": 100, "max_share": 1.0},
    }
    config = parse_config(raw)
    create_topics(config)
    stream = _stream()
    for partition, records in stream.items():
        produce(kafka_broker.bootstrap, config.kafka.topics.observations, records, partition=partition)

    worker = WorkerProcess(raw, tmp_path)
    largest = 0.0
    for n in (N // 5, N // 2, 4 * N // 5):
        with worker:
            worker.wait_consumed(n, timeout_s=240)
            largest = max(largest, worker.total("models_loaded"))
            worker.kill()
    with worker:
        worker.wait_consumed(N, timeout_s=240)
        known = worker.total("models_known")
        dropped = worker.total("series_dropped_models")
        # What is restored behind the records counts as used when it is: time has to go on after that.
        wait_for("those with series are restored", lambda: worker.total("models_restoring") == 0)
        for partition, records in stream.items():
            produce(kafka_broker.bootstrap, config.kafka.topics.observations, [_later(records)], partition=partition)
        worker.wait_consumed(N + PARTITIONS, timeout_s=240)
        used = PARTITIONS + 1  # by the last records; store-own is no template's
        wait_for("the last checkpoint lets idle ones go", lambda: worker.total("models_loaded") <= used)
        assert worker.total("model_loads_total") > 0
        assert worker.total("model_evictions_total") > 0
        assert worker.stop() == 0

    expected = check_equal(kafka_broker.bootstrap, config)
    counters = [partition.counters for partition in expected.partitions.values()]
    assert sum(one.consumed for one in counters) == N + PARTITIONS
    refused = sum(one.dead_letters["too_many_models"] for one in counters)
    assert refused > 0
    assert sum(one.used for one in counters) == N + PARTITIONS - refused
    ids = {model_id for partition in expected.partitions.values() for model_id in partition.models} - {"store-own"}
    assert known == len(ids) == MAX_MODELS
    assert largest < len(ids), "some rested all the time"
    assert dropped == 0


def _stream() -> dict[int, list[Record]]:
    """Partition to key, value, headers and time of its records: each time a few of the ids, which come again later."""
    rng, made = random.Random(2), dict[int, list[Record]]()
    start_ms = round(1000 * (time.time() - N - 3 * IDLE_S))  # not long ago: retention would delete them
    for i in range(N):
        name = f"store-{(i // 200 * 16 + rng.randrange(48)) % IDS}" if i % 10 else "store-own"
        at = start_ms + 1000 * i
        made.setdefault(default_partition(name, PARTITIONS), []).append(
            (name.encode(), observation(i, flipped=i > N // 2), [], at)
        )
    return made


def _later(records: list[Record]) -> Record:
    """One more observation of a partition's first model, so long after the others that their models are idle."""
    first = next(key for key, *_ in records if key != b"store-own")
    return first, observation(N, flipped=True), [], records[-1][3] + 2000 * IDLE_S
