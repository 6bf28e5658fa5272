"""The models, their configuration, and the observations: cheap and seeded, with a drift and with useless records."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_numbers = itertools.count(1)

PLACE = {"credit": 0, "fraud": 0, "churn": 3}
"""Model id to its partition: two models on one, and whichever way two workers share four partitions, each has one."""

PARTITIONS = 4

SHORT_DRIFT_AT = 500
"""Observation from which on labels are reversed where a short scenario lasts as long as it takes, a thousand or so."""

LOGISTIC = [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}]
_TREE = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 50}}

_BAD: tuple[bytes | None, ...] = (
    b"{poison",
    b'{"x": {"a": Infinity, "b": 0.5, "c": 0.5}, "y": true}',
    b'{"x": {}, "y": true}',
    None,
    b'{"x": {"a": 0.5, "b": 0.5, "c": 0.5}, "y": null}',
)
_UNKNOWN = b"nobody"

_UNLEARNABLE = b'{"x": {"a": 0.5, "b": 0.5, "c": 0.5}, "y": "neither"}'
"""Valid; a logistic regression raises on it when its scaler has learnt already. A tree would learn it, and raise on all
others from then on, since it cannot sort a text among booleans."""


@dataclass(frozen=True)
class Sent:
    """One record to send.

    Attributes
    ----------
    topic
        None: that of observations.
    time_ms
        Its timestamp; None: when it is sent.
    """

    partition: int
    key: bytes
    value: bytes | None
    topic: str | None = None
    time_ms: int | None = None


def raw_config(bootstrap: str, name: str, **kafka: Any) -> dict[str, Any]:
    """A configuration with topics and a group of its own, as it would stand in the file."""
    name = f"{name}-{next(_numbers)}"
    return {
        "kafka": {
            "brokers": bootstrap.split(","),
            "group": name,
            "topic_prefix": name,
            "partitions": PARTITIONS,
            "session_timeout_s": 3.0,  # a killed worker's partitions are free soon
            **kafka,
        },
        "models": {name: ordinary(_TREE if name == "churn" else LOGISTIC) for name in PLACE},
        "checkpoint": {"interval_s": 1, "max_observations": 500},
    }


def ordinary(model: Any = LOGISTIC, *, every: int = 50) -> dict[str, Any]:
    """A model's section of the configuration: iPFI, iSAGE and change, an event of importance `every` observations."""
    return {
        "features": {"a": "number", "b": "number", "c": "number"},
        "alpha": 0.01,
        "explainers": {"pfi": {"n_samples": 1}, "sage": {"n_samples": 1}},
        "change": {"window": 150, "threshold": 0.1},
        "publish": {"every": every, "reference_after": 500},
        "model": model,
    }


def observations(n: int, seed: int, *, drift_at: int | None = None) -> list[Sent]:
    """The first `n` records: `a` decides the label, from the drift on `b`; one in 150 is no use."""
    rng = random.Random(seed)
    drift_at = n // 2 if drift_at is None else drift_at
    return [_record(rng, drifted=i >= drift_at) for i in range(n)]


def _record(rng: random.Random, *, drifted: bool) -> Sent:
    model_id = rng.choices(list(PLACE), (4, 2, 3))[0]
    key = model_id.encode()
    if rng.random() < 1 / 150:
        if model_id == "fraud" and rng.random() < 0.5:
            return Sent(PLACE[model_id], key, _UNLEARNABLE)
        return Sent(PLACE[model_id], rng.choice((key, key, key, _UNKNOWN)), rng.choice(_BAD))
    x = {name: round(rng.uniform(-1, 1), 3) for name in "abc"}
    y = (x["b" if drifted else "a"] > 0) != (rng.random() < 0.02)
    return Sent(PLACE[model_id], key, json.dumps({"x": x, "y": y}).encode())


def slices(records: list[Sent], n: int) -> Iterator[list[Sent]]:
    """The records in `n` parts of about equal size, in their order."""
    for i in range(n):
        yield records[i * len(records) // n : (i + 1) * len(records) // n]
