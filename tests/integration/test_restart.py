"""A worker that is killed, or asked to stop, and comes back leaves what an undisturbed run leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.kafka import produce, read_all
from support.states import stored
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.integration.configs import logistic_config, observation

pytestmark = [pytest.mark.kafka]
N = 6000
MODELS = ("credit", "fraud")
Sent = tuple[bytes | None, list[tuple[str, bytes | None]]]
"""Value and headers of a record."""


def _stream() -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    values = [observation(i, flipped=i > N // 2) for i in range(N)]
    for i in range(100, N, 997):
        values[i] = b"{poison"
    return [(MODELS[i % 7 == 0].encode(), value, []) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("how", "explain"), [("SIGKILL", {}), ("SIGTERM", {}), ("SIGKILL", {"every": 3, "feature_share": 0.5})]
)
def test_a_restarted_worker_leaves_the_same_events_counters_and_state(
    how: str, explain: dict[str, Any], kafka_broker: Broker, tmp_path: Path
) -> None:
    raw = {**logistic_config(kafka_broker.bootstrap, models=MODELS), "defaults": {"explain": explain}}
    config = parse_config(raw)
    topics = config.kafka.topics
    create_topics(config)
    records = _stream()
    produce(kafka_broker.bootstrap, topics.observations, records, partition=0)

    worker = WorkerProcess(raw, tmp_path)
    for n in (N // 5, N // 2, 4 * N // 5):
        with worker:
            worker.wait_consumed(n, timeout_s=120)
            if how == "SIGKILL":
                worker.kill()
            else:
                assert worker.stop() == 0
    with worker:
        worker.wait_consumed(N, timeout_s=120)
        dead_letters = worker.total("dead_letters_total")
        explained = worker.total("model_observations_total")
        assert worker.stop() == 0

    undisturbed = Partition(topics.observations, 0, config, load=lambda _key: None)
    expected: dict[str, dict[str, Sent]] = {}
    timestamps = [record.timestamp for record in read_all(kafka_broker.bootstrap, topics.observations)]
    for offset, ((key, value, headers), timestamp) in enumerate(zip(records, timestamps, strict=True)):
        for out in undisturbed.handle(Record(topics.observations, 0, offset, timestamp, key, value, headers)):
            expected.setdefault(out.topic, {})[_id(dict(out.headers))] = (out.value, list(out.headers))
    for topic in (topics.importances, topics.changes, topics.dead_letters):
        found = read_all(kafka_broker.bootstrap, topic)
        by_id: dict[str, Sent] = {}
        for record in found:
            # A duplicate carries the same id, bytes and headers.
            sent = (record.value, [tuple(header) for header in record.headers])
            assert by_id.setdefault(_id(dict(record.headers)), sent) == sent
        assert by_id == expected.get(topic, {}), f"{topic} differs"
    assert expected[topics.changes], "the stream should change the models"
    assert (explained, dead_letters) == (N - len(expected[topics.dead_letters]), len(expected[topics.dead_letters]))

    found = stored(config)
    counters, offset = found.checkpoints[0]
    assert (counters.consumed, offset) == (N, N - 1)
    for model_id in MODELS:
        state = found.models[model_id]
        other = undisturbed.models[model_id]
        assert state.n_observations == other.n_observations
        assert _weights(state.model) == _weights(other.model)
        for name, explainer in state.explainers.items():
            assert explainer.importance == other.explainers[name].importance
            assert explainer.std_error == other.explainers[name].std_error


def test_a_killed_worker_repeats_events_byte_for_byte_within_a_budget(kafka_broker: Broker, tmp_path: Path) -> None:
    """Which observations are explained depends on what that took, and so no replay can tell; but a restart has to."""
    raw = {**logistic_config(kafka_broker.bootstrap, models=MODELS), "defaults": {"explain": {"budget": 0.02}}}
    config = parse_config(raw)
    topics = config.kafka.topics
    create_topics(config)
    produce(kafka_broker.bootstrap, topics.observations, _stream(), partition=0)
    worker = WorkerProcess(raw, tmp_path)
    for n in (N // 5, N // 2, 4 * N // 5):
        with worker:
            worker.wait_consumed(n, timeout_s=120)
            worker.kill()
    with worker:
        worker.wait_consumed(N, timeout_s=120)
        assert worker.stop() == 0

    found = read_all(kafka_broker.bootstrap, topics.importances)
    by_id: dict[str, bytes | None] = {}
    for record in found:
        assert by_id.setdefault(_id(dict(record.headers)), record.value) == record.value
    assert len(found) > len(by_id) > 100, "some were published twice"
    for model_id, state in stored(config).models.items():
        assert state.stride > 1, model_id
        assert state.explainers["pfi"].skipped["budget"] > state.explainers["pfi"].n_observations


def _id(headers: dict[str, bytes]) -> str:
    return (headers.get("ce_id") or headers["attributary-dlq-id"]).decode()


def _weights(model: Any) -> str:
    return json.dumps([model["LogisticRegression"].weights, model["LogisticRegression"].intercept], sort_keys=True)
