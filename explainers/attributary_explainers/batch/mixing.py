"""Rows mixed as arrays from a table's observations, thousands in a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.losses import NOT_IN_CORE, losses_at
from ..errors import InvalidParameterError, NoPredictionError
from ..evaluation.evaluator import NotCoveredError
from ..evaluation.function import FastFunction
from ..evaluation.schema import NotEncodableError
from ..losses.labels import is_of_labels
from ..models.batch import Mixing
from ..models.sklearn import EstimatorFunction
from ..predictions import Predictions
from ..typing import Array, Prediction
from .tables import DataTable

Ints = npt.NDArray[np.intp]

BLOCK = 1 << 15
"""Rows in a call."""


class Mixer:
    """A table of rows to mix: an index says where each column comes from."""

    def __init__(self, table: DataTable, mixing: Mixing) -> None:
        self._table, self._mixing = table, mixing
        self._labels: Any = ()
        place = {feature: j for j, feature in enumerate(self._mixing.features)}
        self.columns = [np.array([place[f] for f in of if f in place], np.intp) for of in table.players.values()]
        """By player its columns."""
        self.n_columns = len(place)
        self._targets = np.array([table.loss.arguments_at(y, 0)[3] for y in table.ys], np.float64)
        self._of_labels: npt.NDArray[np.int64] = np.zeros(len(table.ys), np.int64)

    def predict(self, idx: Ints) -> Array:
        """Return the predictions for rows, shape (rows, classes) or (rows, 1).

        Raises
        ------
        NoPredictionError
            There is none for a row.
        NotMixableError
            The model itself has to be asked.
        """
        try:
            P = self._mixing.predict(idx)
        except (NotCoveredError, NotEncodableError) as reason:
            raise NotMixableError from reason
        if not P.shape[1] or not np.isfinite(P).all():
            raise NoPredictionError(f"{self._table.model_name} has no prediction for some rows: let it learn first")
        return np.ascontiguousarray(P, np.float64)  # some give single precision, or columns together

    def losses(self, P: Array, which: Ints) -> Array:
        """Return the loss of each prediction, for observation which[row]."""
        table = self._table
        if self.labels != self._labels and self.labels is not None:
            self._labels, place = self.labels, {label: i for i, label in enumerate(self.labels)}
            self._of_labels = np.array([place.get(y, -1) for y in table.ys], np.int64)
        found = np.empty(len(P))
        wrong = losses_at(P, which, table.loss.code, table.loss.epsilon, self._of_labels, self._targets, found)
        if wrong >= 0:
            i = int(which[wrong])
            raise InvalidParameterError("data", "observations whose loss is finite", (table.xs[i], table.ys[i]))
        return found

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """For a classifier, the class of each column of the last predictions."""
        function = self._table.function
        return function.labels if isinstance(function, FastFunction) else self._mixing.labels

    def given(self, P: Array, start: int) -> Predictions:
        """Return the predictions from a row on, as a walk reads them."""
        return _Given(P, start, self.labels, self._table.loss.output == "label")


class NotMixableError(Exception):
    """The model itself has to be asked for some rows, made as dicts."""


def mixer_of(table: DataTable) -> Mixer | None:
    """Return the mixer of a table; None where rows have to be dicts."""
    if table.loss.code == NOT_IN_CORE and not is_of_labels(table.loss):
        return None
    mixing = _mixing(table)
    return None if mixing is None else Mixer(table, mixing)


class _Given(Predictions):
    def __init__(self, P: Array, start: int, labels: tuple[Any, ...] | None, are_labels: bool) -> None:
        self.array, self.start, self.labels, self._are_labels = P, start, labels, are_labels
        self._columns = {label: i for i, label in enumerate(labels or ())}

    def column(self, label: Any) -> int:
        return self._columns.get(label, -1)

    def rows(self, n: int) -> list[Prediction]:
        P = self.array[self.start : self.start + n]
        if self.labels is None:
            return [value for (value,) in P.tolist()]
        if self._are_labels:
            return [{self.labels[i]: 1.0} for i in P.argmax(axis=1).tolist()]
        return [dict(zip(self.labels, row, strict=True)) for row in P.tolist()]


def _mixing(table: DataTable) -> Mixing | None:
    function = table.function
    if isinstance(function, EstimatorFunction):
        return function.mixing(table.xs)
    if not isinstance(function, FastFunction):
        return None
    try:
        schema = function.open(table.xs[0])
        X = schema.encode_many(table.xs)
    except (NotCoveredError, NotEncodableError):
        return None
    if any(x.keys() != schema.keys for x in table.xs):
        return None
    across = np.arange(X.shape[1])
    are_labels = table.loss.output == "label"

    def predict(idx: Ints) -> Array:
        P = function.predict(X[idx, across])
        if not are_labels or not P.shape[1]:
            return P.copy()
        named: Array = (np.arange(P.shape[1]) == P.argmax(axis=1)[:, None]).astype(np.float64)
        return named

    return Mixing(schema.features, None, predict)


def blocks(n: int, rows_of_each: int, size: int = BLOCK) -> Iterator[range]:
    """Yield the numbers 0 … n - 1 in runs that make about `size` rows."""
    length = max(size // max(rows_of_each, 1), 1)
    for start in range(0, n, length):
        yield range(start, min(start + length, n))
