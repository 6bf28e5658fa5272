"""Questions to the model of partial dependence, answered as arrays of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...compiled import compiled
from ...errors import ExplainerError, ModelError
from ...evaluation.evaluator import NotCoveredError
from ...evaluation.function import FastFunction
from ...evaluation.schema import NotEncodableError, Schema
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

    def encoded(self, schema: Schema, which: Ints) -> tuple[Array, Ints]:
        """Return rows as numbers, shape (rows, features), and where some of the questions' rows are among them.

        Raises
        ------
        NotEncodableError
            The schema does not hold all of these.
        """
        if self._encoded is None or self._encoded[0] is not schema:
            self._encoded = schema, self._all_encoded(schema)
        of_all = self._encoded[1]
        if of_all is not None:
            return of_all, which
        return schema.encode_many([self.rows[i] for i in which]), np.arange(len(which))

    def have_no_other(self, features: frozenset[Any]) -> bool:
        """Return whether it is known that no row has another feature, since all have been encoded with these."""
        known = self._encoded
        return known is not None and known[1] is not None and known[0].keys == features

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
            known = self._points = schema, name, points, np.ascontiguousarray(found)
        return known[3]


class JustAsked(NamedTuple):
    """Holds a function of the same model for the same output, and the observation that it has just been asked about.

    It knows what the model has learnt until now. A function that is asked every few observations has to read that.
    """

    function: ModelFunction
    x: Features


class AskedModel:
    """Answers with one number for each row, NaN where the model has none.

    Parameters
    ----------
    function
        From `model_function`.
    label
        Class whose probability is the number, where the model gives probabilities.
    just_asked
        Asked in its place where that says the same.
    """

    def __init__(self, function: ModelFunction, label: Any, just_asked: JustAsked | None = None) -> None:
        self._function, self._label, self._just_asked = function, label, just_asked
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
                return self._predicted(function, function.open(rows[0]), len(rows), partial(_write_rows, rows), None)
            except (NotCoveredError, NotEncodableError) as reason:
                function.count_refusal(reason)
        return self._asked(rows, 1, lambda row: [row])[:, 0]

    def grid(self, questions: Questions, which: Ints, name: Any, points: Sequence[Any]) -> Array:
        """Return the predictions for some of the rows with a feature set to each of some values.

        Returns
        -------
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

    def _by_array(
        self, function: FastFunction, questions: Questions, which: Ints, name: Any, points: Sequence[Any]
    ) -> Array:
        first = {**questions.rows[which[0]], name: points[0]}
        schema = function.open(first)
        if schema.takes_gaps and not questions.have_no_other(schema.keys):
            schema = function.open_all([first, *(questions.rows[i] for i in which)])
        write = partial(_write_grid, questions, which, name, points)
        n, n_points = len(which), len(points)
        grid = schema.position[name], n_points
        return self._predicted(function, schema, n * n_points, write, grid).reshape(n, n_points)

    def _predicted(
        self,
        own: FastFunction,
        schema: Schema,
        n: int,
        write: Callable[[Schema, Array], None],
        grid: tuple[int, int] | None,
    ) -> Array:
        """Return the predictions for `n` rows, which `write` writes to an array of shape (n, features) by a schema."""
        room = own.room(1 + n, len(schema))
        if (known := self._at_hand(schema)) is not None:
            asked, its_schema, first = known
            # Before them all the observation: the leaves that it reaches are those that learn next.
            room[0] = first
            write(its_schema, room[1:])
            try:
                P = asked.predict(room, grid=grid)
            except NotCoveredError:
                pass  # as `own` will find, by its own rows
            else:
                asked.count_for(own)  # there, observations are counted
                return self._column(asked, P)[1:]
        write(schema, room[1:])
        return self._column(own, own.predict(room[1:], grid=grid))

    def _at_hand(self, schema: Schema) -> tuple[FastFunction, Schema, Array] | None:
        """Return what has just been asked, its schema and the observation; None where that has other columns."""
        if self._just_asked is None or not isinstance(asked := self._just_asked.function, FastFunction):
            return None
        known = asked.schema_at_hand
        if known is None or known.codes or schema.codes or type(known) is not type(schema):
            return None
        if (known.features, known.numbers) != (schema.features, schema.numbers):
            return None
        try:
            return asked, known, known.encode(self._just_asked.x)
        except NotEncodableError:
            return None

    def _column(self, function: FastFunction, P: Array) -> Array:
        column = 0
        if function.labels is not None:
            if self._label is None or not P.shape[1]:
                return np.full(len(P), math.nan)
            column = function.column(self._label)
        found = np.empty(len(P))
        _choose_column(P, column, found)
        return found


def _write_rows(rows: Sequence[Features], schema: Schema, X: Array) -> None:
    X[:] = schema.encode_many(rows)


def _write_grid(questions: Questions, which: Ints, name: Any, points: Sequence[Any], schema: Schema, X: Array) -> None:
    """Write some of the rows with a feature set to each of some points, one row after the other."""
    values = questions.encoded_points(schema, name, points)
    _fill_grid(*questions.encoded(schema, which), schema.position[name], values, X)


@compiled
def _fill_grid(rows: Array, which: Ints, column: int, values: Array, X: Array) -> None:
    """Write rows with a column set to each of some values, one row after the other."""
    r = 0
    for i in range(len(which)):
        for p in range(len(values)):
            for j in range(rows.shape[1]):
                X[r, j] = rows[which[i], j]
            X[r, column] = values[p]
            r += 1


@compiled
def _choose_column(P: Array, column: int, found: Array) -> None:
    """Write a column of predictions, -1 for zeros; NaN where the row has one that is not finite, or it is too large."""
    for r in range(len(P)):
        value = P[r, column] if column >= 0 else 0.0
        for c in range(P.shape[1]):
            if not np.isfinite(P[r, c]):
                value = np.nan
        found[r] = value if abs(value) <= LARGEST else np.nan
