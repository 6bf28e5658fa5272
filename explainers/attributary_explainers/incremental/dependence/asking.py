"""Questions to the model of partial dependence, answered as arrays of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import ExplainerError, ModelError
from ...evaluation.evaluator import NotCoveredError
from ...evaluation.function import FastFunction
from ...evaluation.schema import NotEncodableError, Schema, categorical_features
from ...predictions import is_usable, predict_rows
from ...typing import Array, Features, Ints, ModelFunction, Prediction
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


def _are_alike(row: Features, x: Features) -> bool:
    """Return whether a fast path reads two rows alike: by the same features, of the same kinds."""
    return row.keys() == x.keys() and categorical_features(row) == categorical_features(x)


class Questions:
    """Rows that a model is asked about more than once, and what they are as numbers.

    Parameters
    ----------
    rows
        At least one; they are kept and not changed.
    """

    def __init__(self, rows: list[dict[Any, Any]]) -> None:
        self.rows = rows
        self._encoded: tuple[Schema, Array | None] | None = None
        self._points: tuple[Schema, Any, Sequence[Any], Array] | None = None

    def encoded(self, schema: Schema, which: Ints) -> Array:
        """Return some of the rows as numbers, shape (rows, features).

        Raises
        ------
        NotEncodableError
            The schema does not hold all of them.
        """
        if self._encoded is None or self._encoded[0] is not schema:
            self._encoded = schema, self._all_encoded(schema)
        of_all = self._encoded[1]
        return schema.encode_many([self.rows[i] for i in which]) if of_all is None else of_all[which]

    def _all_encoded(self, schema: Schema) -> Array | None:
        try:
            return schema.encode_many(self.rows)
        except NotEncodableError:
            return None  # of some of them it may hold all

    def encoded_points(self, schema: Schema, name: Any, points: Sequence[Any]) -> Array:
        """Return values of a feature as numbers, of shape (points,); raises as `encoded`."""
        known = self._points
        if known is None or known[0] is not schema or known[2] is not points or known[1] != name:
            found = schema.encode_many([{**self.rows[0], name: point} for point in points])[:, schema.position[name]]
            known = self._points = schema, name, points, found
        return known[3]


class AskedModel:
    """Answers with one number for each row, NaN where the model has none.

    Parameters
    ----------
    function
        From `model_function`.
    label
        Class whose probability is the number, where the model gives probabilities.
    lent, x
        Another function of the same output, and the observation that it has just predicted. It knows the model as it
        is now already, and answers where it can read the rows as it reads that observation, which stands before them:
        it learns what the model learns next from where its first row has been. It counts none of these rows.
    """

    def __init__(
        self, function: ModelFunction, label: Any, lent: FastFunction | None = None, x: Features | None = None
    ) -> None:
        self._function, self._label = function, label
        self._lent, self._x = lent, x
        self.n_asked = 0
        """Predictions that were asked for."""
        self.error: Exception | None = None
        """What the model last raised about a row."""

    def rows(self, rows: Sequence[Features]) -> Array:
        """Return the predictions for rows as they are, shape (rows,)."""
        self.n_asked += len(rows)
        found = self._fast(rows[0], lambda function, before: self._rows_by_array(function, before, rows))
        return self._asked(rows, 1, lambda row: [row])[:, 0] if found is None else found

    def grid(self, questions: Questions, which: Ints, name: Any, points: Sequence[Any]) -> Array:
        """Return the predictions for some of the rows with a feature set to each of some values.

        Returns
        -------
        Shape (rows, points).
        """
        self.n_asked += len(which) * len(points)
        first = {**questions.rows[which[0]], name: points[0]}
        asked = (first, questions, which, name, points)
        found = self._fast(first, lambda function, before: self._grid_by_array(function, before, *asked))
        if found is not None:
            return found
        rows = [questions.rows[i] for i in which]
        return self._asked(rows, len(points), lambda row: [{**row, name: point} for point in points])

    def _fast(self, first: Features, asked: Callable[[FastFunction, list[Features]], Array]) -> Array | None:
        """Return what a fast path answers to rows that begin with this one; None where there is none for them.

        Parameters
        ----------
        asked
            Asks a function, with the rows that are to stand before.
        """
        for function, before in self._functions(first):
            try:
                return asked(function, before)
            except (NotCoveredError, NotEncodableError) as reason:
                if not before:
                    function.count_refusal(reason)
        return None

    def _functions(self, first: Features) -> Iterator[tuple[FastFunction, list[Features]]]:
        lent, x = self._lent, self._x
        if lent is not None and x is not None and _are_alike(first, x):
            yield lent, [x]
        if isinstance(self._function, FastFunction):
            yield self._function, []

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

    def _rows_by_array(self, function: FastFunction, before: list[Features], rows: Sequence[Features]) -> Array:
        X = function.open(rows[0]).encode_many([*before, *rows])
        return self._column(function, X, len(before))

    def _grid_by_array(
        self,
        function: FastFunction,
        before: list[Features],
        first: Features,
        questions: Questions,
        which: Ints,
        name: Any,
        points: Sequence[Any],
    ) -> Array:
        schema = function.open(first)
        if schema.takes_gaps and not before:
            schema = function.open_all([first, *(questions.rows[i] for i in which)])
        encoded = questions.encoded(schema, which)
        column = schema.position[name]
        n, n_points, n_features = len(which), len(points), len(schema)
        X = function.room(len(before) + n * n_points, n_features)
        for i, x in enumerate(before):
            X[i] = schema.encode(x)  # of one row faster than of many
        cube = X[len(before) :].reshape(n, n_points, n_features)
        cube[:] = encoded[:, None, :]
        cube[:, :, column] = questions.encoded_points(schema, name, points)
        return self._column(function, X, len(before)).reshape(n, n_points)

    def _column(self, function: FastFunction, X: Array, n_before: int) -> Array:
        P = function.predict(X)[n_before:]
        if n_before:
            function.counts["fast"] -= 1  # it counts observations that it has been asked for, and these are ours
        if function.labels is None:
            found = P[:, 0].copy()
        elif self._label is None or not P.shape[1]:
            return np.full(len(P), math.nan)
        else:
            column = function.column(self._label)
            found = P[:, column].copy() if column >= 0 else np.zeros(len(P))
            if not np.isfinite(P).all():
                found = np.where(np.isfinite(P).all(axis=1), found, math.nan)
        usable = np.abs(found) <= LARGEST
        return found if usable.all() else np.where(usable, found, math.nan)
