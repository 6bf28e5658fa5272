"""Grows ordinary models, and measures what their states take: memory, stored bytes, time to encode and to decode."""

from __future__ import annotations

import gc
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from attributary_agents.config.models import ModelConfig
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.state.codec import decode_state, encode_state
from attributary_topics import Observation, Source

MODEL = "m"
AGES = {"young": 10, "mature": 3000}
"""Observations of a model."""
FEATURES = (3, 9)
VARIANTS: dict[str, dict[str, Any]] = {"defaults": {}, "change: null": {"change": None}}
"""What the configuration says beside the model and its two explainers."""

_STEPS = [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}]


@dataclass(frozen=True)
class Case:
    """A model to measure."""

    n_features: int
    age: str
    variant: str

    @property
    def name(self) -> str:
        """Names the case in a table and in a file of results."""
        return f"{self.n_features} features, {self.age}, {self.variant}"


CASES = tuple(Case(n, age, variant) for variant in VARIANTS for n in FEATURES for age in AGES)


@dataclass(frozen=True)
class Cost:
    """What one state takes.

    Attributes
    ----------
    grown, restored
        Bytes in memory of a state that has grown here, and of one that was decoded.
    stored
        Bytes that are stored.
    encode, decode, observe
        Milliseconds of processor time: to encode, to decode, and of one of the last observations.
    """

    grown: float
    restored: float
    stored: float
    encode: float
    decode: float
    observe: float


def config_of(case: Case) -> ModelConfig:
    """Return the configuration of a scaler and a logistic regression with both explainers."""
    features = {f"f{i}": "number" for i in range(case.n_features)}
    explainers: dict[str, Any] = {"pfi": {}, "sage": {}}
    return ModelConfig.model_validate(
        {"model": _STEPS, "features": features, "explainers": explainers, **VARIANTS[case.variant]}
    )


def observations(n_features: int, seed: int, digits: int | None) -> Iterator[Observation]:
    """Yield observations of normal features, of which the first one and noise decide the label.

    Parameters
    ----------
    digits
        Decimals that numbers have; None: all of them, which no compression takes.
    """
    rng = random.Random(seed)
    while True:
        x = {f"f{i}": rng.gauss(0.0, 1.0) for i in range(n_features)}
        if digits is not None:
            x = {name: round(value, digits) for name, value in x.items()}
        yield Observation(MODEL, x, x["f0"] + rng.gauss(0.0, 1.0) > 0.0)


def measure(case: Case, repeats: int, digits: int | None = None) -> Cost:
    """Grow models of a case, encode and decode them."""
    config, n = config_of(case), AGES[case.age]
    blob, observe = _stored(config, case.n_features, n, digits)  # also warms caches
    state = decode_state(MODEL, config, blob)
    encode = [_ms(partial(encode_state, state)) for _ in range(repeats)]
    decode = [_ms(partial(decode_state, MODEL, config, blob)) for _ in range(repeats)]
    grown = _allocated(lambda: _grown(config, case.n_features, n, digits)[0], 1 if n > 100 else 10)
    restored = _allocated(lambda: decode_state(MODEL, config, blob), 10)
    return Cost(grown, restored, len(blob), statistics.median(encode), statistics.median(decode), observe)


def _grown(config: ModelConfig, n_features: int, n: int, digits: int | None) -> tuple[ModelState, float]:
    state, took = new_state(MODEL, config), []
    state.partition = 0
    for offset, observation in zip(range(n), observations(n_features, 1, digits), strict=False):
        state.offset = offset
        source = Source("observations", 0, offset)
        began = time.process_time()
        prequential(state, observation, source, offset)
        took.append(1e3 * (time.process_time() - began))
    return state, statistics.median(took[-1000:])


def _stored(config: ModelConfig, n_features: int, n: int, digits: int | None) -> tuple[bytes, float]:
    state, observe = _grown(config, n_features, n, digits)
    return encode_state(state), observe


def _ms(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return 1e3 * (time.process_time() - began)


def _allocated(make: Callable[[], Any], n: int) -> float:
    """Return the bytes that one of n equal objects keeps."""
    make()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [make() for _ in range(n)]
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    finally:
        tracemalloc.stop()
