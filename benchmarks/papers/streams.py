"""The papers' streams: gradual drift of a width, swapped features, random switching, and the data sets."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from river.datasets import synth

from benchmarks.papers.rows import NoDataError

Observation = tuple[dict[str, Any], Any]

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


def data_set(data: Path, name: str) -> Iterator[tuple[dict[str, str], str]]:
    """Rows of `<data>/<name>.csv.gz` as text; the last column is the target.

    Raises
    ------
    NoDataError
        The file is not there.
    """
    path = data / f"{name}.csv.gz"
    if not path.is_file():
        raise NoDataError(path)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        *features, _ = next(rows)
        for *x, y in rows:
            yield dict(zip(features, x, strict=True)), y


def elec2(data: Path) -> Iterator[Observation]:
    """The electricity market, in order; y is whether the price goes up."""
    return (({name: float(value) for name, value in x.items()}, y == "UP") for x, y in data_set(data, "elec2"))


def numbers(data: Path, name: str, *, target: str = "") -> list[Observation]:
    """A whole data set as numbers; text columns are coded by the order of their sorted values.

    Parameters
    ----------
    data, name
        As for `data_set`.
    target
        The class that is 1, all others 0; empty for a target that is a number.
    """
    rows = list(data_set(data, name))
    encoded: dict[str, dict[str, float]] = {}
    for feature in rows[0][0]:
        values = sorted({x[feature] for x, _ in rows})
        try:
            encoded[feature] = {value: float(value) for value in values}
        except ValueError:
            encoded[feature] = {value: float(code) for code, value in enumerate(values)}
    return [
        ({feature: encoded[feature][value] for feature, value in x.items()}, int(y == target) if target else float(y))
        for x, y in rows
    ]


def shuffled(observations: Sequence[Observation], seed: int) -> list[Observation]:
    """The observations in a random order."""
    return [observations[i] for i in np.random.default_rng(seed).permutation(len(observations)).tolist()]
