"""Streams whose observations depend on each other, with the exact importance of a fixed model on each.

Every stream begins in its stationary distribution. Exact importance is that of one moment of it: features as they occur
together, and a replacement that is independent of them. It is the same for every dependence in time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from attributary_explainers.typing import Array

from .formulas import Formula, FormulaClassifier, FormulaRegressor
from .populations import Population, exact_pfi, exact_sage
from .targets import Chance, Skewed, Target


@dataclass(frozen=True)
class World:
    """A stream, a model, and the loss that its importance is explained in."""

    name: str
    model: Any
    loss: str
    target: Target
    population: Callable[[], Population]
    rows: Callable[[np.random.Generator, int], Array]

    @property
    def formula(self) -> Formula:
        """What the model computes."""
        formula: Formula = self.model.formula
        return formula

    def draw(self, rng: np.random.Generator, n: int) -> tuple[list[dict[str, Any]], list[Any]]:
        """Return n consecutive observations and their targets."""
        X = self.rows(rng, n)
        return self.formula.observations(X), self.target.draw(rng, X)

    def exact(self, explainer: str) -> dict[str, float]:
        """Return the exact importance of each feature by "pfi" or "sage"."""
        values = _exact(self.population, self.formula.function, self.target, self.loss, explainer)
        return dict(zip(self.formula.features, values, strict=True))


@cache
def _exact(
    population: Callable[[], Population],
    function: Callable[[Array], Array],
    target: Target,
    loss: str,
    explainer: str,
) -> tuple[float, ...]:
    by = {"pfi": exact_pfi, "sage": exact_sage}[explainer]
    found = by(population(), function, lambda X, prediction: target.expected_loss(loss, X, prediction))
    # What is exactly 0 is so but for rounding.
    return tuple(np.round(found, 12).tolist())


def _normal(n: int) -> tuple[Array, Array]:
    """Return nodes and weights of the normal distribution (Gauss-Hermite)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


def _sigmoid(v: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-v))


# Autoregressive: three latent AR(1); `delay` is lognormal, and `tilt` has the correlation .6 with `load`.


def _seen(latent: Array) -> Array:
    """Return delay, load and tilt of latent normal numbers."""
    a, b, c = latent.T
    return np.column_stack((np.exp(0.6 * b), a, 0.6 * a + 0.8 * c))


@cache
def _autoregressive_population() -> Population:
    nodes, weights = _normal(24)
    latent = np.array(list(product(nodes, repeat=3)))
    return Population(_seen(latent), np.array([math.prod(w) for w in product(weights, repeat=3)]))


@dataclass(frozen=True)
class Autoregressive:
    """Draws rows of which each latent number has this correlation with that of the row before."""

    rho: float

    def __call__(self, rng: np.random.Generator, n: int) -> Array:
        """Return n consecutive rows."""
        latent = rng.normal(size=(n, 3))
        latent[1:] *= math.sqrt(1.0 - self.rho**2)
        if self.rho:
            for t in range(1, n):
                latent[t] += self.rho * latent[t - 1]
        return _seen(latent)


def _bent(X: Array) -> Array:
    delay, load, tilt = X.T
    value: Array = load + np.sin(1.5 * tilt) + 0.5 * delay + 0.3 * load * tilt
    return value


def _bent_truth(X: Array) -> Array:
    return _bent(X) + 0.4 * np.tanh(X[:, 1])


def _odds(X: Array) -> Array:
    delay, load, tilt = X.T
    return _sigmoid(1.1 * load + 0.8 * (delay - 1.2) + 0.7 * tilt - 0.4 * load * tilt)


def _odds_truth(X: Array) -> Array:
    p = _odds(X)
    return 0.9 * p + 0.04  # the model is somewhat too sure


_AUTOREGRESSIVE = ("delay", "load", "tilt")
_BENT = FormulaRegressor(Formula(_AUTOREGRESSIVE, _bent))
_ODDS = FormulaClassifier(Formula(_AUTOREGRESSIVE, _odds))
_SKEWED = Skewed(_bent_truth, 0.7)

RHOS = (0.0, 0.5, 0.9, 0.99)
AUTOREGRESSIVE = [
    World(f"AR {rho:g}, {loss}", model, loss, target, _autoregressive_population, Autoregressive(rho))
    for loss, model, target in (
        ("squared", _BENT, _SKEWED),
        ("cross_entropy", _ODDS, Chance(_odds_truth)),
        ("absolute", _BENT, _SKEWED),
    )
    for rho in RHOS
]


# Regimes: a hidden chain of four states moves means, spreads, and the shares of a category.

_DWELL = 300
"""Mean number of observations that a state lasts."""
_MEANS = np.array([[-1.0, 0.3, 0.0], [0.2, 1.0, 0.9], [0.6, -1.1, -0.7], [1.5, 0.4, 0.3]])
_SPREADS = np.array([[0.5, 1.0, 1.0], [1.0, 0.6, 0.7], [0.7, 0.9, 1.2], [1.3, 1.2, 0.5]])
_SHARES = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.4, 0.2, 0.4]])
_MODES = ("day", "night", "peak")


@cache
def _regime_population() -> Population:
    nodes, weights = _normal(20)
    points, masses = [], []
    for state in range(4):
        for at in product(range(len(nodes)), repeat=3):
            flow, heat, wear = _MEANS[state] + _SPREADS[state] * nodes[list(at)]
            for mode, share in enumerate(_SHARES[state]):
                points.append((flow, heat, mode, wear))
                masses.append(share * math.prod(weights[list(at)]) / 4.0)
    return Population(np.array(points), np.array(masses))


def regimes(rng: np.random.Generator, n: int) -> Array:
    """Return n consecutive rows: flow, heat, the position of the mode, wear."""
    states = np.empty(n, dtype=np.intp)
    state, t = int(rng.integers(4)), 0
    while t < n:
        lasts = int(rng.geometric(1.0 / _DWELL))
        states[t : t + lasts] = state
        state, t = (state + int(rng.integers(1, 4))) % 4, t + lasts
    numbers = _MEANS[states] + _SPREADS[states] * rng.normal(size=(n, 3))
    mode = (rng.random(n)[:, None] > _SHARES[states].cumsum(axis=1)[:, :2]).sum(axis=1)
    return np.column_stack((numbers[:, :2], mode, numbers[:, 2]))


_OF_MODE = np.array([-0.6, 0.1, 1.0])


def _plant(X: Array) -> Array:
    flow, heat, mode, wear = X.T
    value: Array = 0.8 * flow + np.tanh(heat) * (1.0 + 0.5 * wear) + _OF_MODE[mode.astype(np.intp)] + 0.3 * wear**2
    return value


def _plant_truth(X: Array) -> Array:
    return 0.9 * _plant(X)


def _failure(X: Array) -> Array:
    return _sigmoid(1.2 * _plant(X) - 0.8)


def _failure_truth(X: Array) -> Array:
    return 0.92 * _failure(X) + 0.03


_PLANT = ("flow", "heat", "mode", "wear")
_LEVELS = {"mode": _MODES}
REGIMES = [
    World(
        "regimes, squared",
        FormulaRegressor(Formula(_PLANT, _plant, _LEVELS)),
        "squared",
        Skewed(_plant_truth, 0.5),
        _regime_population,
        regimes,
    ),
    World(
        "regimes, cross_entropy",
        FormulaClassifier(Formula(_PLANT, _failure, _LEVELS)),
        "cross_entropy",
        Chance(_failure_truth),
        _regime_population,
        regimes,
    ),
]


# Seasons: three features swing with one period, each with a phase, a size and a spread of its own.

_PERIOD = 1440
_SIZES = np.array([1.0, 1.4, 0.7])
_PHASES = np.array([0.0, 1.3, 2.9])
_NOISE = np.array([1.0, 0.7, 0.9])


@cache
def _season_population() -> Population:
    nodes, weights = _normal(10)
    points, masses = [], []
    for turn in 2.0 * np.pi * np.arange(32) / 32:  # sums over whole periods of smooth functions converge like this
        for at in product(range(len(nodes)), repeat=3):
            points.append(_SIZES * np.sin(turn + _PHASES) + _NOISE * nodes[list(at)])
            masses.append(math.prod(weights[list(at)]) / 32.0)
    return Population(np.array(points), np.array(masses))


def seasons(rng: np.random.Generator, n: int) -> Array:
    """Return n consecutive rows that begin at a random moment of the period: demand, sun, wind."""
    turn = 2.0 * np.pi * (rng.random() + np.arange(n)[:, None] / _PERIOD)
    X: Array = _SIZES * np.sin(turn + _PHASES) + _NOISE * rng.normal(size=(n, 3))
    return X


def _price(X: Array) -> Array:
    demand, sun, wind = X.T
    value: Array = demand - 1.4 * np.tanh(sun) - 0.8 * wind + 0.25 * demand * sun
    return value


def _price_truth(X: Array) -> Array:
    return _price(X) + 0.3 * np.sin(X[:, 0])


def _spike(X: Array) -> Array:
    return _sigmoid(1.4 * _price(X) - 0.5)


def _spike_truth(X: Array) -> Array:
    return 0.9 * _spike(X) + 0.05


_MARKET = ("demand", "sun", "wind")
SEASONS = [
    World(
        "seasons, squared",
        FormulaRegressor(Formula(_MARKET, _price)),
        "squared",
        Skewed(_price_truth, 0.5),
        _season_population,
        seasons,
    ),
    World(
        "seasons, cross_entropy",
        FormulaClassifier(Formula(_MARKET, _spike)),
        "cross_entropy",
        Chance(_spike_truth),
        _season_population,
        seasons,
    ),
]

WORLDS = {world.name: world for world in (*AUTOREGRESSIVE, *REGIMES, *SEASONS)}
