"""Configurations for integration tests: cheap models, topics of their own."""

from __future__ import annotations

import itertools
import json
from typing import Any

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics

_numbers = itertools.count(1)


def logistic_config(bootstrap: str, *, partitions: int = 1, models: tuple[str, ...] = ("credit",)) -> dict[str, Any]:
    """A scaled logistic regression per model id, over features a, b and c, in a group and topics of its own."""
    name = f"test{next(_numbers)}"
    model = {
        "model": [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}],
        "features": {"a": "number", "b": "number", "c": "number"},
        "alpha": 0.01,
        "explainers": {"pfi": {"n_samples": 2}, "sage": {"n_samples": 2}},
        "change": {"window": 200, "threshold": 0.2},
        "publish": {"every": 50},
    }
    return {
        "kafka": {
            "brokers": [bootstrap],
            "group": name,
            "topic_prefix": name,
            "partitions": partitions,
            "session_timeout_s": 6.0,  # the broker's minimum: a killed worker's partitions are free soon
        },
        "models": dict.fromkeys(models, model),
        "checkpoint": {"interval_s": 1, "max_observations": 500},
    }


def created(
    broker: Broker, *, partitions: int = 1, models: tuple[str, ...] = ("credit",), **sections: Any
) -> tuple[dict[str, Any], Config]:
    """A `logistic_config` with more settings, as it is written and as it is read; its topics are there."""
    raw = logistic_config(broker.bootstrap, partitions=partitions, models=models)
    raw |= {**sections, "kafka": raw["kafka"] | sections.get("kafka", {})}
    config = parse_config(raw)
    create_topics(config)
    return raw, config


def observation(i: int, *, flipped: bool = False) -> bytes:
    """The i-th observation: a decides the label, or b once `flipped`; c is noise. A fixed sequence."""
    a, b, c = ((i * k % 101) / 50 - 1 for k in (37, 53, 71))
    return json.dumps({"x": {"a": a, "b": b, "c": c}, "y": (b if flipped else a) > 0}).encode()
