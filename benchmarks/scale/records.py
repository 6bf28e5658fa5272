"""Makes the observations of all subjects: the same ones each time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

MODEL_ID = "model-00000"
POOL = 1000
"""Different observations of a topic; they come again and again."""


def model_id(number: int) -> str:
    """Return the id of a model; they differ in nothing else."""
    return f"model-{number:05d}"


def observation(i: int, n_features: int) -> dict[str, Any]:
    """Return the i-th observation: normal features, of which the first one and noise decide the label."""
    rng = random.Random(i)
    x = {f"f{k}": round(rng.gauss(0.0, 1.0), 4) for k in range(n_features)}
    return {"x": x, "y": x["f0"] + rng.gauss(0.0, 1.0) > 0.0}


@cache
def values(n_features: int) -> list[bytes]:
    """Return the observations as the values of records."""
    return [json.dumps(observation(i, n_features)).encode() for i in range(POOL)]


def records(n: int, n_features: int, n_models: int, n_partitions: int, partition: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of so many records of one partition: in each round one of every model, in another order."""
    numbers, pool, rng = list(range(partition, n_models, n_partitions)), values(n_features), random.Random(partition)
    done = 0
    while done < n:
        rng.shuffle(numbers)
        for number in numbers[: n - done]:
            yield model_id(number).encode(), pool[done % POOL]
            done += 1
