"""A made-up network of pressure sensors, and the faults that five of them have, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

KINDS = ("stuck", "offset", "drift", "noise", "spikes")
"""The faults, in their order."""

DAY = 96
"""Observations in a day: one every quarter of an hour."""


@dataclass(frozen=True)
class Fault:
    """A fault of one sensor, from the observation `begin` on and before `end`; the first observation is 0."""

    kind: str
    sensor: str
    begin: int
    end: int


@dataclass(frozen=True)
class Network:
    """The readings, one row per observation and one column per sensor, and what is wrong with them."""

    names: list[str]
    readings: Array
    faults: list[Fault]

    def rows(self) -> list[dict[str, float]]:
        """Return the observations."""
        return [dict(zip(self.names, map(float, row), strict=True)) for row in self.readings]


def make_network(
    seed: int = 1,
    n_sensors: int = 29,
    *,
    warm_up: int = 4000,
    length: int = 600,
    between: int = 600,
    stuck: str = "lowest",
) -> Network:
    """Make a network with five faults.

    Pressures of a network of pipes go up and down together: the demand has a daily rhythm with two peaks, which is felt
    more at some places than at others, and three further influences (pumps, the weather, a quarter of the town) drift
    slowly. Each sensor adds noise of its own, a tenth of its spread. The faults are as large as that spread makes
    them: an offset of 3 spreads; a drift from 0 to 6; noise of 2; one reading in ten off by 8; and a sensor that is
    stuck goes on with one reading.

    Parameters
    ----------
    stuck
        `lowest`: the lowest reading that it has had, as of a sensor that is cut off. `held`: the reading that it had
        when that began. Where that lies in the middle it is hardly stranger than any other reading.
    warm_up
        Observations before the first fault.
    length, between
        Observations of each fault, and after it.
    """
    rng = np.random.default_rng(seed)
    n = warm_up + len(KINDS) * (length + between)
    day = 2.0 * np.pi * np.arange(n) / DAY
    demand = np.sin(day - 1.0) + 0.6 * np.sin(2.0 * day)
    slow = np.array([_slow(rng, n) for _ in range(3)])
    felt = rng.uniform(0.6, 1.4, (n_sensors, 1))
    shares = rng.normal(0.0, 0.5, (n_sensors, 3))
    clean = 50.0 - 5.0 * (felt * demand + shares @ slow)
    spread = clean.std(axis=1, keepdims=True)
    readings = clean + rng.normal(0.0, 0.1, clean.shape) * spread
    names = [f"p{i + 1:02d}" for i in range(n_sensors)]
    faults = []
    for i, (kind, sensor) in enumerate(zip(KINDS, rng.permutation(n_sensors)[: len(KINDS)].tolist(), strict=True)):
        begin = warm_up + i * (length + between)
        part = readings[sensor, begin : begin + length]
        if kind == "stuck":
            part[:] = part[0] if stuck == "held" else readings[sensor, :begin].min()
        else:
            part[:] = _faulty(kind, part, float(spread[sensor, 0]), rng)
        faults.append(Fault(kind, names[sensor], begin, begin + length))
    return Network(names, readings.T.copy(), faults)


def _slow(rng: np.random.Generator, n: int) -> Array:
    steps = rng.normal(0.0, (1.0 - 0.98**2) ** 0.5, n)
    found = np.zeros(n)
    for i in range(1, n):
        found[i] = 0.98 * found[i - 1] + steps[i]
    return found


def _faulty(kind: str, readings: Array, spread: float, rng: np.random.Generator) -> Array:
    n = len(readings)
    if kind == "offset":
        return readings + 3.0 * spread
    if kind == "drift":
        return readings + np.linspace(0.0, 6.0, n) * spread
    if kind == "noise":
        return readings + rng.normal(0.0, 2.0 * spread, n)
    hits = rng.random(n) < 0.1
    return readings + np.where(hits, rng.choice([-8.0, 8.0], n), 0.0) * spread
