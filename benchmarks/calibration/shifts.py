"""Shifts of importance: how often one is told that is none, and how soon one that is; `rows` has the lines.

python -m benchmarks.calibration.shifts                       # some 20 minutes of processor time
python -m benchmarks.calibration.shifts --only null           # or: power
python -m benchmarks.calibration.shifts --streams "t5" "iid"  # some of the streams without a shift
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.signal import lfilter

from attributary_explainers import ImportanceShift, Shift
from attributary_explainers.typing import Array, Ints
from benchmarks.calibration.verdicts import Row

D = 8
NAMES = tuple(f"x{j}" for j in range(D))

Draw = Callable[[int, np.random.Generator], Array]
"""So many observations, shape (n, 8), of a generator."""


def independent(n: int, rng: np.random.Generator) -> Array:
    """Normal features; two of them are correlated."""
    x = rng.normal(size=(n, D))
    x[:, 1] = 0.6 * x[:, 0] + 0.8 * x[:, 1]
    return x


def autoregressive(rho: float) -> Draw:
    """Each feature has this correlation with its value before."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        noise = rng.normal(size=(n, D))
        noise[1:] *= np.sqrt(1.0 - rho * rho)
        x: Array = lfilter([1.0], [1.0, -rho], noise, axis=0)
        return x

    return draw


def heavy(n: int, rng: np.random.Generator) -> Array:
    """Features with the t distribution of five degrees of freedom, and variance 1."""
    x: Array = rng.standard_t(5, size=(n, D)) * np.sqrt(0.6)
    return x


def regimes(dwell: float) -> Draw:
    """Four hidden states, which last so long on average, shift the features and stretch them."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        shift, stretch = rng.normal(0.0, 0.8, (4, D)), rng.uniform(0.6, 1.5, (4, D))
        state = np.cumsum(np.where(rng.random(n) < 1.0 / dwell, rng.integers(1, 4, n), 0)) % 4
        x: Array = shift[state] + stretch[state] * rng.normal(size=(n, D))
        return x

    return draw


def season(period: float) -> Draw:
    """A sine with its own phase and size in each feature, which moves its spread too."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        phase, size = rng.uniform(0.0, 2.0 * np.pi, D), rng.uniform(0.3, 1.3, D)
        angle = 2.0 * np.pi * np.arange(n)[:, None] / period + phase
        x: Array = size * np.sin(angle) + (1.0 + 0.3 * np.cos(angle)) * rng.normal(size=(n, D))
        return x

    return draw


STREAMS: dict[str, Draw] = {
    "iid": independent,
    "AR(1), rho .9": autoregressive(0.9),
    "t5": heavy,
    "regimes of 300": regimes(300.0),
    "season of 1440": season(1440.0),
    "regimes of 1000": regimes(1000.0),
    "regimes of 3000": regimes(3000.0),
    "regimes of 10 000": regimes(10_000.0),
    "season of 7200": season(7200.0),
}
PROMISED = tuple(STREAMS)[:5]
"""Those on which at most one stream of 50 000 observations in twenty may have a false shift."""


GAP, SIZE, REACH, DRAWS = 200, 500, 3000, 2
_BENDS = (
    lambda x: x,
    lambda x: np.tanh(2.0 * x),
    np.abs,
    lambda x: (x > 0.5).astype(float),
    lambda x: np.maximum(x, 0.0),
)
_SAMPLE = 40_000


@dataclass(frozen=True)
class World:
    """A model that is the truth: a sum of bent features, and a product of two; numbers, or one of three classes."""

    classes: bool
    bends: Ints
    weights: Array
    directions: Array
    """Shape (8, 3): what a feature says for each class."""

    @classmethod
    def of(cls, classes: bool, rng: np.random.Generator) -> World:
        """Draw a world; its last feature is not read."""
        weights = rng.uniform(0.5, 1.5, D)
        weights[-1] = 0.0
        return cls(classes, rng.integers(0, len(_BENDS), D), weights, rng.normal(0.0, 1.0, (D, 3)))

    def increments(self, x: Array, rng: np.random.Generator, factors: Array | None = None) -> Array:
        """Return the increments of PFI, shape (n, 8): squared loss, or cross-entropy with a tenth of wrong labels.

        `factors`, shape (n, 8), multiply the weights.
        """
        weights = self.weights if factors is None else self.weights * factors
        g = np.stack([_BENDS[b](x[:, j]) for j, b in enumerate(self.bends.tolist())], axis=1)
        rows = stored_rows(len(x), rng)
        of = self._of_classes if self.classes else self._of_numbers
        return of(np.broadcast_to(weights, x.shape), x, g, rows, rng)

    def _of_numbers(self, weights: Array, x: Array, g: Array, rows: Ints, rng: np.random.Generator) -> Array:
        noise = rng.gumbel(size=(len(x), 1))
        noise -= noise.mean()
        found = np.zeros(x.shape)
        for drawn in rows.T:
            apart = weights * (g - g[drawn])
            apart[:, 0] += 0.4 * (x[:, 0] - x[drawn, 0]) * x[:, 1]
            apart[:, 1] += 0.4 * (x[:, 1] - x[drawn, 1]) * x[:, 0]
            found += ((noise + apart) ** 2 - noise**2) / DRAWS
        return found

    def _of_classes(self, weights: Array, x: Array, g: Array, rows: Ints, rng: np.random.Generator) -> Array:
        n = len(x)
        eta = (weights * g) @ self.directions
        y = np.argmax(eta + rng.gumbel(size=(n, 3)), axis=1)
        y = np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), y)
        before = _cross_entropy(eta, y)
        found = np.zeros(x.shape)
        for drawn in rows.T:
            for j in range(D):
                step = weights[:, j] * (g[drawn, j] - g[:, j])
                found[:, j] += (_cross_entropy(eta + step[:, None] * self.directions[j], y) - before) / DRAWS
        return found

    def expected(self, feature: int | None = None, factor: float = 1.0, draw: Draw = independent) -> Array:
        """Return the importance of each feature, shape (8,), with one's weight multiplied, of one sample always."""
        factors = np.ones((_SAMPLE, D))
        if feature is not None:
            factors[:, feature] = factor
        rng = np.random.default_rng(3)
        found: Array = self.increments(draw(_SAMPLE, rng), rng, factors).mean(axis=0)
        return found


def stored_rows(n: int, rng: np.random.Generator) -> Ints:
    """Return the numbers of the rows drawn at each observation, shape (n, 2): those last put into two random slots.

    A row is put into a random slot with the probability 500 / 3000, 200 observations after it came; the first 500 are
    there from the beginning.
    """
    put = np.flatnonzero(rng.random(n) < SIZE / REACH)
    slot = rng.integers(0, SIZE, len(put))
    keys = np.concatenate([np.arange(SIZE) * n, slot * n + np.minimum(put + GAP, n - 1)])
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], np.concatenate([rng.permutation(SIZE), put])[order]
    wanted = rng.integers(0, SIZE, (n, DRAWS)) * n + np.arange(n)[:, None]
    found: Ints = rows[np.searchsorted(keys, wanted, side="right") - 1]
    return found


def _cross_entropy(eta: Array, y: Ints) -> Array:
    top = eta.max(axis=1)
    loss: Array = top + np.log(np.exp(eta - top[:, None]).sum(axis=1)) - eta[np.arange(len(y)), y]
    return loss


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


RUNS, POWER_RUNS = 200, 50
_MOST = 0.05
_MOST_DELAY = 2000.0
_LATE = REFERENCE + 10_000
_EARLY = 15_000

POWERS = (
    ("iid", False, 2.0, _LATE, 0),
    ("iid", False, 2.0, _EARLY, 0),
    ("iid", True, 2.0, _LATE, 0),
    ("iid", False, 0.5, _LATE, 0),
    ("iid", False, 1.5, _LATE, 0),
    ("AR(1), rho .9", False, 2.0, _LATE, 0),
    ("t5", False, 2.0, _LATE, 0),
    ("season of 1440", False, 2.0, _LATE, 0),
    ("regimes of 300", False, 2.0, _LATE, 0),
    ("iid", False, 2.0, _LATE, 10_000),
)
"""Stream, whether classes, the factor of the importance, when it begins, and how long it takes."""


def rows(*, quick: bool = False, jobs: int = 1) -> list[Row]:
    """Return all lines; quickly, three of them with two runs each."""
    if quick:
        return [null_row(kind, 2, jobs) for kind in PROMISED[:2]] + [power_row(*POWERS[0], 2, jobs)]
    lines = [null_row(kind, RUNS, jobs) for kind in STREAMS]
    return lines + [power_row(*case, POWER_RUNS, jobs) for case in POWERS]


def null_row(kind: str, runs: int, jobs: int) -> Row:
    """Return the line of streams without a shift."""
    found = nulls(kind, runs, jobs)
    share = float(np.mean([run.n_shifts > 0 for run in found]))
    n_shifts = sum(run.n_shifts for run in found)
    promised = kind in PROMISED
    text = f"{share:.3f} of {runs} ({n_shifts} in all)" + "".join(_of_reference(found))
    to_reach = f"at most {_MOST:.2f}" if promised else "no promise"
    return Row(f"shift told, none there, {kind}", to_reach, text, share <= _MOST if promised else None)


def _of_reference(found: Sequence[Null]) -> Iterator[str]:
    least = [run.least_change for run in found if run.n_reference]
    yield f"; tells {np.median(least):.0%} of the total" if least else "; never ready"
    periods = [run.period for run in found if run.period is not None]
    if len(periods) > len(found) / 10:
        yield f"; period {np.median(periods):.0f} in {len(periods) / len(found):.0%}"


def power_row(kind: str, classes: bool, factor: float, at: int, ramp: int, runs: int, jobs: int) -> Row:
    """Return the line of streams with a shift."""
    found = powers(kind, classes, factor, at, ramp, runs, jobs)
    told = [run for run in found if np.isfinite(run.delay)]
    delay = median([run.delay for run in found])
    what = f"importance x {factor:g}, {kind}, {'classes' if classes else 'numbers'}, after {at}"
    what += f", over {ramp}" if ramp else ""
    text = f"{len(told) / runs:.2f}, delay {delay:.0f}"
    if told:
        right = np.mean([run.right for run in told])
        onset = median([run.onset_error for run in told])
        held = np.mean([run.held for run in told])
        text += f", named {right:.2f}, onset {onset:+.0f}, level held {held:.2f}, early {sum(r.early for r in found)}"
    required = (kind, factor, ramp) == ("iid", 2.0, 0) and not classes
    return Row(
        what, f"median below {_MOST_DELAY:.0f}" if required else "", text, delay < _MOST_DELAY if required else None
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for, and print it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration.shifts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=("null", "power"))
    parser.add_argument("--streams", nargs="+", choices=tuple(STREAMS), default=tuple(STREAMS))
    parser.add_argument("--runs", type=int, help=f"of each line (default {RUNS} and {POWER_RUNS})")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    args = parser.parse_args(argv)
    if args.only != "power":
        for kind in args.streams:
            print(" | ".join(map(str, null_row(kind, args.runs or RUNS, args.jobs))), flush=True)
    if args.only != "null":
        for case in POWERS:
            if case[0] in args.streams:
                print(" | ".join(map(str, power_row(*case, args.runs or POWER_RUNS, args.jobs))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
