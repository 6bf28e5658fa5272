"""Measures what the state of an ordinary model costs: bytes in memory, bytes stored, time to encode and to decode.

    python -m benchmarks.scale state              # a scaler and a logistic regression, young and mature
    python -m benchmarks.scale state --digits 2   # of numbers that can be compressed

A young model has taken 10 observations, a mature one 3000; both have iPFI, iSAGE, the watch of the loss and the change
explainer with the worker's defaults, or no change explainer. Times are of the processor, medians. The last lines are of
one observation that waits for its label, and of one that is remembered so that a label that comes twice is known.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from attributary_agents.config.models import ModelConfig
from attributary_agents.config.reading import parse_config
from attributary_agents.models.join import arrive
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.state.codec import decode_state, encode_state
from attributary_topics import LateLabel, Observation, Source

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
        """Names the case in a table."""
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


class Scored:
    """A model in service whose scores are numbers, each another one."""

    def __call__(self, x: dict[str, Any]) -> float:
        """Return the sum of the numbers."""
        return float(sum(value for value in x.values() if isinstance(value, float)))


def waiting(n: int, n_features: int) -> tuple[float, float, float, float]:
    """Let n observations wait for their labels, which then come.

    Returns
    -------
    Bytes in memory and stored of one observation that waits, and of one that is remembered.
    """
    model = {"factory": f"{__name__}:Scored", "loss": "squared", "learn": False, "watch_loss": False, "quality": []}
    config = parse_config(
        {
            "sources": {"s": {"topic": "s", "id": "id"}},
            "labels": {"l": {"topic": "l", "id": "id", "y": "y", "ttl": "30d", "max_waiting": n}},
            "models": {MODEL: {**model, "explainers": {}, "change": None}},
        }
    )
    state, begin_ms, rng = new_state(MODEL, config.models[MODEL]), 1_700_000_000_000, random.Random(1)
    arrive(state, Observation(MODEL, {"feature_1": 0.0}, None, None, "first", begin_ms), 0)
    labels = [LateLabel(MODEL, f"order-{i:08d}", 1.0, begin_ms + 1000 * n) for i in range(n)]
    sizes = [len(encode_state(state))]
    tracemalloc.start()
    try:
        held = [tracemalloc.get_traced_memory()[0]]
        for i in range(n):
            x = {
                f"feature_{k}": round(rng.gauss(0, 1), 4) if k % 3 else rng.choice(["red", "green", "blue"])
                for k in range(n_features)
            }
            arrive(state, Observation(MODEL, x, None, None, f"order-{i:08d}", begin_ms + 1000 * i), 0)
        held.append(tracemalloc.get_traced_memory()[0])
        sizes.append(len(encode_state(state)))
        for label in labels:
            arrive(state, label, 0)
        held.append(tracemalloc.get_traced_memory()[0])
        sizes.append(len(encode_state(state)))
    finally:
        tracemalloc.stop()
    of_memory, of_state = ([(later - found[0]) / n for later in found[1:]] for found in (held, sizes))
    return of_memory[0], of_state[0], of_memory[1], of_state[1]


out = Console(width=130)

COLUMNS = {
    "grown": ("kB in memory, grown", 1e-3),
    "restored": ("kB in memory, restored", 1e-3),
    "stored": ("kB stored", 1e-3),
    "encode": ("ms to encode", 1.0),
    "decode": ("ms to decode", 1.0),
    "observe": ("ms per observation", 1.0),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale state",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeats", type=int, default=50, help="of encoding and decoding; default 50")
    parser.add_argument("--digits", type=int, help="decimals of the features; default: all, which none can compress")
    parser.add_argument("--waiting", type=int, default=10_000, help="observations that wait; default 10000")
    args = parser.parse_args(argv)
    table = Table("one model", *(title for title, _ in COLUMNS.values()))
    with Progress(console=out, transient=True) as progress:
        task = progress.add_task("states", total=len(CASES))
        for case in CASES:
            progress.update(task, description=case.name)
            cost = measure(case, args.repeats, args.digits)
            table.add_row(case.name, *(f"{factor * getattr(cost, name):.3g}" for name, (_, factor) in COLUMNS.items()))
            progress.advance(task)
    out.print(table)
    table = Table("one observation", "waits, B in memory", "B stored", "remembered, B in memory", "B stored")
    for n_features in (8, 30):
        table.add_row(f"{n_features} features", *(f"{size:.0f}" for size in waiting(args.waiting, n_features)))
    out.print(table)
    return 0
