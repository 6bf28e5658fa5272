"""How near observational importance comes to exact values: `python -m benchmarks.calibration.observational`."""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from attributary_explainers import (
    GeometricReservoir,
    Imputer,
    IncrementalPFI,
    IncrementalSAGE,
    MarginalImputer,
    ShiftedImputer,
    as_batch,
)
from attributary_explainers.removal.imputer import Draws, Players, Request
from attributary_explainers.typing import Array, Features, Prediction

NOISE = 0.5
"""Standard deviation of y given the features."""


class Part(Protocol):
    """One feature given the hidden variable."""

    def log_density(self, value: Array, g: Array) -> Array:
        """Return the log density of values, but for a constant."""

    def draw(self, g: Array, rng: np.random.Generator) -> Array:
        """Return one value for each g."""


@dataclass(frozen=True)
class Normal:
    """A number: mean and standard deviation follow from the hidden variable."""

    mean: Callable[[Array], Any]
    sd: Callable[[Array], Any]

    def log_density(self, value: Array, g: Array) -> Array:
        """Return the log density of values, but for a constant."""
        sd = self.sd(g) + 0.0 * g
        found: Array = -0.5 * ((value - self.mean(g)) / sd) ** 2 - np.log(sd)
        return found

    def draw(self, g: Array, rng: np.random.Generator) -> Array:
        """Return one value for each g."""
        found: Array = self.mean(g) + self.sd(g) * rng.standard_normal(g.shape)
        return found


@dataclass(frozen=True)
class Count:
    """An integer: Poisson, its rate follows from the hidden variable."""

    rate: Callable[[Array], Array]

    def log_density(self, value: Array, g: Array) -> Array:
        """Return the log probability of values, but for a constant."""
        rate = self.rate(g)
        found: Array = value * np.log(rate) - rate
        return found

    def draw(self, g: Array, rng: np.random.Generator) -> Array:
        """Return one value for each g."""
        return rng.poisson(self.rate(g)).astype(float)


@dataclass(frozen=True)
class Category:
    """A category: the scores of its levels follow from the hidden variable."""

    scores: Callable[[Array], Sequence[Array]]
    n_levels: int

    def _log_shares(self, g: Array) -> Array:
        scores = np.stack([score + 0.0 * g for score in self.scores(g)])
        found: Array = scores - np.logaddexp.reduce(scores, axis=0)
        return found

    def log_density(self, value: Array, g: Array) -> Array:
        """Return the log probability of levels."""
        value, g = np.broadcast_arrays(value, g)
        found: Array = np.take_along_axis(self._log_shares(g), value[None].astype(int), axis=0)[0]
        return found

    def draw(self, g: Array, rng: np.random.Generator) -> Array:
        """Return one level for each g."""
        below = rng.random(g.shape) > np.exp(self._log_shares(g)).cumsum(axis=0)
        found: Array = np.minimum(below.sum(axis=0), self.n_levels - 1).astype(float)
        return found


@dataclass(frozen=True)
class Stream:
    """Features and a model of them; y is the model's value and noise, the loss is squared."""

    name: str
    parts: tuple[Part, ...]
    model: Callable[[Array], Array]
    """Values of shape (..., features) to predictions."""
    grid: Array = field(repr=False)
    """The values of the hidden variable, which are equally likely."""

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return observations, shape (n, features)."""
        g = rng.choice(self.grid, size=n)
        return np.stack([part.draw(g, rng) for part in self.parts], axis=-1)

    def given(self, X: Array, kept: Sequence[int], n: int, rng: np.random.Generator) -> Array:
        """Draw rows that agree with X in the features kept, shape (len(X), n, features)."""
        weights = np.zeros((len(X), len(self.grid)))
        for j in kept:
            weights += self.parts[j].log_density(X[:, [j]], self.grid[None])
        shares = np.exp(weights - weights.max(axis=1, keepdims=True)).cumsum(axis=1)
        u = rng.random((len(X), n)) * shares[:, -1:]
        at = np.array([np.searchsorted(share, v) for share, v in zip(shares, u, strict=True)])
        g = self.grid[np.minimum(at, len(self.grid) - 1)]
        rows = np.stack([part.draw(g, rng) for part in self.parts], axis=-1)
        rows[..., list(kept)] = X[:, None, list(kept)]
        return rows

    def exact(self, n: int = 3000, draws: int = 100) -> tuple[Array, Array]:
        """Return observational PFI and SAGE by the law of total variance: n rows, and draws for each coalition."""
        rng, d = np.random.default_rng(11), len(self.parts)
        X = self.draw(n, rng)
        loss = {frozenset(range(d)): 0.0}
        for size in range(d):
            for kept in itertools.combinations(range(d), size):
                parts = (self.model(self.given(X[a : a + 500], kept, draws, rng)) for a in range(0, n, 500))
                loss[frozenset(kept)] = float(np.mean([p.var(axis=1, ddof=1).mean() for p in parts]))
        sage = np.zeros(d)
        for i, size in itertools.product(range(d), range(d)):
            for others in map(frozenset, itertools.combinations([j for j in range(d) if j != i], size)):
                sage[i] += (loss[others] - loss[others | {i}]) / (d * math.comb(d - 1, size))
        return np.array([2.0 * loss[frozenset(range(d)) - {i}] for i in range(d)]), sage


def _normal_grid(n: int = 401) -> Array:
    normal = NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / n) for i in range(n)])


def _pair(g: Array) -> tuple[Array, Array]:
    """Return two independent standard normal numbers from one hidden variable: places on a grid of 61 x 61."""
    axis = _normal_grid(61)
    place = g.astype(int)
    return axis[place // 61], axis[place % 61]


def _gamma_grid(n: int = 401) -> Array:
    """Return quantiles of a gamma distribution of shape 2: its distribution function is 1 - (1 + g) exp(-g)."""
    g = np.linspace(0.0, 20.0, 20_001)
    found: Array = np.interp((np.arange(n) + 0.5) / n, 1.0 - (1.0 + g) * np.exp(-g), g)
    return found


NORMAL: Array = _normal_grid()
CIRCLE: Array = np.linspace(0.0, 2.0 * np.pi, 720, endpoint=False)
PLACES: Array = np.arange(61 * 61).astype(float)
WAITING: Array = _gamma_grid()

STREAMS = (
    Stream(
        "factor",  # Gaussian: one common factor, scales from a millionth to a million
        (
            Normal(lambda g: 0.9e6 * g, lambda g: 0.44e6),
            Normal(lambda g: -0.7e-6 * g, lambda g: 0.71e-6),
            Normal(lambda g: 0.5 * g, lambda g: 0.87),
            Normal(lambda g: 0.0 * g, lambda g: 1.0),
            Normal(lambda g: 3.0 + 0.95 * g, lambda g: 0.31),
        ),
        lambda x: x[..., 0] / 1e6 + x[..., 1] * 1e6 * x[..., 2] + x[..., 3] + 2.0 * x[..., 4],
        NORMAL,
    ),
    Stream(
        "bent",  # a step, an exponential and a wave of the same hidden number
        (
            Normal(lambda g: g, lambda g: 0.5),
            Normal(lambda g: np.tanh(2.0 * g), lambda g: 0.3),
            Normal(lambda g: 0.6 * np.exp(0.8 * g), lambda g: 0.4),
            Normal(lambda g: np.cos(2.0 * g), lambda g: 0.4),
        ),
        lambda x: x[..., 0] + x[..., 1] + 0.5 * x[..., 2] * x[..., 0] + x[..., 3],
        NORMAL,
    ),
    Stream(
        "wedge",  # a number against its distance from one half
        (
            Normal(lambda g: 1.2 * g, lambda g: 0.15),
            Normal(lambda g: np.abs(1.2 * g - 0.5), lambda g: 0.25),
            Normal(lambda g: 0.6 * g, lambda g: 0.8),
            Normal(lambda g: 0.0 * g, lambda g: 1.0),
        ),
        lambda x: x[..., 0] - x[..., 1] + x[..., 2] * x[..., 3] + x[..., 3],
        NORMAL,
    ),
    Stream(
        "funnel",  # one number says how far others spread
        (
            Normal(lambda g: g, lambda g: 0.3),
            Normal(lambda g: 0.0 * g, lambda g: 0.3 + np.exp(0.7 * g)),
            Normal(lambda g: 0.0 * g, lambda g: 0.5 + np.abs(g)),
            Normal(lambda g: 0.5 * g, lambda g: 1.0),
        ),
        lambda x: x[..., 0] + 0.5 * np.abs(x[..., 1]) + x[..., 2] * x[..., 0] + x[..., 3],
        NORMAL,
    ),
    Stream(
        "eight",  # a lying figure eight: no linear dependence between its two numbers
        (
            Normal(lambda g: 1.5 * np.cos(g), lambda g: 0.2),
            Normal(lambda g: 1.5 * np.sin(2.0 * g), lambda g: 0.25),
            Normal(lambda g: np.cos(g), lambda g: 0.7),
            Normal(lambda g: 0.0 * g, lambda g: 1.0),
        ),
        lambda x: x[..., 0] * x[..., 1] + x[..., 0] + x[..., 2] + x[..., 3],
        CIRCLE,
    ),
    Stream(
        "levels",  # two categories and two numbers, means and spreads by a hidden number
        (
            Category(lambda g: (-4.0 * (g + 1.5) ** 2, -4.0 * g**2 + 0.5, -3.0 * (g - 1.2) ** 2, -0.5 * g - 1.0), 4),
            Category(lambda g: (2.0 * g, 0.0 * g, -2.0 * g - 0.5), 3),
            Normal(lambda g: g + 0.3 * g**2, lambda g: 0.3 + 0.3 * (g > 0.0)),
            Normal(lambda g: -0.8 * g, lambda g: 0.6),
        ),
        lambda x: (x[..., 0] - 1.0) * x[..., 2] + 1.5 * (x[..., 1] == 0.0) + x[..., 2] + x[..., 3],
        NORMAL,
    ),
    Stream(
        "counts",  # integers and a truth value
        (
            Count(lambda g: np.exp(0.8 + 0.6 * g)),
            Category(lambda g: (2.5 * g, 0.0 * g), 2),
            Count(lambda g: np.exp(1.5 - 0.4 * g)),
            Normal(lambda g: g, lambda g: 0.6),
        ),
        lambda x: 0.6 * x[..., 0] + 2.0 * x[..., 1] + 0.3 * x[..., 2] * (x[..., 1] == 0.0) + x[..., 3],
        NORMAL,
    ),
    Stream(
        "product",  # a number that follows the product of two others
        (
            Normal(lambda g: _pair(g)[0], lambda g: 0.3),
            Normal(lambda g: _pair(g)[1], lambda g: 0.3),
            Normal(lambda g: _pair(g)[0] * _pair(g)[1], lambda g: 0.4),
            Normal(lambda g: 0.0 * g, lambda g: 1.0),
        ),
        lambda x: x[..., 0] + x[..., 1] + x[..., 2] + 0.5 * x[..., 2] * x[..., 3],
        PLACES,
    ),
    Stream(
        "waiting",  # a skewed hidden number: its measure with more noise where it is large, its logarithm, categories
        (
            Normal(lambda g: g, lambda g: 0.15 + 0.2 * g),
            Normal(lambda g: np.log(g + 0.2), lambda g: 0.5),
            Category(lambda g: (2.0 - 1.5 * g, 0.0 * g, g - 3.0), 3),
            Category(lambda g: (1.2 * (g - 2.0), 0.0 * g), 2),
        ),
        lambda x: 0.7 * x[..., 0] + x[..., 1] * (x[..., 2] != 1.0) + 1.5 * (x[..., 3] == 1.0) + (x[..., 2] == 2.0),
        WAITING,
    ),
)


KINDS = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}
REMOVALS = ("exact", "observational", "interventional")
ALPHA = 0.001
MOST_ERROR, LEAST_HELD = 0.10, 0.90
LARGE = 0.05
"""A value counts in `max` from this share of the sum on."""


class ExactImputer(Imputer):
    """Draws by the stream's own conditional distributions."""

    name = "exact"

    def __init__(self, stream: Stream, seed: int) -> None:
        self.reservoir = GeometricReservoir(1)
        self._stream, self._own = stream, np.random.default_rng(seed)

    def _rows(self, x: Features, kept: Sequence[Any], n: int) -> list[dict[Any, Any]]:
        names = names_of(self._stream)
        X = np.array([[float(x[name]) for name in names]])
        drawn = self._stream.given(X, [names.index(name) for name in kept], n, self._own)[0]
        return [as_features(self._stream, row) for row in drawn]

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return `n` rows for each feature."""
        return Draws([self._rows(x, [other for other in x if other != name], n) for name in players], None)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows for each coalition."""
        return Draws([self._rows(x, kept, n) for kept in coalitions], None)


class Apart(Imputer):
    """Another imputer with a generator of its own, so that explainers with equal seeds walk equal orders."""

    name = "apart"

    def __init__(self, inner: Imputer, seed: int) -> None:
        self.inner, self.reservoir, self._own = inner, inner.reservoir, np.random.default_rng(seed)

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return what the other imputer does."""
        return self.inner.replace_each(x, players, n, self._own)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return what the other imputer does."""
        return self.inner.restrict(x, players, coalitions, n, self._own)

    def request_each(self, x: Features, players: Players, n: int, rng: Any, encoded: Any = None) -> Request:
        """Return what the other imputer does."""
        return self.inner.request_each(x, players, n, self._own, encoded)

    def request_coalitions(
        self, x: Features, players: Players, orders: Any, n: int, rng: Any, encoded: Any = None
    ) -> Request:
        """Return what the other imputer does."""
        return self.inner.request_coalitions(x, players, orders, n, self._own, encoded)

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Do what the other imputer does."""
        return self.inner.update(x, y_pred, self._own)


def names_of(stream: Stream) -> list[str]:
    """Return the names of a stream's features."""
    return [f"x{i}" for i in range(len(stream.parts))]


def as_features(stream: Stream, row: Array) -> dict[str, Any]:
    """Return values as an observation; levels of categories are text."""
    values = zip(names_of(stream), stream.parts, row.tolist(), strict=True)
    return {name: str(int(v)) if isinstance(part, Category) else v for name, part, v in values}


def run(task: tuple[str, str, str, int, int, int]) -> tuple[list[float], list[float]]:
    """Return importance and half the width of its interval at the end of a run."""
    stream_name, kind, removal, rows, draws, seed = task
    stream = next(s for s in STREAMS if s.name == stream_name)
    rng = np.random.default_rng(1000 + seed)
    X = stream.draw(rows, rng)
    Y = stream.model(X) + NOISE * rng.standard_normal(rows)
    names = names_of(stream)

    def predict(observations: Sequence[Features]) -> Array:
        return stream.model(np.array([[float(x[name]) for name in names] for x in observations]))

    if removal == "exact":
        imputer: Imputer = ExactImputer(stream, seed)
    elif removal == "observational":
        imputer = Apart(ShiftedImputer(alpha=ALPHA), seed)
    else:
        imputer = Apart(MarginalImputer(GeometricReservoir(500), sampling="independent"), seed)
    explainer = KINDS[kind](as_batch(predict), loss="squared", alpha=ALPHA, n_samples=draws, removal=imputer, seed=seed)
    for x, y in zip(X, Y.tolist(), strict=True):
        explainer.explain_one(as_features(stream, x), y)
    return [explainer.importance[name] for name in names], [explainer.half_width[name] for name in names]


@cache
def exact_values(name: str) -> dict[str, Array]:
    """Return the exact importance of a stream's features by explainer."""
    return dict(zip(KINDS, next(s for s in STREAMS if s.name == name).exact(), strict=True))


class Result(NamedTuple):
    """What the runs of one stream, explainer and removal say."""

    stream: str
    kind: str
    removal: str
    error: tuple[float, float]
    """Sum of the errors of the mean over the runs over that of the values, and the largest relative error of a value
    that is large."""
    paired: tuple[float, float]
    """The same, less what exact draws on the same rows have."""
    held: float
    """Share of the 95 % intervals that hold the exact value."""
    values: Array
    exact: Array


def errors(found: Array, base: Array, exact: Array) -> tuple[float, float]:
    """Return the sum of errors over that of values, and the largest relative one of a value that is large."""
    apart, size = np.abs(found - base), np.abs(exact)
    large = size >= LARGE * size.sum()
    return float(apart.sum() / size.sum()), float((apart[large] / size[large]).max())


def measure(
    streams: Sequence[str], seeds: int, rows: int, draws: int, jobs: int, removals: Sequence[str] = REMOVALS
) -> Iterator[Result]:
    """Run streams by every explainer and removal; yield a result for each, that of exact draws first.

    Without exact draws the paired errors are those of the exact values.
    """
    settings = [(name, kind) for name in streams for kind in KINDS]
    with ProcessPoolExecutor(jobs) as pool:
        for name, kind in track(settings, console=Console(stderr=True), description="streams"):
            exact = exact_values(name)[kind]
            base = None if "exact" in removals else exact
            for removal in removals:
                tasks = [(name, kind, removal, rows, draws, seed) for seed in range(seeds)]
                found = np.array(list(pool.map(run, tasks)))
                mean = found[:, 0].mean(axis=0)
                base = mean if base is None else base
                held = float((np.abs(found[:, 0] - exact) <= found[:, 1]).mean())
                of_exact, paired = errors(mean, exact, exact), errors(mean, base, exact)
                yield Result(name, kind, removal, of_exact, paired, held, mean, exact)


def rows(*, quick: bool, jobs: int) -> list[tuple[str, str, str, bool | None]]:
    """Return lines of `make calibration`: what, what is to be reached, what was found, and whether it was."""
    size = (1, 1500) if quick else (4, 5000)
    found = [r for r in measure([s.name for s in STREAMS], *size, 10, jobs) if r.removal == "observational"]
    lines: list[tuple[str, str, str, bool | None]] = []
    for kind in KINDS:
        of_kind = [result for result in found if result.kind == kind]
        errors_, largest = ([result.paired[i] for result in of_kind] for i in (0, 1))
        held = float(np.mean([result.held for result in of_kind]))
        said = f"{min(errors_):.3f} to {max(errors_):.3f}, one value off by {max(largest):.2f} at most; hold {held:.2f}"
        reached = max(errors_) <= MOST_ERROR and held >= LEAST_HELD
        goal = f"paired error at most {MOST_ERROR:.2f}, hold {LEAST_HELD:.2f}"
        lines.append((f"observational {kind.upper()}, {len(of_kind)} streams", goal, said, reached))
    return lines


def main() -> None:
    """Run every stream by every removal; print errors, those less the exact sampler's, and coverage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration.observational", description=__doc__)
    parser.add_argument("--seeds", type=int, default=4, help="seeded runs of each (default 4)")
    parser.add_argument("--rows", type=int, default=5000, help="observations per run (default 5000)")
    parser.add_argument("--draws", type=int, default=10, help="m (default 10)")
    parser.add_argument("--stream", nargs="+", default=[s.name for s in STREAMS], help="names of streams")
    parser.add_argument("--removal", nargs="+", choices=REMOVALS, default=REMOVALS, help="which (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--values", action="store_true", help="print the values too")
    args = parser.parse_args()
    table = Table(title="Observational importance: sum |error| / sum |value|, and the largest error of a large value")
    for column in ("stream", "explainer", "removal", "err / max", "paired err / max", "held by 95 %"):
        table.add_column(column)
    for found in measure(args.stream, args.seeds, args.rows, args.draws, args.jobs, args.removal):
        said = [f"{total:.3f} / {largest:.3f}" for total, largest in (found.error, found.paired)]
        table.add_row(found.stream, found.kind, found.removal, *said, f"{found.held:.2f}")
        if args.values:
            print(found.stream, found.kind, found.removal, found.values.round(3), "exact", found.exact.round(3))
    Console().print(table)


if __name__ == "__main__":
    main()
