"""What a worker on a real Apache Kafka holds: not more than is promised, and nothing that it does not use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks.memory.running import configuration, observations
from benchmarks.process import resident
from support.kafka import produce, read_all
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N = 3000
BOUND_MB = 200.0
"""What is promised."""

NOT_USED = ("scipy/stats/", "scipy/integrate/", "pandas/", "sklearn/")
"""Folders of compiled modules that a worker with a linear model does not load."""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_a_worker_with_one_small_model_holds_what_it_uses(kafka_broker: Broker, tmp_path: Path) -> None:
    raw = configuration(kafka_broker.bootstrap, "test-memory")
    raw["checkpoint"] = {"interval_s": 1, "max_observations": 500}
    config = parse_config(raw)
    create_topics(config)
    worker = WorkerProcess(raw, tmp_path, forked=False)  # a fork has what its parent has loaded
    with worker:
        produce(kafka_broker.bootstrap, config.kafka.topics.observations, observations(N), partition=0)
        worker.wait_consumed(N, timeout_s=120)
        loaded = Path(f"/proc/{worker.pid}/maps").read_text()
        held = resident(worker.pid)
        assert worker.stop() == 0
    assert len(read_all(kafka_broker.bootstrap, config.kafka.topics.importances)) == 2 * N / 100, "of both explainers"
    assert [name for name in NOT_USED if f"site-packages/{name}" in loaded] == []
    assert "scipy/special/" in loaded, "compiled modules are seen"
    assert held.own < held.total < BOUND_MB, held
