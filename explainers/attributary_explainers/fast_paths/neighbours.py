"""Fast paths of nearest neighbours that search a window exhaustively."""

from __future__ import annotations

import abc
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import river.utils.vectordict
from river import neighbors

from ..core import is_compiled
from ..core.evaluators.neighbours import nearest, vote
from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import register
from ..evaluation.schema import NotEncodableError, Schema
from ..ordering import sort_key
from ..typing import Array, Ints

_EUCLIDEAN = river.utils.vectordict.euclidean_distance_tuple


class Window:
    """The stored rows of a `LazySearch` as an array, in step with it.

    Squares are summed in the order of the features in the newest stored row, as in the stream and in River. So equal
    distances stay equal, and of such rows the older one counts as nearer.
    """

    def __init__(self, schema: Schema, number: Callable[[Any], float]) -> None:
        self.schema = schema
        self.columns: Array = np.empty((len(schema), 0))
        """The rows as columns: a ring, of which `head` is the oldest."""
        self.targets: Array = np.empty(0)
        """The targets of the rows, as numbers."""
        self._number = number
        self.order: Ints = np.arange(len(schema))
        self.head = 0
        self._items: deque[Any] = deque()
        self._names: list[Any] = []

    def __len__(self) -> int:
        return len(self._items)

    def follow(self, live: deque[Any]) -> None:
        """Take over the rows that are new in the live window.

        Raises
        ------
        NotCoveredError
            A stored row has other features, or a value that is no number.
        """
        items = self._items
        if not live and not items:
            return
        if items and live and live[-1] is items[-1] and live[0] is items[0] and len(live) == len(items):
            return
        new: list[Any] = []
        last = items[-1] if items else None
        for item in reversed(live):
            if item is last:
                break
            new.append(item)
        if len(new) == len(live) or live.maxlen != items.maxlen:
            self._start(live)
            return
        new.reverse()
        self._add(new)
        if len(live) != len(items) or live[0] is not items[0]:
            self._start(live)

    def _start(self, live: deque[Any]) -> None:
        if not live.maxlen:
            raise NotCoveredError("a window without a size")
        self._items = deque(maxlen=live.maxlen)
        self.columns = np.empty((len(self.schema), live.maxlen))
        self.targets = np.empty(live.maxlen)
        self.head = 0
        self._add(list(live))

    def _add(self, new: Sequence[Any]) -> None:
        if not new:
            return
        try:
            rows = self.schema.encode_many([self._filled(item[0][0]) for item in new])
        except NotEncodableError as error:
            # It is met again at the next call, until it is gone: as it would be by a new evaluator.
            raise NotCoveredError(f"a stored row: {error}") from None
        capacity = len(self.targets)
        for item, row in zip(new, rows, strict=True):
            at = (self.head + len(self._items)) % capacity
            if len(self._items) == capacity:
                self.head = (self.head + 1) % capacity
            self._items.append(item)
            self.columns[:, at] = row
            self.targets[at] = self._number(item[0][1])
        names = list(new[-1][0][0])
        if names != self._names:
            self._names = names
            order = dict.fromkeys([*names, *self.schema.features])
            self.order = np.array([self.schema.position[name] for name in order])

    def _filled(self, x: Any) -> Any:
        """Return a stored row with 0 for each missing feature, as in River."""
        keys = self.schema.keys
        return x if x.keys() == keys or not x.keys() <= keys else {**dict.fromkeys(keys, 0.0), **x}

    def nearest(self, X: Array, k: int) -> tuple[Ints, Array]:
        """Return ring positions and distances of neighbours (rows x neighbours)."""
        n = len(self)
        found = np.empty((len(X), min(k, n)), dtype=np.int64)
        distances = np.empty(found.shape)
        nearest(X, self.columns, self.order, self.head, n, found, distances)
        return found, distances


class _NeighboursEvaluator(Evaluator):
    """The base of classifier and regressor: both search the window."""

    def __init__(self, model: Any, schema: Schema) -> None:
        if not is_compiled():  # and River's search is
            raise NotCoveredError("not compiled: asking the model is faster")
        self.model, self.schema = model, schema
        if schema.codes:
            raise NotCoveredError("distances of categories")
        self._engine()
        self._window = Window(schema, self._number)

    @abc.abstractmethod
    def _number(self, target: Any) -> float:
        """Return a target as the window's number; NaN where it is not covered."""

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
        """Return the targets (numbers) and distances of each row's neighbours."""
        found, distances = self._window.nearest(X, self.model.n_neighbors)
        targets = self._window.targets[found]
        if np.isnan(targets).any():
            raise NotCoveredError("a neighbour has a target that is not covered")
        return targets, distances


class KNNClassifierEvaluator(_NeighboursEvaluator):
    """An evaluator of `neighbors.KNNClassifier` with Euclidean `LazySearch`."""

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
        vote(codes, distances, bool(model.weighted), bool(model.softmax), P)
        return P


class KNNRegressorEvaluator(_NeighboursEvaluator):
    """An evaluator of `neighbors.KNNRegressor` with Euclidean `LazySearch`."""

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
