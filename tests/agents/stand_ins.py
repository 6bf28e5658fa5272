"""Models that are quick, exact and say what was done with them, and the configurations that name them."""

from __future__ import annotations

import random
from typing import Any

from river import base

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_topics import Observation

FACTORY = "tests.agents.stand_ins:counting_classifier"
CONTRARY_FACTORY = "tests.agents.stand_ins:contrary_classifier"
TOUCHY_FACTORY = "tests.agents.stand_ins:touchy_classifier"


class CountingClassifier(base.Classifier):
    """Predicts the label's share among the observations whose `a` has the same sign; writes down every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.counts = {False: [1, 1], True: [1, 1]}

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
