"""Many models on one partition: killed while their checkpoints are made in slices, as if nobody had been killed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.kafka import produce
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N, MODELS = 4000, tuple(f"model-{n:02d}" for n in range(80))
SELDOM_S = 0.5
"""Between two looks at the metrics: those of so many models take longer than a hundred observations."""


def test_a_worker_that_is_killed_between_slices_leaves_the_same_events_counters_and_states(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    often = {"interval_s": 0.1, "max_observations": 80, "max_share": 1.0}
    raw, config = created(kafka_broker, models=MODELS, checkpoint=often)
    stream = [(MODELS[i * 7 % len(MODELS)].encode(), observation(i), []) for i in range(N)]
    produce(kafka_broker.bootstrap, config.kafka.topics.observations, stream, partition=0)
    worker = WorkerProcess(raw, tmp_path)
    for n in (N // 5, N // 2, 4 * N // 5):
        with worker:
            worker.wait_consumed(n, timeout_s=240, every_s=SELDOM_S)
            worker.kill()
    with worker:
        worker.wait_consumed(N, timeout_s=240, every_s=SELDOM_S)
        wait_for(
            "all models are restored", lambda: list(worker.samples("attributary_models_restoring").values()) == [0.0]
        )
        assert worker.stop() == 0
    assert re.findall(r"(restored \d+ models?) in ", worker.log.read_text())[-1] == "restored 80 models"
    expected = check_equal(kafka_broker.bootstrap, config)
    assert (expected.partitions[0].counters.consumed, expected.partitions[0].offset) == (N, N - 1)
    assert set(expected.partitions[0].models) == set(MODELS)
