"""Models that are quick, exact and say what was done with them, and the configurations that name them."""

from __future__ import annotations

import random
from typing import Any

from river import base

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.state.checkpoints import PartitionCounters
from attributary_agents.worker.records import Outgoing
from attributary_topics import Observation

FACTORY = "tests.agents.stand_ins:counting_classifier"
CONTRARY_FACTORY = "tests.agents.stand_ins:contrary_classifier"
TOUCHY_FACTORY = "tests.agents.stand_ins:touchy_classifier"

TOPIC, MODELS = "attributary.observations.v1", "attributary.models.v1"
DEAD_LETTERS = "attributary.dead-letters.v1"

GOOD = b'{"x": {"a": 1, "b": 0.5}, "y": true}'
BAD: dict[str, tuple[bytes | None, bytes | None, str]] = {
    "no JSON": (b"m", b"{poison", "invalid_json"),
    "no model id": (None, GOOD, "missing_model_id"),
    "wrong type": (b"m", b'{"x": {"a": "one", "b": 2}, "y": true}', "wrong_type"),
    "only missing values": (b"m", b'{"x": {"a": NaN, "b": null}, "y": true}', "missing_feature"),
    "label that is NaN": (b"m", b'{"x": {"a": 1, "b": 2}, "y": NaN}', "missing_label"),
    "infinity": (b"m", b'{"x": {"a": 1, "b": -Infinity}, "y": true}', "not_finite"),
    "too large a number": (b"m", b'{"x": {"a": 1, "b": 1e999}, "y": true}', "not_finite"),
    "no features": (b"m", b'{"x": {}, "y": true}', "missing_feature"),
    "no label": (b"m", b'{"x": {"a": 1, "b": 1}}', "missing_label"),
    "unknown model": (b"debit", GOOD, "unknown_model"),
    "empty value": (b"m", b"", "empty_value"),
    "no value": (b"m", None, "empty_value"),
    "2 MB value": (b"m", b'{"x": {"a": "' + b"x" * 2_000_000 + b'"}}', "too_large"),
    "bad UTF-8 key": (b"\xff\xfe", GOOD, "invalid_model_id"),
    "deeply nested": (b"m", b"[" * 100_000, "invalid_json"),
}
"""Key, value and reason of the dead letter, for a model `m` with the features a and b."""

EAGER = {
    "threshold": 0.05,
    "detector": "page_hinkley",
    "detector_params": {"min_instances": 1, "threshold": 2.0, "delta": 0.01, "mode": "both"},
}
"""Of explaining changes: after few observations there is an alarm, and each alarm is a change."""


class CountingClassifier(base.Classifier):
    """Predicts the label's share among the observations whose `a` has the same sign; writes down every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.counts = {False: [1, 1], True: [1, 1]}

    def __getstate__(self) -> dict[str, Any]:
        # What the test reads is no part of the model: predicting changes no model,
        # and a frozen one is stored only once.
        return {**vars(self), "calls": []}

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        self.calls.append(("predict", dict(x)))
        no, yes = self.counts[x["a"] > 0]
        return {False: no / (no + yes), True: yes / (no + yes)}

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        self.calls.append(("learn", dict(x)))
        self.counts[x["a"] > 0][bool(y)] += 1

    @property
    def predicted(self) -> list[dict[str, Any]]:
        return [x for what, x in self.calls if what == "predict"]


class TouchyClassifier(CountingClassifier):
    """Raises where `c` says so: in `predict`, in `learn`, or, seeing a mixed row, while it is explained."""

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        if x.get("c") == "predict":
            raise RuntimeError("cannot predict this")
        if x.get("c") == "explain" and x["b"] != round(x["a"] * 2, 6):
            raise ZeroDivisionError("cannot predict a mixture")
        prediction = super().predict_proba_one(x)
        self.calls.clear()
        return prediction

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        super().learn_one(x, y)  # half-way through is the worst moment to raise
        self.calls.clear()
        if x.get("c") == "learn":
            raise ValueError("cannot learn this")


def counting_classifier() -> CountingClassifier:
    return CountingClassifier()


def contrary_classifier() -> CountingClassifier:
    """Has learnt the opposite of the rule."""
    model = CountingClassifier()
    model.counts = {False: [1, 9], True: [9, 1]}
    return model


def touchy_classifier() -> TouchyClassifier:
    return TouchyClassifier()


def config_of(*model_ids: str, **model: Any) -> Config:
    """A configuration of these model ids ("m" by default), all with the same model."""
    chosen = {"factory": FACTORY, "alpha": 0.05, **model}
    return parse_config({"models": dict.fromkeys(model_ids or ("m",), chosen)})


def observations(n: int, *, flip_at: int | None = None, model_id: str = "m", seed: int = 1) -> list[Observation]:
    """`a` decides the label up to `flip_at` and its opposite from then on; `b` is noise."""
    rng = random.Random(seed)
    made = []
    for i in range(n):
        a, b = rng.uniform(-1, 1), rng.uniform(-1, 1)
        made.append(Observation(model_id, {"a": a, "b": b}, (a > 0) != (flip_at is not None and i >= flip_at)))
    return made


def header(outgoing: Outgoing, name: str) -> str:
    (value,) = [value for found, value in outgoing.headers if found == name]
    return (value or b"").decode()


def balances(counters: PartitionCounters) -> bool:
    dropped = counters.origins.n_dropped + counters.replayed.n_repeats
    return counters.consumed == counters.used + sum(counters.dead_letters.values()) + dropped
