"""Streams with drift for the tests of fast paths."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from river.datasets import synth

Row = dict[Any, Any]
Stream = Iterator[tuple[Row, Any]]


def agrawal(n: int, *functions: int, seed: int = 1) -> Stream:
    """Nine features of very different ranges; the concept changes from one function to the next."""
    for i, function in enumerate(functions or (0, 4)):
        yield from itertools.islice(synth.Agrawal(classification_function=function, seed=seed + i), n)


def texts(n: int, seed: int = 1) -> Stream:
    """Numbers and categories: text, integers and booleans; categories come late, a number has no variance at first."""
    rng = random.Random(seed)
    for i in range(n):
        late = ["blue", "red", "green", "grey"][: 2 + 2 * (i > n // 3)]
        x = {
            "size": rng.gauss(0.0, 1.0 + (i > n // 2)),
            "constant": 3.0 if i < n // 4 else rng.choice([3.0, 4.0]),
            "colour": rng.choice(late),
            "door": rng.randint(1, 3 + (i > n // 2)),
            "new": rng.random() < 0.5,
        }
        score = x["size"] * (1 if i < n // 2 else -1) + (x["colour"] == "red") - (x["door"] == 2) + x["new"] / 2
        yield x, score + rng.gauss(0.0, 0.3) > 0


def blobs(n: int, d: int = 4, labels: tuple[Any, ...] = ("b", "a", "c"), late: float = 0.5, seed: int = 1) -> Stream:
    """Classes around centres that move; the last class comes late."""
    rng = random.Random(seed)
    centres = [[rng.gauss(0.0, 2.0) for _ in range(d)] for _ in labels]
    for i in range(n):
        known = len(labels) - (i < late * n and len(labels) > 2)
        k = rng.randrange(known)
        if i == n // 2:
            centres = [[rng.gauss(0.0, 2.0) for _ in range(d)] for _ in labels]
        yield {f"x{j}": rng.gauss(centres[k][j], 1.0) for j in range(d)}, labels[k]


def binary(n: int, d: int = 4) -> Stream:
    return ((x, y == "a") for x, y in blobs(n, d, ("b", "a")))


def line(n: int, d: int = 5, seed: int = 1) -> Stream:
    """A regression whose coefficients change; features are floats, integers and booleans."""
    rng = random.Random(seed)
    weights = [rng.gauss(0.0, 1.0) for _ in range(d)]
    draws: list[Callable[[], Any]] = [
        lambda: rng.gauss(5.0, 2.0),
        lambda: rng.randint(-3, 3),
        lambda: rng.random() < 0.3,
    ]
    for i in range(n):
        if i == n // 2:
            weights = [rng.gauss(0.0, 1.0) for _ in range(d)]
        x = {f"x{j}": draws[j % 3]() for j in range(d)}
        yield x, sum(w * v for w, v in zip(weights, x.values(), strict=True)) + rng.gauss(0.0, 0.1)
