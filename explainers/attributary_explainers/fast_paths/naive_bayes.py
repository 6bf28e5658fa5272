"""Fast path of Gaussian naive Bayes: one kernel computes the densities of all rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from river import naive_bayes, proba

from ..compiled import compiled
from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import register
from ..evaluation.schema import Schema
from ..ordering import sort_key
from ..typing import Array
from .pipelines.transforms import Parameters

_EPS = 10e-10
"""River adds this to every density."""
_NORM = 1.0 / math.sqrt(2.0 * math.pi)
_NOTHING: dict[Any, Any] = {}
_UNKNOWN: Any = proba.Gaussian()  # type: ignore[no-untyped-call]


class GaussianNBEvaluator(Evaluator):
    """Evaluates `naive_bayes.GaussianNB`.

    Every call reads the mean and the variance of each class and feature. Terms that a row shares with the first one
    are not computed again.

    Raises
    ------
    NotCoveredError
        A feature has categories.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        if schema.codes:
            raise NotCoveredError("a Gaussian of categories")
        self.labels: tuple[Any, ...] = ()
        self._parameters = Parameters(0)
        self._P: Array = np.empty((0, 0))

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        counts = self.model.class_counts
        if len(counts) != len(self.labels) or not counts.keys() >= set(self.labels):
            self.labels = tuple(sorted(counts, key=sort_key))
        if not counts:
            return np.empty((len(X), 0))
        shape = (len(X), len(self.labels))
        if self._P.shape != shape:
            self._P = np.empty(shape)
        self._read()
        _densities(X, self._parameters.array, self._P)
        return self._P

    def _read(self) -> None:
        """Read log priors; then means, and standard deviations, class by class; 0 where there is no variance yet."""
        counts, gaussians, features = self.model.class_counts, self.model.gaussians, self.schema.features
        total = sum(counts.values())
        values = [math.log(counts[label] / total) for label in self.labels]
        deviations: list[float] = []
        for label in self.labels:
            known = gaussians.get(label, _NOTHING)
            variables = [known.get(feature, _UNKNOWN)._var for feature in features]
            values += [variable.mean._mean for variable in variables]
            for variable in variables:
                n, ddof = variable.mean.n, variable.ddof
                variance = variable._S / (n - ddof) if n > ddof else 0.0
                deviations.append(math.sqrt(variance) if variance > 0.0 else 0.0)
        values += deviations
        if len(values) != self._parameters.size:
            self._parameters = Parameters(len(values))
        self._parameters.fill(values)


@compiled
def _term(x: float, mean: float, deviation: float) -> float:
    if deviation <= 0.0:
        return math.log(_EPS)
    z = (x - mean) / deviation
    return math.log(_EPS + _NORM * math.exp(-0.5 * z * z) / deviation)


@compiled
def _densities(X: Array, values: Array, P: Array) -> None:
    n_rows, d = X.shape
    n_classes = P.shape[1]
    first = np.empty((n_classes, d))  # the terms of the first row
    for c in range(n_classes):
        at = n_classes + c * d
        for j in range(d):  # a feature that is absent has no density
            first[c, j] = 0.0 if X[0, j] != X[0, j] else _term(X[0, j], values[at + j], values[n_classes * d + at + j])
    for r in range(n_rows):
        greatest = -np.inf
        for c in range(n_classes):
            at = n_classes + c * d
            score = 0.0
            for j in range(d):
                if X[r, j] == X[0, j]:
                    score += first[c, j]
                elif X[r, j] == X[r, j]:
                    score += _term(X[r, j], values[at + j], values[n_classes * d + at + j])
            P[r, c] = values[c] + score
            greatest = max(greatest, P[r, c])
        total = 0.0
        for c in range(n_classes):
            P[r, c] = math.exp(P[r, c] - greatest)
            total += P[r, c]
        for c in range(n_classes):
            P[r, c] /= total


register(naive_bayes.GaussianNB, gaps=True)(GaussianNBEvaluator)
