"""Streams whose observations depend on each other, with the exact importance of a fixed model on each.

Every stream begins in its stationary distribution. Exact importance is that of one moment of it: features as they occur
together, and a replacement that is independent of them. It is the same for every dependence in time.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
from river import base

from attributary_explainers.evaluation.evaluator import Evaluator
from attributary_explainers.evaluation.registry import register
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.losses.losses import DEFAULT_EPSILON
from attributary_explainers.typing import Array, Features


@dataclass(frozen=True)
class Formula:
    """A function of an array of rows, and how an observation becomes one.

    Parameters
    ----------
    features
        The columns, in alphabetical order, as the fast paths have them.
    function
        Shape (rows, columns) to shape (rows,).
    levels
        The texts of a feature that is a category; its column holds their positions here.
    """

    features: tuple[str, ...]
    function: Callable[[Array], Array]
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if list(self.features) != sorted(self.features):
            raise ValueError(f"the features are in alphabetical order, got {self.features}")

    def observations(self, X: Array) -> list[dict[str, Any]]:
        """Return the rows as observations of a stream."""
        columns: list[list[Any]] = X.T.tolist()
        for i, name in enumerate(self.features):
            if name in self.levels:
                columns[i] = [self.levels[name][int(value)] for value in columns[i]]
        return [dict(zip(self.features, row, strict=True)) for row in zip(*columns, strict=True)]

    def of_one(self, x: Features) -> float:
        """Return the value for one observation."""
        row = [self.levels[name].index(x[name]) if name in self.levels else x[name] for name in self.features]
        return float(self.function(np.array([row], dtype=np.float64))[0])


class _Formulated:
    def __init__(self, formula: Formula) -> None:
        self.formula = formula

    def learn_one(self, x: Any, y: Any, **kwargs: Any) -> None:
        """Do nothing: the model is fixed."""


class FormulaRegressor(_Formulated, base.Regressor):
    """Predicts the value of a formula."""

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Return the value."""
        return self.formula.of_one(x)


class FormulaClassifier(_Formulated, base.Classifier):
    """Predicts True with the probability that the formula says."""

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[bool | str | int, float]:
        """Return both probabilities."""
        p = self.formula.of_one(x)
        return {False: 1.0 - p, True: p}


class FormulaRule(_Formulated, base.Classifier):
    """Predicts True where the formula is 1, without probabilities."""

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> bool:
        """Return the label."""
        return self.formula.of_one(x) > 0.5


@register(FormulaRegressor, FormulaClassifier, FormulaRule)
class FormulaEvaluator(Evaluator):
    """Evaluates a formula on all rows at once; texts come as codes, which are put back into positions."""

    def __init__(self, model: Any, schema: Schema) -> None:
        self.formula: Formula = model.formula
        self.labels = None if isinstance(model, FormulaRegressor) else (False, True)
        self._codes = [(i, schema.codes[i], self.formula.levels[schema.features[i]]) for i in schema.codes]

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        if self._codes:
            X = X.copy()
            for column, codes, levels in self._codes:
                positions = np.array([levels.index(text) for text in codes], dtype=np.float64)
                X[:, column] = positions[X[:, column].astype(np.intp)]
        value = self.formula.function(X)
        return value[:, None] if self.labels is None else np.column_stack((1.0 - value, value))


Predict = Callable[[Array], Array]
"""Rows to predictions: shape (rows, features) to (rows,)."""
ExpectedLoss = Callable[[Array, Array], Array]
"""Rows and a prediction for each, to the loss that is expected over the target given the row."""


@dataclass(frozen=True)
class Population:
    """Points of shape (points, features) with weights that sum to 1."""

    points: Array
    weights: Array

    def expectation(self, values: Array) -> float:
        """Return the mean of one value per point."""
        return float(self.weights @ values)

    def marginal(self, columns: tuple[int, ...]) -> tuple[Array, Array, npt.NDArray[np.intp]]:
        """Return the different values of some columns, the weight of each, and which of them each point has."""
        # Nodes that differ by rounding alone are the same.
        rounded = np.round(self.points[:, list(columns)], 12)
        values, inverse = np.unique(rounded, axis=0, return_inverse=True)
        inverse = inverse.ravel()
        weights = np.zeros(len(values))
        np.add.at(weights, inverse, self.weights)
        return values, weights, inverse


def exact_pfi(population: Population, predict: Predict, expected_loss: ExpectedLoss) -> Array:
    """Return the expected PFI of each feature (iPFI Definition 3): replaced by an independent draw, less the model's.

    The other features keep their joint distribution, and the replacement comes from the feature's own.
    """
    points = population.points
    base = population.expectation(expected_loss(points, predict(points)))
    importance = np.empty(points.shape[1])
    for j in range(points.shape[1]):
        values, weights, _ = population.marginal((j,))
        replaced, total = points.copy(), 0.0
        for value, weight in zip(values[:, 0].tolist(), weights.tolist(), strict=True):
            replaced[:, j] = value
            total += weight * population.expectation(expected_loss(points, predict(replaced)))
        importance[j] = total - base
    return importance


def exact_sage(population: Population, predict: Predict, expected_loss: ExpectedLoss) -> Array:
    """Return the SAGE values with interventional removal: Shapley values of the expected loss of each coalition.

    What a coalition predicts is the mean over independent draws of all the other features together.
    """
    points = population.points
    features = range(points.shape[1])
    d = len(features)
    lost = {}
    for size in range(d + 1):
        for kept in combinations(features, size):
            lost[kept] = population.expectation(expected_loss(points, _of_coalition(population, predict, kept)))
    importance = np.zeros(d)
    for kept, loss in lost.items():
        for j in features:
            if j not in kept:
                weight = 1.0 / (d * math.comb(d - 1, len(kept)))
                importance[j] += weight * (loss - lost[tuple(sorted((*kept, j)))])
    return importance


def _of_coalition(population: Population, predict: Predict, kept: tuple[int, ...]) -> Array:
    d = population.points.shape[1]
    removed = tuple(j for j in range(d) if j not in kept)
    if not removed:
        return predict(population.points)
    known, _, inverse = population.marginal(kept) if kept else (np.empty((1, 0)), None, None)
    drawn, weights, _ = population.marginal(removed)
    prediction = np.zeros(len(known))
    # The loop is over the shorter of the two lists.
    if len(known) <= len(drawn):
        rows = np.empty((len(drawn), d))
        rows[:, list(removed)] = drawn
        for i, value in enumerate(known):
            rows[:, list(kept)] = value
            prediction[i] = weights @ predict(rows)
    else:
        rows = np.empty((len(known), d))
        rows[:, list(kept)] = known
        for value, weight in zip(drawn, weights.tolist(), strict=True):
            rows[:, list(removed)] = value
            prediction += weight * predict(rows)
    return np.full(len(population.points), prediction[0]) if inverse is None else prediction[inverse]


class Target(abc.ABC):
    """A distribution of the target given the row."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, X: Array) -> list[Any]:
        """Return a target for each row."""

    @abc.abstractmethod
    def expected_loss(self, loss: str, X: Array, prediction: Array) -> Array:
        """Return the loss of a prediction for each row, expected over the target."""


@dataclass(frozen=True)
class Skewed(Target):
    """A number: `truth` plus noise that is exponential, of this scale and of mean 0.

    With a = truth + noise's least value - prediction, in units of the scale, and an exponential variable e,
    E |a + e| = a + 1 for a >= 0, and 2 exp(a) - a - 1 below.
    """

    truth: Callable[[Array], Array]
    scale: float

    def draw(self, rng: np.random.Generator, X: Array) -> list[Any]:
        """See `Target`."""
        found: list[Any] = (self.truth(X) + self.scale * (rng.exponential(size=len(X)) - 1.0)).tolist()
        return found

    def expected_loss(self, loss: str, X: Array, prediction: Array) -> Array:
        """See `Target`: squared and absolute."""
        error = self.truth(X) - prediction
        if loss == "squared":
            return error**2 + self.scale**2
        _check(loss, "absolute")
        a = error / self.scale - 1.0
        return self.scale * np.where(a >= 0.0, a + 1.0, 2.0 * np.exp(np.minimum(a, 0.0)) - a - 1.0)


@dataclass(frozen=True)
class Chance(Target):
    """True with a probability that depends on the row."""

    probability: Callable[[Array], Array]

    def draw(self, rng: np.random.Generator, X: Array) -> list[Any]:
        """See `Target`."""
        found: list[Any] = (rng.random(len(X)) < self.probability(X)).tolist()
        return found

    def expected_loss(self, loss: str, X: Array, prediction: Array) -> Array:
        """See `Target`; the prediction is the probability of True, or the share of draws that say True.

        `zero_one` is of the more probable label, and `expected_zero_one` 1 less the share of the right one, which is
        the absolute loss where the target is 0 or 1.
        """
        true = self.probability(X)
        if loss == "cross_entropy":
            prediction = np.clip(prediction, DEFAULT_EPSILON, 1.0 - DEFAULT_EPSILON)
            return -true * np.log(prediction) - (1.0 - true) * np.log(1.0 - prediction)
        if loss == "zero_one":
            if (np.abs(prediction - 0.5) < 1e-9).any():
                raise ValueError("two labels are equally probable: there is no exact zero_one")
            prediction = (prediction > 0.5).astype(np.float64)
        else:
            _check(loss, "expected_zero_one", "absolute")
        return true * (1.0 - prediction) + (1.0 - true) * prediction


def _check(loss: str, *known: str) -> None:
    if loss not in known:
        raise ValueError(f"expected one of {known}, got {loss!r}")


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
