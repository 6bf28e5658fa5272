"""A worker's live state with many models of many features: what its Collector has to read."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.kafka.observations import encode_value
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_agents.worker.view import PartitionView, WorkerView

UNLIMITED = {"max_features": 100_000, "max_models": 100_000, "max_series": 100_000_000}


def config_of(models: int, limits: dict[str, int] | None = None) -> Config:
    """So many logistic regressions that are explained by iPFI, with the default limits or others."""
    model = {
        "model": {"class": "river.linear_model.LogisticRegression"},
        "explainers": {"pfi": {"n_samples": 1, "reservoir_size": 10}},
        "change": {"window": 1000, "detector": None},
        "publish": {"reference_after": 2},
    }
    names = [f"model-{number:04d}" for number in range(models)]
    return parse_config({"models": dict.fromkeys(names, model), "metrics": limits or {}, "web": {"port": 0}})


def filled(
    config: Config, features: int, observations: int, partitions: int = 4, tick: Callable[[int], None] | None = None
) -> WorkerView:
    """The view of a worker after so many observations of every model; importances of all sizes."""
    rng = random.Random(1)
    topic = config.kafka.topics.observations
    owned = {n: PartitionView(Partition(topic, n, config, lambda _key: None)) for n in range(partitions)}
    for done, model_id in enumerate(config.models):
        number = done % partitions
        first = done // partitions * observations
        for i in range(first, first + observations):
            x: dict[str, Any] = {f"feature_{f:03d}": rng.gauss(0, 1) / (1 + f % 50) for f in range(features)}
            value = encode_value({"x": x, "y": sum(x.values()) > 0})
            record = Record(topic, number, i, 1_700_000_000_000 + i, model_id.encode(), value)
            owned[number].partition.handle(record)
        owned[number].state_bytes[model_id] = 10_000
        if tick is not None:
            tick(done + 1)
    return WorkerView(owned)
