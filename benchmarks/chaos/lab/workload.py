"""The models, their configuration, and the observations: cheap and seeded, with a drift and with useless records."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from river import base

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


_PAGE = 4096


class Ballast(base.Classifier):
    """Learns one weight per feature, and carries random bytes, of which each observation changes a page.

    Parameters
    ----------
    kilobytes
        Of random bytes: they do not compress, so the stored state is as large.
    """

    def __init__(self, kilobytes: int = 1000) -> None:
        self.kilobytes = kilobytes
        self.bytes = np.random.default_rng(1).integers(0, 256, kilobytes * 1000, dtype=np.uint8)
        self.weights: dict[str, float] = {}
        self.n = 0

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """The logistic function of the weighted sum."""
        total = sum(self.weights.get(name, 0.0) * value for name, value in x.items())
        p = 1 / (1 + math.exp(-min(max(total, -30.0), 30.0)))
        return {True: p, False: 1 - p}

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """New bytes in a page, and a step of the gradient; a label that is no number raises in between."""
        self.n += 1
        start = self.n * _PAGE % max(len(self.bytes) - _PAGE, 1)
        self.bytes[start : start + _PAGE] ^= np.random.default_rng(self.n).integers(0, 256, 1, dtype=np.uint8)
        error = int(y) - self.predict_proba_one(x)[True]
        for name, value in x.items():
            self.weights[name] = self.weights.get(name, 0.0) + 0.1 * error * value


def ballast_config(kilobytes: int) -> dict[str, Any]:
    """A model's section of the configuration: of that size, cheaply explained."""
    return {
        "model": {"class": f"{__name__}.Ballast", "params": {"kilobytes": kilobytes}},
        "features": dict.fromkeys("abc", "number"),
        "alpha": 0.01,
        "explainers": {"pfi": {"n_samples": 1}},
        "change": None,  # its reference would be a second copy
        "publish": {"every": 50},
    }
