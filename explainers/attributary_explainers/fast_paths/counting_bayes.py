"""Fast paths of naive Bayes that counts: Bernoulli, multinomial and complement."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np
from river import naive_bayes

from ..compiled import compiled
from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import register
from ..evaluation.schema import Schema
from ..ordering import sort_key
from ..typing import Array, Ints

_EPS = 1e-09
"""River adds this to every probability of Bernoulli's."""


class _CountingEvaluator(Evaluator):
    """The base of the three: a prior for each class, and a term for each feature.

    Raises
    ------
    NotCoveredError
        A feature has categories.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        if schema.codes:
            raise NotCoveredError("counts of categories")
        self.labels: tuple[Any, ...] = ()
        self._P: Array = np.empty((0, 0))
        self._names: list[Any] = list(schema.features)
        self._source: Ints = np.arange(len(schema))

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        counts = self.model.class_counts
        if len(counts) != len(self.labels) or not counts.keys() >= set(self.labels):
            self.labels = tuple(sorted(counts, key=sort_key))
        if not counts:
            return np.empty((len(X), 0))
        self._P = np.empty((len(X), len(self.labels)))
        try:
            prior, above, below = self._terms()
        except (ArithmeticError, TypeError) as error:
            raise NotCoveredError(f"the model raises {type(error).__name__}") from None
        _add(X, self._source, prior, above, below, self._threshold(), self._P)
        if not np.isfinite(self._P).all():
            raise NotCoveredError("a likelihood is no finite number")
        return self._P

    @abc.abstractmethod
    def _terms(self) -> tuple[Array, Array, Array]:
        """Return the score of each class before its features, and the terms of each feature; see `_add`."""

    def _threshold(self) -> float:
        return math.nan

    def _priors(self) -> list[float]:
        counts = self.model.class_counts
        total = sum(counts.values())
        return [math.log(counts[label] / total) for label in self.labels]

    def _weights(self, values: list[list[float]]) -> Array:
        """Return logarithms; NaN where the model raises if a row has the feature."""
        p = np.array(values, dtype=np.float64).reshape(len(self.labels), len(self._names))
        return np.array([[math.log(v) if v > 0.0 else math.nan for v in row] for row in p.tolist()]).reshape(p.shape)


class BernoulliNBEvaluator(_CountingEvaluator):
    """Evaluates `naive_bayes.BernoulliNB`: every feature that it has ever seen has a term, in a row or not."""

    def _threshold(self) -> float:
        return float(self.model.true_threshold)

    def _terms(self) -> tuple[Array, Array, Array]:
        model, position = self.model, self.schema.position
        known = model.feature_counts
        if len(known) != len(self._names) or not known.keys() >= set(self._names):
            # Also those without a column, so that the sum is the same whatever has one.
            self._names = sorted(known, key=sort_key)
            self._source = np.array([position.get(name, -1) for name in self._names], dtype=np.int64)
        p = []
        for label in self.labels:
            size = model.class_counts[label] + model.alpha * 2
            p.append([(known[name].get(label, 0.0) + model.alpha) / size for name in self._names])
        above = self._weights([[_EPS + value for value in row] for row in p])
        below = self._weights([[_EPS + (1.0 - value) for value in row] for row in p])
        return np.array(self._priors()), above, below


class MultinomialNBEvaluator(_CountingEvaluator):
    """Evaluates `naive_bayes.MultinomialNB`."""

    def _terms(self) -> tuple[Array, Array, Array]:
        model, known = self.model, self.model.feature_counts
        p = []
        for label in self.labels:
            size = model.class_totals[label] + model.alpha * len(known)
            p.append([(known.get(name, {}).get(label, 0.0) + model.alpha) / size for name in self._names])
        weights = self._weights(p)
        return np.array(self._priors()), weights, weights


class ComplementNBEvaluator(_CountingEvaluator):
    """Evaluates `naive_bayes.ComplementNB`: it weighs what the other classes have of a feature, and no prior."""

    def _terms(self) -> tuple[Array, Array, Array]:
        model, known = self.model, self.model.feature_counts
        totals, p = model.feature_totals, []
        for label in self.labels:
            rest = {name: totals[name] + model.alpha - counts.get(label, 0) for name, counts in known.items()}
            size = sum(rest.values())
            p.append([rest.get(name, model.alpha) / size for name in self._names])
        weights = -self._weights(p)
        return np.zeros(len(self.labels)), weights, weights


@compiled
def _add(X: Array, source: Ints, prior: Array, above: Array, below: Array, threshold: float, P: Array) -> None:
    """Add the terms of each row, and normalise.

    With a threshold, a feature adds `above` or, where it is not larger or not there, `below`; without one (NaN), it
    adds its number times `above`, and nothing where it is not there.
    """
    n_classes, d = above.shape
    is_binary = threshold == threshold
    for r in range(X.shape[0]):
        greatest = -np.inf
        for c in range(n_classes):
            score = prior[c]
            for j in range(d):
                x = X[r, source[j]] if source[j] >= 0 else np.nan
                if is_binary:
                    score += above[c, j] if x > threshold else below[c, j]
                elif x == x:
                    score += x * above[c, j]
            P[r, c] = score
            greatest = max(greatest, score)
        total = 0.0
        for c in range(n_classes):
            P[r, c] = math.exp(P[r, c] - greatest)
            total += P[r, c]
        for c in range(n_classes):
            P[r, c] /= total


register(naive_bayes.BernoulliNB, gaps=True)(BernoulliNBEvaluator)
register(naive_bayes.MultinomialNB, gaps=True)(MultinomialNBEvaluator)
register(naive_bayes.ComplementNB, gaps=True)(ComplementNBEvaluator)
