"""The papers' streams: gradual drift of a width, swapped features, random switching, a random order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from river.datasets import synth

from benchmarks.data import Observation

AGRAWAL = ("salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan")
"""Agrawal's features, in river's order."""

STAGGER = {feature: [f"{feature}_{value}" for value in range(3)] for feature in ("size", "color", "shape")}
"""STAGGER's features to their one-hot columns."""


def agrawal(function: int, seed: int) -> Iterator[Observation]:
    """Agrawal's loan applications, without noise; functions are counted from 0 as river does."""
    return iter(synth.Agrawal(classification_function=function, seed=seed))


def agrawal_label(x: dict[str, Any]) -> int:
    """Agrawal's function 1, counted from 0: whether age and salary are in the papers' class 1 (iPFI's class A)."""
    age, salary = x["age"], x["salary"]
    if age < 40:
        return int(50_000 <= salary <= 100_000)
    if age < 60:
        return int(75_000 <= salary <= 125_000)
    return int(25_000 <= salary <= 75_000)


def stagger_one_hot(function: int, seed: int) -> Iterator[Observation]:
    """STAGGER's objects as nine 0/1 columns."""
    for x, y in synth.STAGGER(classification_function=function, seed=seed):
        yield {f"{feature}_{value}": int(x[feature] == value) for feature in STAGGER for value in range(3)}, y


def gradual_drift(
    before: Iterator[Observation], after: Iterator[Observation], *, position: int, width: float, n: int, seed: int
) -> Iterator[Observation]:
    """n observations, that of time t from `after` with probability 1 / (1 + exp(-4 (t - position) / width)).

    Source: Change, equation 5. Both streams go on only when it is their turn.
    """
    rng = np.random.default_rng(seed)
    for t in range(n):
        # Far from the position the exponential overflows; its limit is clear.
        exponent = min(max(-4.0 * (t - position) / width, -700.0), 700.0)
        yield next(after if rng.random() < 1.0 / (1.0 + math.exp(exponent)) else before)


def swap_features(stream: Iterable[Observation], one: str, other: str, *, after: int) -> Iterator[Observation]:
    """From observation number `after` on (0-based) two features have each other's values (iPFI, feature-drift)."""
    for t, (x, y) in enumerate(stream):
        yield ({**x, one: x[other], other: x[one]} if t >= after else x), y


def switching(
    streams: Sequence[Iterator[Observation]], *, probability: float, n: int, seed: int
) -> Iterator[tuple[int, dict[str, Any], Any]]:
    """n observations (number of the stream, x, y); before each the stream is changed with a probability.

    Source: iSAGE, section 4.2 and appendix D.3.2. The first stream and every next one are drawn uniformly, the next one
    of the others.
    """
    rng = np.random.default_rng(seed)
    current = int(rng.integers(len(streams)))
    for t in range(n):
        if t and rng.random() < probability:
            current = (current + 1 + int(rng.integers(len(streams) - 1))) % len(streams)
        yield current, *next(streams[current])


def shuffled(observations: Sequence[Observation], seed: int) -> list[Observation]:
    """The observations in a random order."""
    return [observations[i] for i in np.random.default_rng(seed).permutation(len(observations)).tolist()]
