"""Fast path of naive Bayes: Gaussian, Bernoulli, multinomial, complement."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from river import naive_bayes

from ..core.evaluators.bayes import counting, gaussian
from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import register
from ..evaluation.schema import Schema
from ..ordering import sort_key
from ..typing import Array

Terms: TypeAlias = tuple[list[int], list[float], list[list[float]], list[list[float]] | None]
"""Columns, priors, and the terms of each class and feature; see `counting`."""

_EPS = 1e-09
"""River adds this to every probability of Bernoulli's."""


class GaussianNBEvaluator(Evaluator):
    """Evaluates `naive_bayes.GaussianNB`.

    Raises
    ------
    NotCoveredError
        A feature has categories.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        if schema.codes:
            raise NotCoveredError("naive Bayes of categories")
        self.model, self.schema = model, schema
        self.labels: tuple[Any, ...] = ()
        self._P: Array = np.empty((0, 0))

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        counts = self.model.class_counts
        if len(counts) != len(self.labels) or not counts.keys() >= set(self.labels):
            self.labels = tuple(sorted(counts, key=sort_key))
        shape = len(X), len(self.labels)
        if self._P.shape != shape:
            self._P = np.empty(shape)
        if counts:
            self._write(X)
        return self._P

    def _write(self, X: Array) -> None:
        gaussian(X, self.schema.features, self.labels, self.model.class_counts, self.model.gaussians, self._P)


class CountingEvaluator(GaussianNBEvaluator):
    """An evaluator of naive Bayes that counts: priors plus feature terms."""

    def _write(self, X: Array) -> None:
        try:
            threshold = getattr(self.model, "true_threshold", None)
            counting(X, *_TERMS[type(self.model)](self.model, self.labels, self.schema), threshold, self._P)
        except (ArithmeticError, TypeError) as error:
            raise NotCoveredError(f"the model raises {type(error).__name__}") from None
        if not np.isfinite(self._P).all():
            raise NotCoveredError("a likelihood is no finite number")


def _bernoulli(model: Any, labels: tuple[Any, ...], schema: Schema) -> Terms:
    # Every feature that it has ever seen has a term, in a row or not; the sum is the same whatever has a column.
    known, above, below = model.feature_counts, [], []
    names = sorted(known, key=sort_key)
    for label in labels:
        size = model.class_counts[label] + model.alpha * 2
        p = [(known[name].get(label, 0.0) + model.alpha) / size for name in names]
        above.append([_log(_EPS + value) for value in p])
        below.append([_log(_EPS + (1.0 - value)) for value in p])
    return [schema.position.get(name, -1) for name in names], _priors(model, labels), above, below


def _multinomial(model: Any, labels: tuple[Any, ...], schema: Schema) -> Terms:
    known, weights = model.feature_counts, []
    for label in labels:
        size = model.class_totals[label] + model.alpha * len(known)
        counts = [known.get(name, {}).get(label, 0.0) for name in schema.features]
        weights.append([_log((count + model.alpha) / size) for count in counts])
    return list(range(len(schema))), _priors(model, labels), weights, None


def _complement(model: Any, labels: tuple[Any, ...], schema: Schema) -> Terms:
    # It weighs what the other classes have of a feature, and no prior.
    totals, weights = model.feature_totals, []
    for label in labels:
        rest = {
            name: totals[name] + model.alpha - counts.get(label, 0) for name, counts in model.feature_counts.items()
        }
        size = sum(rest.values())
        weights.append([-_log(rest.get(name, model.alpha) / size) for name in schema.features])
    return list(range(len(schema))), [0.0] * len(labels), weights, None


def _priors(model: Any, labels: tuple[Any, ...]) -> list[float]:
    total = sum(model.class_counts.values())
    return [math.log(model.class_counts[label] / total) for label in labels]


def _log(value: float) -> float:
    """Return a logarithm; NaN where the model raises if a row has the feature."""
    return math.log(value) if value > 0.0 else math.nan


_TERMS: dict[Any, Callable[[Any, tuple[Any, ...], Schema], Terms]] = {
    naive_bayes.BernoulliNB: _bernoulli,
    naive_bayes.MultinomialNB: _multinomial,
    naive_bayes.ComplementNB: _complement,
}

register(naive_bayes.GaussianNB, gaps=True)(GaussianNBEvaluator)
register(*_TERMS, gaps=True)(CountingEvaluator)
