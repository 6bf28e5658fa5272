"""Questions to the model of partial dependence, answered as arrays of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import ExplainerError, ModelError
from ...evaluation.evaluator import NotCoveredError
from ...evaluation.function import FastFunction
from ...evaluation.schema import NotEncodableError
from ...predictions import is_usable, predict_rows
from ...typing import Array, Features, ModelFunction, Prediction
from ...validation import LARGEST


def as_float(prediction: Prediction, label: Any) -> float:
    """Return a prediction as a number, of probabilities that of `label`; NaN where it cannot enter a mean.

    It cannot where it is unusable, beyond 1e150, whose square is no float, or where no label is known yet (None).
    """
    if prediction is None or not is_usable(prediction):
        return math.nan
    if isinstance(prediction, dict):
        if label is None:
            return math.nan
        prediction = prediction.get(label, 0.0)
    return float(prediction) if abs(prediction) <= LARGEST else math.nan


def larger_label(labels: list[Any]) -> Any:
    """Return the larger of two classes.

    Raises
    ------
    ModelError
        There are more, or they have no order.
    """
    try:
        if len(labels) == 2:
            return max(labels)
    except TypeError:
        pass
    raise ModelError(f"cannot choose among the classes {labels!r}: name one of them as `label`")


class AskedModel:
    """Answers with one number for each row, NaN where the model has none.

    Parameters
    ----------
    function
        From `model_function`.
    label
        Class whose probability is the number, where the model gives probabilities.
    """

    def __init__(self, function: ModelFunction, label: Any) -> None:
        self._function, self._label = function, label
        self.n_asked = 0
        """Predictions that were asked for."""
        self.error: Exception | None = None
        """What the model last raised about a row."""

    def rows(self, rows: Sequence[Features]) -> Array:
        """Return the predictions for rows as they are, shape (rows,)."""
        self.n_asked += len(rows)
        return self._asked(rows, 1, lambda row: [row])[:, 0]

    def grid(self, rows: Sequence[Features], name: Any, points: Sequence[Any]) -> Array:
        """Return the predictions for rows with a feature set to each of some values, shape (rows, points)."""
        function = self._function
        self.n_asked += len(rows) * len(points)
        if isinstance(function, FastFunction):
            try:
                return self._by_array(function, rows, name, points)
            except (NotCoveredError, NotEncodableError) as reason:
                function.count_refusal(reason)
        return self._asked(rows, len(points), lambda row: [{**row, name: point} for point in points])

    def _asked(self, rows: Sequence[Features], n: int, made: Callable[[Features], list[Features]]) -> Array:
        # A row without a fast path must not keep the others from theirs: of several, each is asked by itself.
        if len(rows) == 1 or n == 1 or not isinstance(self._function, FastFunction):
            try:
                return self._numbers([of_one for row in rows for of_one in made(row)], n)
            except ExplainerError:
                raise
            except Exception as error:  # noqa: BLE001 - the model is the user's: what it raises is about these rows
                if len(rows) == 1:
                    self.error = error
                    return np.full((1, n), math.nan)
        return np.concatenate([self._asked([row], n, made) for row in rows])

    def _numbers(self, rows: list[Features], n: int) -> Array:
        found = [as_float(prediction, self._label) for prediction in predict_rows(self._function, rows)]
        return np.array(found, dtype=np.float64).reshape(-1, n)

    def _by_array(self, function: FastFunction, rows: Sequence[Features], name: Any, points: Sequence[Any]) -> Array:
        schema = function.open_all([{**rows[0], name: points[0]}, *rows])
        encoded = schema.encode_many(rows)
        column = schema.position[name]
        values = schema.encode_many([{**rows[0], name: point} for point in points])[:, column]
        n, n_points = len(rows), len(points)
        X = function.room(n * n_points, len(schema))
        cube = X.reshape(n, n_points, len(schema))
        cube[:] = encoded[:, None, :]
        cube[:, :, column] = values
        found = self._column(function, function.predict(X))
        return np.where(np.abs(found) <= LARGEST, found, math.nan).reshape(n, n_points)

    def _column(self, function: FastFunction, P: Array) -> Array:
        if function.labels is None:
            return P[:, 0]
        if self._label is None or not P.shape[1]:
            return np.full(len(P), math.nan)
        column = function.column(self._label)
        return np.where(np.isfinite(P).all(axis=1), P[:, column] if column >= 0 else 0.0, math.nan)
