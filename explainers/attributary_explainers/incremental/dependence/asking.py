"""Questions of partial dependence to the model, answered as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dependence import choose_column, fill_grid
from ...errors import ExplainerError, ModelError
from ...evaluation.evaluator import NotCoveredError
from ...evaluation.function import FastFunction
from ...evaluation.schema import NotEncodableError, Schema
from ...predictions import is_usable, predict_rows
from ...typing import Array, Features, Ints, ModelFunction, Prediction
from ...validation import LARGEST


def as_float(prediction: Prediction, label: Any) -> float:
    """Return a prediction as a number; NaN where it cannot enter a mean.

    Of probabilities it is that of `label`. NaN: the prediction is unusable or beyond 1e150, whose square is no float,
    or no label is known yet (None).
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

    ModelError: there are more, or they have no order.
    """
    try:
        if len(labels) == 2:
            return max(labels)
    except TypeError:
        pass
    raise ModelError(f"cannot choose among the classes {labels!r}: name one of them as `label`")


class Questions:
    """Rows about which a model is asked repeatedly.

    They are read as numbers once for each schema.
    """

    def __init__(self, rows: list[dict[Any, Any]]) -> None:
        self.rows = rows
        self._encoded: tuple[Schema, Array | None] | None = None

    def encoded(self, schema: Schema, which: Ints) -> tuple[Array, Ints]:
        """Return rows as numbers, and where some of the rows are among them.

        Their shape is (rows, features). NotEncodableError: the schema does not hold all of these.
        """
        if self._encoded is None or self._encoded[0] is not schema:
            try:
                self._encoded = schema, np.ascontiguousarray(schema.encode_many(self.rows))
            except NotEncodableError:
                self._encoded = schema, None  # of some of them it may hold all
        of_all = self._encoded[1]
        if of_all is not None:
            return of_all, which
        some = schema.encode_many([self.rows[i] for i in which])
        return np.ascontiguousarray(some), np.arange(len(which))

    def encoded_points(self, schema: Schema, name: Any, points: Sequence[Any]) -> Array:
        """Return a feature's values as numbers, (points,); raise as `encoded`."""
        found = schema.encode_many([{**self.rows[0], name: point} for point in points])
        return np.ascontiguousarray(found[:, schema.position[name]])


class AskedModel:
    """A model that answers with a number for each row, or NaN for none.

    Of probabilities it is that of `label`.
    """

    def __init__(self, function: ModelFunction, label: Any) -> None:
        self._function, self._label = function, label
        self.n_asked = 0
        """Predictions that were asked for."""
        self.error: Exception | None = None
        """What the model last raised about a row."""

    def rows(self, rows: Sequence[Features]) -> Array:
        """Return the predictions for rows as they are, shape (rows,)."""
        function = self._function
        self.n_asked += len(rows)
        if isinstance(function, FastFunction):
            try:
                schema = function.open_all(rows)
                return self._column(function, function.predict(schema.encode_many(rows)))
            except (NotCoveredError, NotEncodableError) as reason:
                function.count_refusal(reason)
        return self._asked(rows, 1, lambda row: [row])[:, 0]

    def grid(self, questions: Questions, which: Ints, name: Any, points: Sequence[Any]) -> Array:
        """Predict some rows with a feature set to each of some values.

        Shape (rows, points).
        """
        function = self._function
        self.n_asked += len(which) * len(points)
        if isinstance(function, FastFunction):
            try:
                return self._by_array(function, questions, which, name, points)
            except (NotCoveredError, NotEncodableError) as reason:
                function.count_refusal(reason)
        rows = [questions.rows[i] for i in which]
        return self._asked(rows, len(points), lambda row: [{**row, name: point} for point in points])

    def _asked(self, rows: Sequence[Features], n: int, made: Callable[[Features], list[Features]]) -> Array:
        # A row without a fast path must not keep the others from theirs: of several, each is asked by itself.
        if len(rows) == 1 or n == 1 or not isinstance(self._function, FastFunction):
            try:
                asked = predict_rows(self._function, [of_one for row in rows for of_one in made(row)])
                found = [as_float(prediction, self._label) for prediction in asked]
                return np.array(found, dtype=np.float64).reshape(-1, n)
            except ExplainerError:
                raise
            except Exception as error:  # noqa: BLE001 - the model is the user's: what it raises is about these rows
                if len(rows) == 1:
                    self.error = error
                    return np.full((1, n), math.nan)
        return np.concatenate([self._asked([row], n, made) for row in rows])

    def _by_array(
        self, function: FastFunction, questions: Questions, which: Ints, name: Any, points: Sequence[Any]
    ) -> Array:
        rows = [questions.rows[i] for i in which]
        schema = function.open_all([{**rows[0], name: points[0]}, *rows])
        X = function.room(len(which) * len(points), len(schema))
        values = questions.encoded_points(schema, name, points)
        fill_grid(*questions.encoded(schema, which), schema.position[name], values, X)
        return self._column(function, function.predict(X)).reshape(-1, len(points))

    def _column(self, function: FastFunction, P: Array) -> Array:
        column = 0
        if function.labels is not None:
            if self._label is None or not P.shape[1]:
                return np.full(len(P), math.nan)
            column = function.column(self._label)
        found = np.empty(len(P))
        choose_column(np.ascontiguousarray(P, np.float64), column, LARGEST, found)
        return found
