"""Two populations of labelled rows whose truth is known: probabilities, not only labels.

Rows are made of independent standard normal numbers (the latent rows), so that a shift of the latent rows is an exact
shift of the population, whatever is done to them after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

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
