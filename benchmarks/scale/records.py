"""Makes the observations of all subjects, the same ones each time; and reads what a process takes, from outside."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
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


def processor_s(pid: int) -> float:
    """Return the seconds of processor time that a process has taken, all of its threads: those that ended too."""
    return time.clock_gettime((~pid << 3) | 2)  # the clock of a process, as clock_getcpuclockid(3) makes it


def memory(pid: int) -> tuple[float, float]:
    """Return the bytes that a process has resident, and its share of them where pages are shared (RSS and PSS)."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        found[name] = 1024.0 * int(rest.split()[0])
    return found["Rss"], found["Pss"]
