"""Measure what the copies of a model's last good state cost, for a forest and for logistic regression.

    python -m benchmarks.good_state        # a minute

Times are processor times of a partition that is fed from bytes, without Kafka.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import orjson

from attributary_agents.config.reading import parse_config
from attributary_agents.models.guards.good_state import GoodState
from attributary_agents.state.codec import encode_state
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record

MODELS: dict[str, dict[str, Any]] = {
    "the forest of `attributary config example`": {
        "model": {"class": "river.forest.ARFClassifier", "params": {"n_models": 10, "seed": 1}},
        "alpha": 0.002,
        "explainers": {"pfi": {"n_samples": 5}, "sage": {"n_samples": 5}},
        "change": {"importances": ["pfi", "sage"]},
    },
    "logistic regression": {
        "model": [
            {"class": "river.preprocessing.StandardScaler"},
            {"class": "river.linear_model.LogisticRegression"},
        ]
    },
}
N = 4000


def _timed(function: Callable[..., None], spent: list[float]) -> Callable[..., None]:
    def timed(*given: Any) -> None:
        began = time.process_time()
        function(*given)
        spent.append(time.process_time() - began)

    return timed


def measure(settings: dict[str, Any]) -> str:
    """Return what N observations take, and which part of time and state the copies are."""
    spent: list[float] = []
    begin, note = GoodState.begin, GoodState.note
    partition = Partition("t", 0, parse_config({"models": {"m": settings}}), lambda _key: None)
    rng = random.Random(1)
    try:
        GoodState.begin, GoodState.note = _timed(begin, spent), _timed(note, spent)  # type: ignore[method-assign]
        began = time.process_time()
        for offset in range(N):
            x = {name: rng.random() for name in "abcdef"}
            y = (x["a"] + 0.5 * x["b"] > 0.75) ^ (rng.random() < 0.1)
            partition.handle(Record("t", 0, offset, 0, b"m", orjson.dumps({"x": x, "y": y})))
        total = time.process_time() - began
    finally:
        GoodState.begin, GoodState.note = begin, note  # type: ignore[method-assign]
    state = partition.models["m"]
    with_copy = len(encode_state(state))
    n_copy = len(state.good.copy or b"")
    state.good = GoodState()
    without = len(encode_state(state))
    return (
        f"{sum(spent) / N * 1e6:.1f} of {total / N * 1e6:.0f} us per observation; copy of {n_copy} bytes: "
        f"state of {with_copy} bytes, {with_copy / without - 1:.1%} more than without"
    )


def main() -> None:
    """Print a line for each model."""
    for name, settings in MODELS.items():
        print(f"{name}: {measure(settings)}")


if __name__ == "__main__":
    main()
