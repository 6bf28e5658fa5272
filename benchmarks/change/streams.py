"""Streams whose drift has a beginning and an end, each with the model that learns on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from river import forest, linear_model, optim, preprocessing
from river.datasets import synth

from benchmarks.data import Observation
from benchmarks.papers.streams import stagger_one_hot

FEATURES = ("a", "b", "c", "d", "unused")
"""Features of the hyperplane; it turns from a + b > 0 to c + d > 0."""

LABEL_NOISE = 0.05
"""Share of the hyperplane's labels that are turned round, and Agrawal's `perturbation`."""

BURN_IN = 3000
"""Observations before a drift begins."""


@dataclass(frozen=True)
class Drift:
    """Where a drift begins and how long it takes, in observations counted from 0.

    Observation `start` is the first that can be of the new concept, `start + length` the first that must be; a
    length of 0 is a sudden drift.
    """

    start: int
    length: int = 0

    def progress(self, t: int) -> float:
        """Share of the drift that is done when observation t is drawn: 0 before it, 1 after it, linear between."""
        if t < self.start:
            return 0.0
        return min((t - self.start) / self.length, 1.0) if self.length else 1.0


@dataclass(frozen=True)
class Stream:
    """A stream, its drift, and the model that learns on it."""

    name: str
    title: str
    n: int
    """Observations in all; those after the drift's beginning are the horizon in which it must be explained."""
    drift: Drift | None
    observations: Callable[[int], Iterator[Observation]]
    """Of a seed."""
    model: Callable[[int], Any]
    """Of a seed."""
    slow_model: bool = False
    """Then the grid runs less often."""


def mixture(
    before: Iterator[Observation], after: Iterator[Observation], drift: Drift, n: int, seed: int
) -> Iterator[Observation]:
    """n observations, each from `after` with the probability `drift.progress`; a stream goes on only in its turn."""
    rng = np.random.default_rng(seed)
    for t in range(n):
        yield next(after if rng.random() < drift.progress(t) else before)


def angle(progress: float) -> float:
    """How far the hyperplane has turned, in radians: at most a right angle."""
    return progress * math.pi / 2.0


def hyperplane_label(x: Mapping[str, float], turned: float) -> int:
    """The side of the hyperplane that x is on, without noise."""
    return int(math.cos(turned) * (x["a"] + x["b"]) + math.sin(turned) * (x["c"] + x["d"]) > 0.0)


def turning_hyperplane(drift: Drift, n: int, seed: int) -> Iterator[Observation]:
    """Normal features, labels by a hyperplane that turns through a right angle while the drift goes on.

    Two hyperplanes with the angle theta between them give different labels to the share theta / pi of all rows,
    because the features' distribution is the same in all directions.
    """
    rng = np.random.default_rng(seed)
    for t in range(n):
        x = dict(zip(FEATURES, rng.standard_normal(len(FEATURES)).tolist(), strict=True))
        flipped = rng.random() < LABEL_NOISE
        yield x, hyperplane_label(x, angle(drift.progress(t))) ^ int(flipped)


def _stagger(drift: Drift, n: int, seed: int) -> Iterator[Observation]:
    return mixture(stagger_one_hot(0, seed), stagger_one_hot(2, seed + 1), drift, n, seed + 2)


def _agrawal_concept(function: int, seed: int) -> Iterator[Observation]:
    return iter(synth.Agrawal(classification_function=function, seed=seed, perturbation=LABEL_NOISE))


def _agrawal(drift: Drift, n: int, seed: int) -> Iterator[Observation]:
    return mixture(_agrawal_concept(1, seed), _agrawal_concept(2, seed + 1), drift, n, seed + 2)


def _mixed_hyperplanes(drift: Drift, n: int, seed: int) -> Iterator[Observation]:
    first, second = turning_hyperplane(Drift(n), n, seed), turning_hyperplane(Drift(0), n, seed + 1)
    return mixture(first, second, drift, n, seed + 2)


def _forest(seed: int) -> Any:
    return forest.ARFClassifier(n_models=3, seed=seed)


def _forest_of_all_features(seed: int) -> Any:
    # A single adaptive tree needs 10 000 observations for Agrawal's functions and predicts one class for long
    # stretches; subspaces of three features and naive Bayes leaves learn more slowly here, after the drift too.
    return forest.ARFClassifier(n_models=3, max_features=9, leaf_prediction="mc", seed=seed)


def _regression(seed: int) -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(0.05))


_Make = Callable[[Drift, int, int], Iterator[Observation]]


def _family(
    name: str,
    title: str,
    make: _Make,
    model: Callable[[int], Any],
    drifts: Mapping[str, tuple[str, Drift | None, int, _Make | None]],
    slow_model: bool = False,
) -> list[Stream]:
    return [
        Stream(
            f"{name}-{kind}",
            f"{title}, {words}",
            n,
            drift,
            lambda seed, make=other or make, drift=drift or Drift(n), n=n: make(drift, n, seed),  # type: ignore[misc]  # bound now
            model,
            slow_model,
        )
        for kind, (words, drift, n, other) in drifts.items()
    ]


_NONE, _SUDDEN, _GRADUAL = None, Drift(BURN_IN), Drift(BURN_IN, 2000)

STREAMS = (
    *_family(
        "stagger",
        "STAGGER",
        _stagger,
        _forest,
        {
            "stationary": ("stationary", _NONE, 10_000, None),
            "sudden": ("sudden", _SUDDEN, 6000, None),
            "gradual": ("gradual, 2000 long", _GRADUAL, 8000, None),
        },
    ),
    *_family(
        "agrawal",
        "Agrawal",
        _agrawal,
        _forest_of_all_features,
        {
            "stationary": ("stationary", _NONE, 10_000, None),
            "sudden": ("sudden", _SUDDEN, 6000, None),
            "gradual": ("gradual, 2000 long", _GRADUAL, 8000, None),
        },
        slow_model=True,
    ),
    *_family(
        "hyperplane",
        "Hyperplane",
        turning_hyperplane,
        _regression,
        {
            "stationary": ("stationary", _NONE, 10_000, None),
            "sudden": ("sudden", _SUDDEN, 6000, None),
            "gradual": ("gradual, 2000 long", _GRADUAL, 8000, _mixed_hyperplanes),
            "turning": ("turning for 2000", Drift(BURN_IN, 2000), 8000, None),
            "creeping": ("turning for 6000", Drift(BURN_IN, 6000), 10_000, None),
        },
    ),
)

STREAMS_BY_NAME = {stream.name: stream for stream in STREAMS}
