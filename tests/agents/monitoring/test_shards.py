"""Series of a sharded model: of the merge, by its owner alone, however many of its shards a worker has."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.shards import PartitionMerges
from attributary_agents.worker.view import PartitionView, WorkerView
from tests.agents.stand_ins import TOPIC
from tests.agents.worker.sharing.streams import Broker, pair, record, sharded_config

OWNER, N = 2, 1200


def read(broker: Broker, partitions: dict[int, Partition], owner: PartitionMerges) -> dict[tuple[str, str, str], float]:
    """What a worker with these partitions exports of the model: name, feature and explainer to value; each once."""
    view = WorkerView(found := {})
    for number, partition in partitions.items():
        found[number] = PartitionView(partition)
        found[number].merges = owner if number == OWNER else PartitionMerges(partition, lambda _key: None)
    registry = CollectorRegistry()
    registry.register(AttributaryCollector(broker.config, view))
    samples = [
        (sample.name.removeprefix("attributary_"), sample.labels, sample.value)
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
        if sample.labels.get("model_id") == "m"
    ]
    assert set(Counter((name, *sorted(labels.items())) for name, labels, _ in samples).values()) <= {1}
    return {(name, labels.get("feature", ""), labels.get("explainer", "")): value for name, labels, value in samples}


def test_the_series_of_a_sharded_model_are_those_of_its_merge_from_its_owner_alone() -> None:
    broker = Broker(sharded_config())
    partitions = {n: Partition(TOPIC, n, broker.config, lambda _key: None) for n in range(4)}
    for i in range(N):
        number = i % 4
        broker.send(partitions[number].handle(record(number, i // 4, pair(i))))
    assert read(broker, {0: partitions[0], 1: partitions[1], 3: partitions[3]}, broker.merges) == {}
    for mine in ({OWNER: partitions[OWNER]}, partitions):
        found = read(broker, mine, broker.merges)
        last = json.loads(broker.events[-1].value or b"")
        for feature, said in last["features"].items():
            assert found["feature_importance", feature, "pfi"] == said["importance"]
            assert found["feature_importance_half_width", feature, "pfi"] == said["half_width"]
        assert found["explainer_shards", "", "pfi"] == 4
        assert found["explainer_observations", "", "pfi"] == last["n_observations"] == N - 4
        assert found["model_observations_total", "", ""] == N
        assert found["model_loss", "", ""] == pytest.approx(last["model_loss"])
        assert found["model_baseline_loss", "", ""] == pytest.approx(last["baseline_loss"])
        assert found["model_info", "", ""] == 1
        assert {name for name, *_ in found} == {
            "feature_importance",
            "feature_importance_share_ratio",
            "feature_importance_half_width",
            "explainer_shards",
            "explainer_observations",
            "model_observations_total",
            "model_loss",
            "model_baseline_loss",
            "last_observation_timestamp_seconds",
            "model_info",
        }
