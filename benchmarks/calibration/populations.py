"""Exact importance by enumeration of weighted points: all values of a population, or the nodes of a quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from attributary_explainers.typing import Array

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
