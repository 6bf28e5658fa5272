"""A worker that is killed, or asked to stop, and comes back leaves what an undisturbed run leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.kafka import produce, read_all
from support.states import stored
from support.undisturbed import check_equal, events_by_id
from support.worker_process import WorkerProcess

from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N = 6000
MODELS = ("credit", "fraud")


def _stream() -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    values = [observation(i, flipped=i > N // 2) for i in range(N)]
    for i in range(100, N, 997):
        values[i] = b"{poison"
    return [(MODELS[i % 7 == 0].encode(), value, []) for i, value in enumerate(values)]


def interrupted(broker: Broker, folder: Path, explain: dict[str, Any], how: str) -> tuple[Config, WorkerProcess]:
    """A configuration, and its worker that was ended three times on its way through the stream.

    Each time it is started as a user starts it: forks of one process would have the same seed of hashes.
    """
    raw, config = created(broker, models=MODELS, defaults={"explain": explain})
    produce(broker.bootstrap, config.kafka.topics.observations, _stream(), partition=0)
    worker = WorkerProcess(raw, folder, forked=False)
    for n in (N // 5, N // 2, 4 * N // 5):
        with worker:
            worker.wait_consumed(n, timeout_s=120)
            if how == "SIGKILL":
                worker.kill()
            else:
                assert worker.stop() == 0
    return config, worker


@pytest.mark.parametrize(("how", "explain"), [("SIGKILL", {}), ("SIGTERM", {"every": 3, "feature_share": 0.5})])
def test_a_restarted_worker_leaves_the_same_events_counters_and_state(
    how: str, explain: dict[str, Any], kafka_broker: Broker, tmp_path: Path
) -> None:
    config, worker = interrupted(kafka_broker, tmp_path, explain, how)
    with worker:
        worker.wait_consumed(N, timeout_s=120)
        dead_letters = worker.total("dead_letters_total")
        explained = worker.total("model_observations_total")
        assert worker.stop() == 0

    expected = check_equal(kafka_broker.bootstrap, config)
    assert expected.sent[config.kafka.topics.incidents], "the stream should change the models"
    letters = len(expected.sent[config.kafka.topics.dead_letters])
    assert (explained, dead_letters) == (N - letters, letters)
    counters, offset = expected.partitions[0].counters, expected.partitions[0].offset
    assert (counters.consumed, offset) == (N, N - 1)
    assert set(expected.partitions[0].models) == set(MODELS)


def test_a_killed_worker_repeats_events_byte_for_byte_within_a_budget(kafka_broker: Broker, tmp_path: Path) -> None:
    """Which observations are explained depends on what that took, and so no replay can tell; but a restart has to."""
    config, worker = interrupted(kafka_broker, tmp_path, {"budget": 0.02}, "SIGKILL")
    worker.run_until(N)
    found = read_all(kafka_broker.bootstrap, config.kafka.topics.importances)
    assert len(found) > len(events_by_id(found)) > 100, "some were published twice"
    for model_id, state in stored(config).models.items():
        assert state.stride > 1, model_id
        assert state.explainers["pfi"].skipped["budget"] > state.explainers["pfi"].n_observations
