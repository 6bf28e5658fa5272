"""Regression: a population whose noise depends on the inputs, a boosted model, and what may happen to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr
from sklearn.ensemble import HistGradientBoostingRegressor

from attributary_explainers import LossMonitor, as_batch
from benchmarks.harm.feeding import CHANGE_AT, Map, Row, feed, mappings
from benchmarks.harm.frozen import Trial, by_kind, with_figures
from benchmarks.harm.worlds import damages as d
from benchmarks.harm.worlds.kinds import Figures
from benchmarks.harm.worlds.subjects import Array

COLUMNS = 12
NAMES = tuple(f"m{j:02d}" for j in range(COLUMNS))
LIMIT = 0.01
"""A rise of the squared error of the mean counts from this share of the targets' variance on."""


class Rows(NamedTuple):
    """Rows as served (n, 12), targets (n,), and the mean (n,) by the truth of the moment."""

    x: Array
    y: Array
    mean: Array


Make = Callable[[np.random.Generator, int], Rows]


@dataclass(frozen=True)
class Kind:
    """`damaged`: a feature is served wrong. `region`: rows come more often where targets are noisier."""

    make: Make
    damaged: bool = False
    region: bool = False


def inputs(z: Array) -> Array:
    """Uniform, skewed and correlated columns."""
    x = z.copy()
    x[:, 0] = 2.0 * ndtr(z[:, 0])
    x[:, 2] = np.exp(0.4 * z[:, 2])
    x[:, 4] = 0.7 * z[:, 4] + 0.7 * z[:, 3]
    return x


def mean(x: Array, weight: float = 1.0) -> Array:
    """Of the target, by the truth: a wave, a product, a step."""
    wave = 2.0 * weight * np.sin(1.5 * x[:, 0]) + 0.9 * x[:, 1] + 1.1 * x[:, 2]
    return np.asarray(10.0 * (wave - 0.6 * x[:, 3] * x[:, 1] + 0.7 * (x[:, 4] > 0.3) + 0.4 * x[:, 5]))


def spread(x: Array) -> Array:
    """Standard deviation of the noise: grows with column 1, which the mean does, too, and with column 7 alone."""
    return np.asarray(10.0 * (0.3 + 0.35 * np.exp(0.4 * x[:, 1]) * (1.0 + 0.8 * np.tanh(x[:, 7]))))


def drawn(rng: np.random.Generator, n: int) -> Array:
    """Latent rows."""
    return rng.standard_normal((n, COLUMNS))


def _target(rng: np.random.Generator, x: Array, f: Array, noise: float = 1.0) -> Rows:
    laplace = rng.laplace(scale=np.sqrt(0.5), size=len(x))
    return Rows(x, f + noise * spread(x) * laplace, f)


def clean(rng: np.random.Generator, n: int) -> Rows:
    """Nothing happens."""
    x = inputs(drawn(rng, n))
    return _target(rng, x, mean(x))


def served(damage: d.Damage, *columns: int) -> Make:
    """These columns are damaged."""

    def make(rng: np.random.Generator, n: int) -> Rows:
        rows = clean(rng, n)
        x = rows.x.copy()
        for j in columns:
            x[:, j] = damage(rng, rows.x[:, j], x[:, j])
        return rows._replace(x=x)

    return make


def _region(size: float, column: int) -> Make:
    def make(rng: np.random.Generator, n: int) -> Rows:
        z = drawn(rng, n)
        z[:, column] += size
        x = inputs(z)
        return _target(rng, x, mean(x))

    return make


def _truth(weight: float = 1.0, offset: float = 0.0, noise: float = 1.0) -> Make:
    def make(rng: np.random.Generator, n: int) -> Rows:
        x = inputs(drawn(rng, n))
        return _target(rng, x, mean(x, weight) + offset, noise)

    return make


def _swapped(rng: np.random.Generator, n: int) -> Rows:
    x, y, f = clean(rng, n)
    x[:, [3, 5]] = x[:, [5, 3]]
    return Rows(x, y, f)


KINDS: dict[str, Kind] = {
    "nothing": Kind(clean),
    "nothing, again": Kind(clean),
    "noisier region, seen by the prediction": Kind(_region(0.8, 1), region=True),
    "noisier region, not seen by it": Kind(_region(0.8, 7), region=True),
    "much noisier region, not seen by it": Kind(_region(2.0, 7), region=True),
    "quieter region": Kind(_region(-0.8, 7)),
    "targets noisier everywhere": Kind(_truth(noise=1.3)),
    "columns that decide nothing move": Kind(served(d.moved(2.0), 8, 9, 10, 11)),
    "mean of the targets moves": Kind(_truth(offset=3.0)),
    "targets follow another weight": Kind(_truth(weight=0.7)),
    "column 0 permuted": Kind(served(d.permuted(), 0), damaged=True),
    "column 1 permuted": Kind(served(d.permuted(), 1), damaged=True),
    "column 3 permuted in 30 % of rows": Kind(served(d.permuted(0.3), 3), damaged=True),
    "column 0 stuck": Kind(served(d.stuck, 0), damaged=True),
    "column 2 stuck": Kind(served(d.stuck, 2), damaged=True),
    "half of column 1 missing, mean served": Kind(served(d.missing(0.5), 1), damaged=True),
    "column 2 in another unit": Kind(served(d.unit(2.5), 2), damaged=True),
    "error of one sd in column 2": Kind(served(d.noise(1.0), 2), damaged=True),
    "error of half an sd in column 1": Kind(served(d.noise(0.5), 1), damaged=True),
    "sign of column 1 turned": Kind(served(d.turned, 1), damaged=True),
    "column 1 saturated": Kind(served(d.saturated(0.6), 1), damaged=True),
    "columns 3 and 5 swapped": Kind(_swapped, damaged=True),
}


@lru_cache
def taught() -> Any:
    """The frozen model, taught once a process."""
    x, y, _ = clean(np.random.default_rng(61), 60_000)
    return HistGradientBoostingRegressor(max_iter=150, max_leaf_nodes=16, min_samples_leaf=100, random_state=0).fit(
        x, y
    )


def predict(x: Array) -> Array:
    """Numbers (n,)."""
    return np.asarray(taught().predict(x))


def figures(model: str, kind: str) -> Figures:
    """Rise of the mean absolute error, and of the squared distance from the true mean, in shares of the variance."""
    before, after = (make(np.random.default_rng(62), 60_000) for make in (clean, KINDS[kind].make))
    loss = [float(np.abs(predict(r.x) - r.y).mean()) for r in (before, after)]
    far = [float(((predict(r.x) - r.mean) ** 2).mean() / before.y.var()) for r in (before, after)]
    return Figures(0.0, loss[1] - loss[0], far[1] - far[0], 0.0, LIMIT)


def run_numbers(kind: str, seed: int) -> Trial:
    """Clean rows, then rows of the kind, from a row that depends on the seed."""
    rng = np.random.default_rng([73, seed, list(KINDS).index(kind)])
    at = CHANGE_AT + int(rng.integers(0, 1000))
    before, after = clean(rng, at), KINDS[kind].make(rng, CHANGE_AT)
    x, y = np.vstack((before.x, after.x)), np.r_[before.y, after.y]
    monitor = LossMonitor(as_batch(predict, features=NAMES), output="number", learns=False, seed=seed)
    told = feed(monitor, mappings(NAMES, x), y.tolist(), predict(x).tolist())
    return Trial("regression", kind, len(told.before(at)), tuple(told.after(at)), at)


def trials_of(of: Map, seeds: int) -> list[Trial]:
    """Of all kinds."""
    return with_figures(of, of(run_numbers, [(kind, seed) for kind in KINDS for seed in range(1, 1 + seeds)]), figures)


def rows(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """Shares told, of what is damage and of what is not."""
    trials = trials_of(of, 5 if full else 1)
    damaged = [t for t in trials if KINDS[t.kind].damaged]
    regions = [t for t in trials if KINDS[t.kind].region]
    for what, some, goal in (("damaged features", damaged, "≥ .9"), ("noisier regions", regions, "≤ .2 as worse")):
        any_kind, worse, rose = (
            sum(t.told(*kinds) for t in some) / len(some)
            for kinds in (("worse", "rose", "level", "harder"), ("worse",), ("rose",))
        )
        yield Row(
            f"regression, {what}, {len(some)} trials: told; told as *worse*; as *rose*",
            f"{any_kind:.2f}; {worse:.2f}; {rose:.2f} (told too early {sum(t.early for t in some)})",
            goal,
        )
    lines += ["regression", *by_kind(trials)]
