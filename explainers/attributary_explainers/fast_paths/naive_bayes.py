"""Gaussian naive Bayes: the densities of all rows in one kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import river.utils.math
from river import naive_bayes, proba

from ..compiled import HAS_NUMBA, compiled
from ..evaluation.evaluator import Evaluator, NotCoveredError, proved
from ..evaluation.registry import register
from ..evaluation.schema import Array, Schema
from ..ordering import sort_key
from .pipelines.transforms import Parameters

_EPS = 10e-10
"""What River adds to every density."""
_NORM = 1.0 / math.sqrt(2.0 * math.pi)
_NOTHING: dict[Any, Any] = {}
_UNKNOWN: Any = proba.Gaussian()  # type: ignore[no-untyped-call]

_MATH: Any = river.utils.math
_HASHES: dict[tuple[Any, str], str] = {
    (naive_bayes.GaussianNB, "predict_proba_one"): "3b4242908508",
    (naive_bayes.GaussianNB, "joint_log_likelihood"): "28cfc2e3330a",
    (naive_bayes.GaussianNB, "p_class"): "6169c44d31bc",
    (naive_bayes.GaussianNB, "_log_gaussian_pdf"): "25014b699cbb",
    (proba.Gaussian, "__call__"): "a768664a8dbc",
    (_MATH, "norm_pdf"): "8074e496b223",
}


class GaussianNBEvaluator(Evaluator):
    """`naive_bayes.GaussianNB`.

    Every call reads the mean and the variance of each class and feature. Terms that a row shares with the first one
    are not computed again.

    Raises
    ------
    NotCoveredError
        A feature has categories.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self.relies_on = proved(_HASHES)
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
        if HAS_NUMBA:
            _densities(X, self._parameters.array, self._P)
        else:
            self._densities_numpy(X)
        return self._P

    def _read(self) -> None:
        """Log priors; then means, and standard deviations, class by class; 0 where there is no variance yet."""
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

    def _densities_numpy(self, X: Array) -> None:
        n_classes, d = len(self.labels), X.shape[1]
        values = self._parameters.array
        means = values[n_classes : n_classes * (d + 1)].reshape(n_classes, d)
        deviations = values[n_classes * (d + 1) :].reshape(n_classes, d)
        with np.errstate(all="ignore"):
            z = (X[:, None, :] - means) / deviations
            terms = np.log(np.where(deviations > 0.0, _EPS + _NORM * np.exp(-0.5 * z * z) / deviations, _EPS))
            P = values[:n_classes] + terms.sum(axis=2)
            np.exp(P - P.max(axis=1, keepdims=True), out=P)
            np.divide(P, P.sum(axis=1, keepdims=True), out=self._P)


@compiled
def _term(x: float, mean: float, deviation: float) -> float:
    if deviation <= 0.0:
        return math.log(10e-10)
    z = (x - mean) / deviation
    return math.log(10e-10 + 0.3989422804014327 * math.exp(-0.5 * z * z) / deviation)


@compiled
def _densities(X: Array, values: Array, P: Array) -> None:
    n_rows, d = X.shape
    n_classes = P.shape[1]
    first = np.empty((n_classes, d))  # the terms of the first row
    for c in range(n_classes):
        at = n_classes + c * d
        for j in range(d):
            first[c, j] = _term(X[0, j], values[at + j], values[n_classes * d + at + j])
    for r in range(n_rows):
        greatest = -np.inf
        for c in range(n_classes):
            at = n_classes + c * d
            score = 0.0
            for j in range(d):
                if X[r, j] == X[0, j]:
                    score += first[c, j]
                else:
                    score += _term(X[r, j], values[at + j], values[n_classes * d + at + j])
            P[r, c] = values[c] + score
            greatest = max(greatest, P[r, c])
        total = 0.0
        for c in range(n_classes):
            P[r, c] = math.exp(P[r, c] - greatest)
            total += P[r, c]
        for c in range(n_classes):
            P[r, c] /= total


register(naive_bayes.GaussianNB)(GaussianNBEvaluator)
