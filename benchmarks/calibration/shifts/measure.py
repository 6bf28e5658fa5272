"""How often a shift is told that is none, and how soon one that is: over streams and models drawn by their seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from attributary_explainers import ImportanceShift, Shift

from .models import World
from .streams import NAMES, STREAMS, D

WARM = 1000
"""Observations before the first that is looked at: until then the store holds the first rows only."""
REFERENCE, WATCHED = 40_960, 50_000
"""The largest reference, and what comes after it; smaller references are watched meanwhile."""
HORIZON = 25_000
_LEAST_SHARE = 0.10
_SEED = 20_261


T = TypeVar("T")


class Null(NamedTuple):
    """What was told on a stream without a shift."""

    n_shifts: int
    n_reference: int
    """At the end."""
    least_change: float
    """The largest of all features, at the end; NaN where there is no reference."""
    period: float | None
    first_ready: int
    """Observations until there was a reference; -1 where there never was one."""


class Power(NamedTuple):
    """What was told of a shift."""

    share: float
    """Of the total importance, before it."""
    delay: float
    """Observations until it was told; infinite where it was not."""
    right: bool
    """Whether the right feature was named."""
    onset_error: float
    """Observations by which the onset was told too late."""
    held: bool
    """Whether the importance after it is in the interval that was told."""
    early: bool
    """Whether one was told before."""


def null(kind: str, seed: int) -> Null:
    """Follow a stream without a shift: 50 000 observations after the largest reference; all that is told counts."""
    rng = np.random.default_rng([_SEED, 1, seed])
    world = World.of(seed % 2 == 1, rng)
    x = STREAMS[kind](WARM + REFERENCE + WATCHED, rng)
    shift, n_shifts, first_ready = ImportanceShift(), 0, -1
    for n, increments in enumerate(world.increments(x, rng)[WARM:], start=1):
        n_shifts += isinstance(shift.update(NAMES, increments), Shift)
        if first_ready < 0 and shift.ready:
            first_ready = n
    least = max(shift.least_change.values(), default=float("nan"))
    return Null(n_shifts, shift.n_reference, least, shift.period, first_ready)


def power(kind: str, classes: bool, factor: float, at: int, ramp: int, seed: int) -> Power:
    """Follow a stream in which the importance of the feature with the least share above .10 is multiplied.

    The shift begins `at` observations after the store is filled, and takes `ramp`.
    """
    rng = np.random.default_rng([_SEED, 2, seed])
    while True:
        world = World.of(classes, rng)
        expected = world.expected()
        shares = expected / np.abs(expected).sum()
        fitting = [j for j in range(2, D) if shares[j] >= _LEAST_SHARE]
        if fitting:
            break
    j = min(fitting, key=lambda j: shares[j])
    n = WARM + at + ramp + HORIZON
    weight = _weight_for(world, j, factor, expected[j])
    factors = np.ones((n, D))
    factors[:, j] = np.interp(np.arange(n), [WARM + at, WARM + at + ramp + 1e-9], [1.0, weight])
    x = STREAMS[kind](n, rng)
    shift, early = ImportanceShift(), False
    for t, increments in enumerate(world.increments(x, rng, factors)[WARM:], start=1):
        told = shift.update(NAMES, increments)
        if isinstance(told, Shift):
            if t > at:
                after = world.expected(j, weight, STREAMS[kind])[j]
                held = told.after.low <= after <= told.after.high
                right = told.feature == NAMES[j]
                return Power(shares[j], t - at, right, told.onset - at - 1, held, early)
            early = True
    return Power(shares[j], float("inf"), False, float("nan"), False, early)


def _weight_for(world: World, j: int, factor: float, before: float) -> float:
    """Return by what to multiply the weight of a feature for its importance to be multiplied by this."""
    low, high = 0.0, 8.0
    for _ in range(18):
        middle = (low + high) / 2.0
        low, high = (middle, high) if world.expected(j, middle)[j] < factor * before else (low, middle)
    return high


def nulls(kind: str, runs: int, jobs: int) -> list[Null]:
    """Run `null` with so many seeds."""
    return _each(partial(null, kind), range(runs), jobs)


def powers(kind: str, classes: bool, factor: float, at: int, ramp: int, runs: int, jobs: int) -> list[Power]:
    """Run `power` with so many seeds."""
    return _each(partial(power, kind, classes, factor, at, ramp), range(runs), jobs)


def _each(function: Callable[[int], T], seeds: Iterable[int], jobs: int) -> list[T]:
    if jobs == 1:
        return [function(seed) for seed in seeds]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(function, seeds, chunksize=4))


def median(values: Sequence[float]) -> float:
    """Return the median; infinite values count as the largest."""
    return float(np.quantile(values, 0.5, method="inverted_cdf")) if len(values) else float("nan")
