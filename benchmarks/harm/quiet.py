"""Streams on which nothing happens to the model, though rows depend on those before: false events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.signal import lfilter

from attributary_explainers import LossMonitor
from benchmarks.change.counting import poisson
from benchmarks.harm.feeding import Map, Row, Told, feed, nothing, of_two
from benchmarks.harm.worlds.subjects import COLUMNS, SUBJECTS, Array, labels, latent, subject

LONG = 50_000
PERIOD = 1500


def autocorrelated(rng: np.random.Generator, n: int, by: float = 0.9) -> Array:
    """Each column is .9 of itself before, and new."""
    z = latent(rng, n)
    z[1:] *= np.sqrt(1 - by**2)
    return np.asarray(lfilter([1.0], [1.0, -by], z, axis=0))


def oscillating(rng: np.random.Generator, n: int) -> Array:
    """The means of three columns go up and down, and so does the share of positives."""
    z = latent(rng, n)
    z[:, [1, 5, 6]] += 0.7 * np.sin(2 * np.pi * (np.arange(n) + rng.integers(PERIOD)) / PERIOD)[:, None]
    return z


def in_regimes(rng: np.random.Generator, n: int, dwell: float = 300) -> Array:
    """Three regimes with means and spreads of their own; each lasts so many rows on average."""
    number = np.cumsum(rng.random(n) < 1 / dwell)
    state = rng.integers(0, 3, number[-1] + 1)[number]
    towards = np.zeros((3, COLUMNS))
    towards[1, :9], towards[2, :9] = 0.5, -0.4
    towards[:, 2:9:3] *= -1.0
    return np.asarray(latent(rng, n) * np.array([1.0, 1.25, 0.8])[state][:, None] + towards[state])


STREAMS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "iid": latent,
    "AR(.9)": autocorrelated,
    "base rate that oscillates": oscillating,
    "regimes of 300": in_regimes,
    "regimes of 2000": partial(in_regimes, dwell=2000),
}
GOALS = {"regimes of 300": "≤ 2", "regimes of 2000": "–"}
"""Of the others: one at most."""


def run_quiet(model: str, stream: str, seed: int) -> Told:
    """One stream, labels by the truth."""
    s = subject(model)
    rng = np.random.default_rng([77, seed, list(STREAMS).index(stream), SUBJECTS.index(model)])
    x = s.population.inputs(STREAMS[stream](rng, LONG))
    y = labels(rng, s.population.probability(x))
    return feed(LossMonitor(learns=False, seed=seed), nothing(LONG), y.tolist(), of_two(s.predict(x)))


def rows(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """Events per million rows, with the interval of their rate."""
    runs = 50 if full else 5
    for stream in STREAMS:
        arguments = [(model, stream, seed) for model in SUBJECTS for seed in range(1, 1 + runs)]
        told: list[Told] = of(run_quiet, arguments)
        n = LONG * len(told) / 1e6
        shifts = [s for t in told for s in t.shifts]
        low, high = poisson(len(shifts))
        kinds = ", ".join(f"{kind} {count}" for kind, count in Counter(s.first for s in shifts).most_common())
        yield Row(
            f"false events per 10⁶ rows, {stream}, {n:.1f}·10⁶ rows",
            f"{len(shifts) / n:.2f} ({low / n:.2f}–{high / n:.2f}{'; ' + kinds if kinds else ''})",
            GOALS.get(stream, "≤ 1"),
        )
        lines += [
            f"{stream} {model} seed {seed}: {s.first} by {s.signal} at {s.observation}, onset {s.onset}"
            for (model, _, seed), t in zip(arguments, told, strict=True)
            for s in t.shifts
        ]
