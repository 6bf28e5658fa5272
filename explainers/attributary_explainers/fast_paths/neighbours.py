"""Nearest neighbours by exhaustive search in a window."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np
import river.utils.math
import river.utils.vectordict
from river import neighbors

from ..compiled import HAS_NUMBA, compiled
from ..evaluation.evaluator import Evaluator, NotCoveredError, proved
from ..evaluation.registry import register
from ..evaluation.schema import Array, Schema
from ..ordering import sort_key
from .nearest import Ints, Window

_VECTORS: Any = river.utils.vectordict
_MATH: Any = river.utils.math
_EUCLIDEAN = river.utils.vectordict.euclidean_distance_tuple

_SEARCH: dict[tuple[Any, str], str] = {
    (neighbors.LazySearch, "search"): "2d50b8e3a1f1",
    (_VECTORS, "lazy_search_euclidean"): "",
}
_CLASSIFIER: dict[tuple[Any, str], str] = {
    **_SEARCH,
    (neighbors.KNNClassifier, "predict_proba_one"): "bfcf5bc5c4b4",
    (_MATH, "softmax"): "6aee31afd8a3",
}
_REGRESSOR: dict[tuple[Any, str], str] = {**_SEARCH, (neighbors.KNNRegressor, "predict_one"): "1eb6a1aae02b"}


class _NeighboursEvaluator(Evaluator):
    """What classifier and regressor share: the window."""

    hashes: dict[tuple[Any, str], str]

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self.relies_on = proved(self.hashes)
        if schema.codes:
            raise NotCoveredError("distances of categories")
        self._engine()
        self._window = Window(schema, self._number)

    @abc.abstractmethod
    def _number(self, target: Any) -> float:
        """What the window keeps of a target; NaN for one that is not covered."""

    def _engine(self) -> Any:
        engine = self.model._nn
        if type(engine) is neighbors.SWINN:
            raise NotCoveredError("SWINN: its predictions draw from the model's own generator")
        if type(engine) is not neighbors.LazySearch:
            raise NotCoveredError(f"the search engine {type(engine).__name__}")
        if engine.dist_func is not _EUCLIDEAN:
            raise NotCoveredError("another distance than the Euclidean one")
        if self.model.n_neighbors < 1:
            raise NotCoveredError("no neighbour is asked for")
        return engine

    def _nearest(self, X: Array) -> tuple[Array, Array]:
        """Targets, as numbers, and distances of the nearest of each row."""
        found, distances = self._window.nearest(X, self.model.n_neighbors)
        targets = self._window.targets[found]
        if np.isnan(targets).any():
            raise NotCoveredError("a neighbour has a target that is not covered")
        return targets, distances


class KNNClassifierEvaluator(_NeighboursEvaluator):
    """`neighbors.KNNClassifier` with the engine `LazySearch` and the Euclidean distance."""

    hashes = _CLASSIFIER

    def __init__(self, model: Any, schema: Schema) -> None:
        self._numbers: dict[Any, float] = {}
        super().__init__(model, schema)
        self.labels: tuple[Any, ...] = ()

    def _number(self, target: Any) -> float:
        return math.nan if target is None else self._numbers.setdefault(target, float(len(self._numbers)))

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        model, window = self.model, self._window
        window.follow(self._engine().window)
        if len(model.classes) != len(self.labels) or not model.classes.issuperset(self.labels):
            self.labels = tuple(sorted(model.classes, key=sort_key))
        if not len(window):
            return np.full((len(X), len(self.labels)), 1.0 / len(self.labels) if self.labels else 0.0)
        column = {label: i for i, label in enumerate(self.labels)}
        numbers, distances = self._nearest(X)
        known = np.array([column.get(label, -1) for label in self._numbers])
        codes = known[numbers.astype(np.int64)]
        if codes.min() < 0:
            raise NotCoveredError("the model has forgotten the class of a neighbour")
        P = np.zeros((len(X), len(self.labels)))
        if HAS_NUMBA:
            _vote(codes, distances, bool(model.weighted), bool(model.softmax), P)
        else:
            _vote_numpy(codes, distances, model.weighted, model.softmax, P)
        return P


@compiled
def _vote(codes: Ints, distances: Array, weighted: bool, softmax: bool, P: Array) -> None:
    n_labels = P.shape[1]
    for r in range(P.shape[0]):
        if distances[r, 0] == 0.0:
            P[r, codes[r, 0]] = 1.0
            continue
        for q in range(codes.shape[1]):
            P[r, codes[r, q]] += 1.0 / distances[r, q] if weighted else 1.0
        if softmax:
            greatest = P[r].max()
            for c in range(n_labels):
                P[r, c] = math.exp(P[r, c] - greatest)
        total = 0.0
        for c in range(n_labels):
            total += P[r, c]
        for c in range(n_labels):
            P[r, c] /= total


def _vote_numpy(codes: Ints, distances: Array, weighted: bool, softmax: bool, P: Array) -> None:
    rows = np.arange(len(P))
    with np.errstate(all="ignore"):
        votes = 1.0 / distances if weighted else np.ones(distances.shape)
        for q in range(votes.shape[1]):
            P[rows, codes[:, q]] += votes[:, q]
        if softmax:
            np.exp(P - P.max(axis=1, keepdims=True), out=P)
        P /= P.sum(axis=1, keepdims=True)
    (same,) = np.nonzero(distances[:, 0] == 0.0)
    P[same] = 0.0
    P[same, codes[same, 0]] = 1.0


class KNNRegressorEvaluator(_NeighboursEvaluator):
    """`neighbors.KNNRegressor` with the engine `LazySearch` and the Euclidean distance."""

    hashes = _REGRESSOR

    def _number(self, target: Any) -> float:
        return float(target) if type(target) in _NUMBERS and math.isfinite(target) else math.nan

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        self._window.follow(self._engine().window)
        if not len(self._window):
            return np.zeros((len(X), 1))
        y, distances = self._nearest(X)
        method = self.model.aggregation_method
        if method == "median":
            P = np.median(y, axis=1)
        else:
            # `statistics.mean` is exact.
            P = np.array([math.fsum(values) / len(values) for values in y.tolist()])
            if method == "weighted_mean":
                with np.errstate(all="ignore"):
                    weighted, total = np.zeros(len(X)), np.zeros(len(X))
                    for q in range(y.shape[1]):
                        weighted += y[:, q] / distances[:, q]
                        total += 1.0 / distances[:, q]
                    P = np.where(total == 0.0, P, weighted / total)
        P = np.where(distances[:, 0] == 0.0, y[:, 0], P)
        return P[:, None]


_NUMBERS = frozenset((int, float, bool, np.float64))

register(neighbors.KNNClassifier)(KNNClassifierEvaluator)
register(neighbors.KNNRegressor)(KNNRegressorEvaluator)
