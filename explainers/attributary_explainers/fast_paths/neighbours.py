"""Fast paths of nearest neighbours that search a window exhaustively."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np
import river.utils.vectordict
from river import neighbors

from ..compiled import compiled
from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import register
from ..evaluation.schema import Schema
from ..ordering import sort_key
from ..typing import Array, Ints
from .nearest import Window

_EUCLIDEAN = river.utils.vectordict.euclidean_distance_tuple


class _NeighboursEvaluator(Evaluator):
    """The base of classifier and regressor: both search the window."""

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        if schema.codes:
            raise NotCoveredError("distances of categories")
        self._engine()
        self._window = Window(schema, self._number)

    @abc.abstractmethod
    def _number(self, target: Any) -> float:
        """Return a target as the number that the window keeps; NaN for one that is not covered."""

    def _engine(self) -> Any:
        engine = self.model._nn
        if type(engine) is neighbors.SWINN:
            raise NotCoveredError(
                "SWINN: its predictions draw from the model's own generator, so that asking changes "
                "later ones; with engine=LazySearch() there is a fast path"
            )
        if type(engine) is not neighbors.LazySearch:
            raise NotCoveredError(f"the search engine {type(engine).__name__}")
        if engine.dist_func is not _EUCLIDEAN:
            raise NotCoveredError("another distance than the Euclidean one")
        if self.model.n_neighbors < 1:
            raise NotCoveredError("no neighbour is asked for")
        return engine

    def _nearest(self, X: Array) -> tuple[Array, Array]:
        """Return the targets, as numbers, and the distances of each row's neighbours."""
        found, distances = self._window.nearest(X, self.model.n_neighbors)
        targets = self._window.targets[found]
        if np.isnan(targets).any():
            raise NotCoveredError("a neighbour has a target that is not covered")
        return targets, distances


class KNNClassifierEvaluator(_NeighboursEvaluator):
    """Evaluates `neighbors.KNNClassifier` with the engine `LazySearch` and the Euclidean distance."""

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
        _vote(codes, distances, bool(model.weighted), bool(model.softmax), P)
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


class KNNRegressorEvaluator(_NeighboursEvaluator):
    """Evaluates `neighbors.KNNRegressor` with the engine `LazySearch` and the Euclidean distance."""

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
