"""What an observation takes that waits for its label: memory, stored state, time.

    python -m benchmarks.labels waiting                  # half a minute
    python -m benchmarks.labels waiting --waiting 100000

Observations have ids that share a prefix, numbers of four digits and, for every third feature, one of three words;
each has a prediction of its own. *In memory* is what Python has allocated more than with none, *stored* by how much the
state is larger as a checkpoint writes it, compressed, and *to store* how much longer writing takes. *Remembered* is the
same of one that has had its label: its id is kept to know labels that come twice. *A label* is from the decoded record
to the observation that is complete with it, before it is explained. Times are of the processor.
"""

from __future__ import annotations

import argparse
import random
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from attributary_agents.config.reading import parse_config
from attributary_agents.models.join import arrive
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.state.codec import encode_state
from attributary_topics import LateLabel, Observation

FEATURES = (8, 30)
START_MS = 1_700_000_000_000

out = Console(width=110)


class Scored:
    """A model in service whose scores are numbers, each another one."""

    def __call__(self, x: dict[str, Any]) -> float:
        """Return the sum of the numbers."""
        return float(sum(value for value in x.values() if isinstance(value, float)))


@dataclass(frozen=True)
class Cost:
    """What one observation takes that waits, and one that is remembered: bytes, microseconds; milliseconds for all."""

    in_memory: float
    stored: float
    remembered_in_memory: float
    remembered_stored: float
    to_store_ms: float
    label_us: float


def state(n: int) -> ModelState:
    """Return a model of which n observations may wait."""
    config = parse_config(
        {
            "sources": {"s": {"topic": "s", "id": "id"}},
            "labels": {"l": {"topic": "l", "id": "id", "y": "y", "ttl": "30d", "max_waiting": n}},
            "models": {
                "m": {
                    "factory": f"{__name__}:Scored" if __name__ != "__main__" else "benchmarks.labels:Scored",
                    "loss": "squared",
                    "learn": False,
                    "explainers": {},
                    "change": None,
                    "watch_loss": False,
                    "quality": [],
                }
            },
        }
    )
    return new_state("m", config.models["m"])


def observations(n: int, n_features: int) -> Iterator[Observation]:
    """Yield observations, one a second."""
    rng = random.Random(1)
    for i in range(n):
        x = {
            f"feature_{k}": round(rng.gauss(0, 1), 4) if k % 3 else rng.choice(["red", "green", "blue"])
            for k in range(n_features)
        }
        yield Observation("m", x, None, None, f"order-{i:08d}", START_MS + 1000 * i)


def waiting(n: int, n_features: int) -> Cost:
    """Let n observations wait, store them, and send their labels in another order."""
    known = state(n)
    arrive(known, Observation("m", {"feature_1": 0.0}, None, None, "first", START_MS), 0)
    empty, to_store_empty = stored(known)
    labels = [LateLabel("m", f"order-{i:08d}", 1.0, START_MS + 1000 * n) for i in range(n)]
    random.Random(2).shuffle(labels)
    in_memory, remembered = allocated(n, n_features, labels)
    for one in observations(n, n_features):
        arrive(known, one, 0)
    full, to_store = stored(known)
    began = time.process_time()
    for label in labels:
        arrive(known, label, 0)
    took = time.process_time() - began
    assert known.late is not None
    assert known.late.labels is not None
    assert known.late.labels.counts.joined == n
    past, _ = stored(known)
    return Cost(
        in_memory / n,
        (full - empty) / n,
        remembered / n,
        (past - empty) / n,
        1000 * (to_store - to_store_empty),
        1e6 * took / n,
    )


def allocated(n: int, n_features: int, labels: list[LateLabel]) -> tuple[int, int]:
    """Return the bytes that n observations take that wait, and that they take when all have had their labels."""
    known = state(n)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for one in observations(n, n_features):
        arrive(known, one, 0)
    in_memory = tracemalloc.get_traced_memory()[0]
    for label in labels:
        arrive(known, label, 0)
    remembered = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return in_memory - before, remembered - before


def stored(known: ModelState) -> tuple[int, float]:
    """Return the size of the state as it is stored, and the least time of three that it takes to encode it."""
    times, size = [], 0
    for _ in range(3):
        began = time.process_time()
        size = len(encode_state(known))
        times.append(time.process_time() - began)
    return size, min(times)


def main() -> None:
    """Print what an observation takes that waits for its label."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["waiting"])
    parser.add_argument("--waiting", type=int, default=10_000, help="how many wait (default: 10000)")
    args = parser.parse_args()
    names = ("features", "in memory", "stored", f"to store {args.waiting}", "a label", "remembered", "stored")
    table = Table(*names, title="One observation that waits for its label")
    for n_features in FEATURES:
        cost = waiting(args.waiting, n_features)
        table.add_row(
            str(n_features),
            f"{cost.in_memory:.0f} B",
            f"{cost.stored:.0f} B",
            f"{cost.to_store_ms:.0f} ms",
            f"{cost.label_us:.1f} µs",
            f"{cost.remembered_in_memory:.0f} B",
            f"{cost.remembered_stored:.0f} B",
        )
    out.print(table)


if __name__ == "__main__":
    main()
