"""Streams whose features are independent given a hidden variable: conditional draws and importance are exact."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np

from attributary_explainers.typing import Array

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
