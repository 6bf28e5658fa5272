"""Populations of two classes with a known truth, frozen models of them, and how their predictions are measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attributary_explainers import as_batch

Array = np.ndarray[Any, np.dtype[np.float64]]
Labels = np.ndarray[Any, np.dtype[np.int64]]

COLUMNS = 20
RULE, IGNORED, UNREAD = range(12), range(12, 17), range(17, 20)
"""Columns that decide; that models may read and labels do not depend on; that no model reads."""

LOANS_WEIGHTS = np.array([1.0, 0.95, -0.8, 0.75, -0.65, 0.5, 0.45, 0.6, -0.3, 0.25, 0.2, 0.15])


@dataclass(frozen=True)
class Population:
    """Latent rows (n, 20) to inputs (n, 20), and inputs to the logit of label 1."""

    name: str
    inputs: Callable[[Array], Array]
    score: Callable[[Array, int], Array]
    """The second argument numbers the rule: 0 is the one of the beginning, 1 another one."""

    names: tuple[str, ...] = tuple(f"c{j:02d}" for j in range(COLUMNS))

    def probability(self, x: Array, rule: int = 0) -> Array:
        """Of label 1, by the truth."""
        return np.asarray(expit(self.score(x, rule)))


def latent(rng: np.random.Generator, n: int) -> Array:
    """Independent standard normal numbers."""
    return rng.standard_normal((n, COLUMNS))


def labels(rng: np.random.Generator, probability: Array) -> Labels:
    """One label each."""
    return (rng.random(len(probability)) < probability).astype(np.int64)


def _loans_inputs(z: Array) -> Array:
    """Skewed, uniform, heavy-tailed, counted and binary columns, half of them correlated by one common factor."""
    x = z.copy()
    x[:, 2:9:2] = 0.85 * x[:, 2:9:2] + np.sqrt(1 - 0.85**2) * z[:, [9]]
    x[:, 0] = np.exp(0.5 * x[:, 0]) - 1.0
    x[:, 2] = 3.4 * (ndtr(x[:, 2]) - 0.5)
    x[:, 3] = np.exp(0.4 * x[:, 3]) - 1.0
    x[:, 6] *= 0.7 + 0.3 * np.abs(x[:, 6])
    x[:, 7] = x[:, 7] > 0.9
    x[:, 8] = np.round(2.0 * np.exp(0.4 * x[:, 8]))
    x[:, 12] = np.exp(0.3 * x[:, 12])
    x[:, 17] = np.round(x[:, 17])
    return x


def _loans_score(x: Array, rule: int) -> Array:
    """Nearly linear: one product and a flattened tail are what a linear model does not know."""
    w = LOANS_WEIGHTS.copy()
    if rule:
        w[[1, 5]] = w[[5, 1]]
    own = x[:, : len(w)] @ w
    return np.asarray(own + 0.25 * x[:, 1] * x[:, 4] - 0.2 * np.maximum(x[:, 0] - 1.0, 0.0) - 1.0)


def _pumps_inputs(z: Array) -> Array:
    """Uniform and normal columns, two sums of neighbours, one of four values."""
    x = z.copy()
    x[:, :4] = 4.0 * (ndtr(z[:, :4]) - 0.5)
    x[:, 5] = 0.8 * z[:, 5] + 0.6 * z[:, 4]
    x[:, 9] = 0.8 * z[:, 9] - 0.6 * z[:, 8]
    x[:, 7] = np.floor(4.0 * ndtr(z[:, 7]))
    x[:, 13] = np.exp(0.5 * z[:, 13])
    return x


def _pumps_score(x: Array, rule: int) -> Array:
    """Waves, steps, products and folds."""
    third = -x[:, 3] if rule else x[:, 3]
    own = 1.3 * np.sin(1.2 * x[:, 0]) + 1.1 * (x[:, 1] > 0.4) - 0.9 * np.abs(x[:, 2]) + 0.6 * third * (x[:, 4] > 0)
    more = 0.7 * np.tanh(x[:, 5]) + 0.5 * x[:, 6] + 0.45 * (x[:, 7] == 2) - 0.4 * x[:, 8] + 0.3 * x[:, 9]
    return np.asarray(1.2 * (own + more + 0.25 * x[:, 10] * x[:, 11]) + 0.1)


LOANS = Population("loans", _loans_inputs, _loans_score)
PUMPS = Population("pumps", _pumps_inputs, _pumps_score)


LEAST = 1e-3
"""Predicted probabilities count as at least this, or one row in another unit would be the whole loss."""


def auc(positive: Any, score: Array) -> float:
    """Share of pairs of a positive and a negative that are in order, ties half.

    `positive` holds labels, or the probability of each row to be a positive: then it is the share to be expected.
    """
    q = np.asarray(positive, dtype=float)
    levels, level = np.unique(score, return_inverse=True)
    ones, zeros = (np.bincount(level, weights=w, minlength=len(levels)) for w in (q, 1.0 - q))
    below = np.cumsum(zeros) - zeros
    return float((ones * (below + zeros / 2)).sum() / (ones.sum() * zeros.sum()))


def log_loss(truth: Any, predicted: Array, least: float = LEAST) -> float:
    """Mean of -log p, in nats, to be expected where labels have the probabilities of the truth.

    Both (n,), of label 1, or (n, k).
    """
    q, p = both(np.asarray(truth, dtype=float)), both(predicted)
    return float(-(q * np.log(np.maximum(p, least))).sum(axis=1).mean())


def both(p: Array) -> Array:
    """Probabilities of all classes, (n, k)."""
    return np.column_stack((1.0 - p, p)) if p.ndim == 1 else p


def matthews(truth: Sequence[bool], told: Sequence[bool]) -> float:
    """Correlation of two decisions; 0 where one of them is always the same."""
    a, b = np.asarray(truth, dtype=bool), np.asarray(told, dtype=bool)
    tp, tn, fp, fn = (int((u & v).sum()) for u, v in ((a, b), (~a, ~b), (~a, b), (a, ~b)))
    scale = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return (tp * tn - fp * fn) / scale if scale else 0.0


def precision(truth: Sequence[bool], told: Sequence[bool]) -> float:
    """Share of what was told that is true; not a number where nothing was told."""
    right = [t for t, s in zip(truth, told, strict=True) if s]
    return sum(right) / len(right) if right else math.nan


def recall(truth: Sequence[bool], told: Sequence[bool]) -> float:
    """Share of what is true that was told."""
    return precision(told, truth)


TAUGHT = 60_000
READ = [j for j in range(20) if j not in UNREAD]


@dataclass
class Subject:
    """A population and a model that was taught on it once. `scale` multiplies the logits of the model."""

    name: str
    population: Population
    fitted: Any
    scale: float = 1.0

    def predict(self, x: Array) -> Array:
        """Probability of label 1, of rows (n, 20)."""
        p = self.fitted.predict_proba(x[:, READ])[:, 1]
        return p if self.scale == 1.0 else np.asarray(expit(self.scale * logit(np.clip(p, 1e-9, 1 - 1e-9))))

    def table(self, x: Array) -> Array:
        """Probabilities (n, 2)."""
        p = self.predict(x)
        return np.column_stack((1.0 - p, p))

    @property
    def model(self) -> Any:
        """What an explainer takes."""
        return as_batch(self.table, features=self.population.names, classes=[0, 1])

    @cached_property
    def sample(self) -> Array:
        """Clean rows that no trial sees."""
        return self.population.inputs(latent(np.random.default_rng(31), 20_000))

    @cached_property
    def ranked(self) -> tuple[int, ...]:
        """Columns by what the log loss rises by when they are permuted, the most important first."""
        rng = np.random.default_rng(32)
        truth = self.population.probability(self.sample)
        clean = log_loss(truth, self.predict(self.sample))
        order = rng.permutation(len(truth))
        rise = {}
        for j in READ:
            x = self.sample.copy()
            x[:, j] = x[order, j]
            rise[j] = log_loss(truth, self.predict(x)) - clean
        return tuple(sorted(rise, key=lambda j: -rise[j]))


@lru_cache
def _fitted(name: str) -> Any:
    population, make, seed = _MODELS[name]
    rng = np.random.default_rng(seed)
    x = population.inputs(latent(rng, TAUGHT))
    return make().fit(x[:, READ], labels(rng, population.probability(x)))


_MODELS: dict[str, tuple[Population, Callable[[], Any], int]] = {
    "linear": (LOANS, lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)), 11),
    "boosted": (
        PUMPS,
        lambda: HistGradientBoostingClassifier(
            max_iter=150, max_leaf_nodes=16, min_samples_leaf=200, l2_regularization=10.0, random_state=0
        ),
        12,
    ),
}

SUBJECTS = tuple(_MODELS)


@lru_cache
def subject(name: str, scale: float = 1.0) -> Subject:
    """`linear` or `boosted`; taught once a process."""
    return Subject(name, _MODELS[name][0], _fitted(name), scale)
