"""Dead letters of mapped records and of a template's models, sent again while workers are killed: each counts once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.kafka import create_topics, produce, read_all
from support.states import stored
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics as create_ours
from attributary_explainers.monitor.joiner import Joiner
from tests.agents.stand_ins import balances

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N, STORES, DELAY_MS, BEGIN_MS = 3000, 6, 30_000, 1_780_000_000_000


def test_observations_and_labels_of_models_that_were_too_many_count_once_however_often_they_are_sent_again(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    name = "replayed"
    raw = {
        "kafka": {"brokers": [kafka_broker.bootstrap], "group": name, "topic_prefix": name, "partitions": 1,
                  "session_timeout_s": 6.0},
        "sources": {"visits": {"topic": f"{name}-visits", "model": "store-{store}", "id": "id", "time": "ts",
                               "x": {"only": ["a", "b"]}, "max_ahead": "10000d"}},
        "labels": {"outcomes": {"topic": f"{name}-outcomes", "model": "store-{store}", "id": "id", "time": "ts",
                                "y": "bought", "ttl": "1h", "max_ahead": "10000d"}},
        "models": {"store-*": {"model": {"class": "river.naive_bayes.GaussianNB"}, "max_models": 2, "idle": "20s",
                               "explainers": {"pfi": {"n_samples": 1}}, "change": None}},
        "checkpoint": {"interval_s": 0.3, "max_observations": 100, "max_share": 1.0},
    }  # fmt: skip
    config = parse_config(raw)
    create_ours(config)
    create_topics(kafka_broker.bootstrap, {f"{name}-visits": 1, f"{name}-outcomes": 1})
    at = [BEGIN_MS + 100 * i for i in range(N)]
    visits = [{"id": f"v{i}", "ts": at[i], "store": i % STORES, "a": i % 7 / 7, "b": i % 3} for i in range(N)]
    outcomes = [{"id": f"v{i}", "ts": at[i] + DELAY_MS, "store": i % STORES, "bought": i % 7 > 3} for i in range(N)]
    for topic, rows in (("visits", visits), ("outcomes", outcomes)):
        produce(kafka_broker.bootstrap, f"{name}-{topic}", [(None, json.dumps(row).encode(), []) for row in rows])
    WorkerProcess(raw, tmp_path).run_until(2 * N)
    topics = config.kafka.topics
    n_letters = 2 * N - 2 * N * 2 // STORES
    assert len(read_all(kafka_broker.bootstrap, topics.dead_letters)) == n_letters

    raw["models"]["store-*"]["max_models"] = 100
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    replay = [sys.executable, "-m", "attributary_agents.cli", "dlq", "replay", "--yes", "--config", str(path)]

    def n_sent() -> int:
        return len(read_all(kafka_broker.bootstrap, topics.observations)) - 2 * N

    worker = WorkerProcess(raw, tmp_path)
    with worker:
        replaying = subprocess.Popen(replay, stdout=subprocess.DEVNULL)
        wait_for("some is sent", lambda: n_sent() > 0, 60)
        replaying.kill()
        replaying.wait()
        wait_for("some is handled", lambda: worker.total("records_consumed_total") > 2 * N, 60)
        worker.kill()
    with worker:
        done = subprocess.run(replay, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        worker.kill()
    with worker:
        worker.wait_consumed(2 * N + n_sent(), timeout_s=120)
        assert worker.stop() == 0

    assert n_sent() > n_letters, "nothing was sent twice: this proves little"
    found = stored(parse_config(raw))
    counters, _ = found.checkpoints[0]
    assert balances(counters)
    assert counters.replayed.n_repeats == n_sent() - n_letters
    assert counters.origins.counts["accepted"] == 2 * N
    assert +counters.dead_letters == {"too_many_models": n_letters}
    assert found.models.keys() == {f"store-{number}" for number in range(STORES)}
    for model_id, state in found.models.items():
        assert state.late is not None
        joiner = state.late.labels
        assert isinstance(joiner, Joiner)
        counts = joiner.counts
        assert (counts.observed, counts.joined, counts.labels, joiner.n_waiting) == (
            N // STORES,
            N // STORES,
            N // STORES,
            0,
        ), model_id
        assert state.n_observations == N // STORES
