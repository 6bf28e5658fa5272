"""The batch of an observation and all rows that its explainers request."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np

from ..errors import ExplainerError
from ..evaluation.evaluator import NotCoveredError
from ..evaluation.function import FastFunction
from ..evaluation.schema import Encoded, NotEncodableError
from ..imputers.requests import Request
from ..predictions import GivenPredictions, Predictions, is_usable, predict_rows, show_row
from ..typing import Array, Features, ModelFunction, Prediction

_LARGE = 1 << 20
"""The rows of an observation that hold more numbers (8 MB) are evaluated in slices of about this size."""


class ModelRaisedError(Exception):
    """An error the model raised on some rows, for explainers to count."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class EvaluatedPredictions(Predictions):
    """Predictions that a fast path has given as an array."""

    def __init__(self, own: Prediction, array: Array, start: int, function: FastFunction) -> None:
        self.own, self.array, self.start, self.function = own, array, start, function
        self.labels, self._columns = function.labels, function.columns

    def column(self, label: Any) -> int:
        """Return the column of a class; -1 for a class unknown to the model."""
        return self._columns.get(label, -1)

    def rows(self, n: int) -> list[Prediction]:
        """Return `n` predictions from `start` on, for a user's own loss."""
        return self.function.predictions(self.array[self.start : self.start + n], self.labels)


class Requesting(Protocol):
    """An explainer by removal, as it is asked which rows it needs."""

    def request(self, x: Features, encoded: Encoded | None) -> Request | str:
        """Return the rows an observation needs, or why it is not explained."""


def predict(
    function: ModelFunction,
    x: Features,
    explainers: Sequence[Requesting],
    y_pred: Prediction = None,
    encoded: Encoded | None = None,
) -> tuple[list[Request | str], list[Predictions]]:
    """Predict an observation and all rows that its explainers request.

    Parameters
    ----------
    function
        From `model_function`.
    x
        The observation.
    y_pred
        The prediction for `x`, where the caller has it: it saves the naive path one evaluation. A fast path makes its
        own, at no cost: a feature without effect gets exactly 0 only where the observation and its changed rows are
        evaluated in the same way.
    encoded
        The observation as an array, where the caller has it from the function.

    Returns
    -------
    The requests and the predictions for each; without an explainer there is one prediction, that for `x` alone. A
    reason not to explain gets the prediction for `x` alone, too.

    Raises
    ------
    ModelRaisedError
        The model raised on `x` itself.
    """
    if isinstance(function, FastFunction):
        refusal: Exception
        try:
            if encoded is None:
                encoded = function.encode(x)
        except (NotCoveredError, NotEncodableError) as reason:
            refusal = reason
        requests = []
        for explainer in explainers:
            requests.append(explainer.request(x, encoded))
        if encoded is not None:
            try:
                return requests, evaluate(function, x, encoded, requests)
            except (NotCoveredError, NotEncodableError) as reason:
                refusal = reason
        return requests, ask_the_model(function, x, requests, y_pred, refusal)
    show_row(function, x)
    requests = [explainer.request(x, None) for explainer in explainers]
    return requests, RowByRow(function, x, y_pred).evaluate(_rows(requests))


def ask_the_model(
    function: FastFunction, x: Features, requests: Sequence[Request | str], y_pred: Prediction, refusal: Exception
) -> list[Predictions]:
    """Return the model's own predictions where its fast path refused.

    Raises
    ------
    ModelRaisedError
        The model raised on `x` itself.
    """
    function.count_refusal(refusal)
    return RowByRow(function.naive, x, y_pred).evaluate(_rows(requests))


def _rows(requests: Sequence[Request | str]) -> list[list[dict[Any, Any]]]:
    return [[] if isinstance(request, str) else request.rows() for request in requests] or [[]]


def evaluate(
    function: FastFunction, x: Features, encoded: Encoded, requests: Sequence[Request | str]
) -> list[Predictions]:
    """Predict `x` and each request on the fast path, as a single batch.

    Without a request there is one prediction, that for `x`.

    Raises
    ------
    NotCoveredError, NotEncodableError
        The model itself is to be asked.
    """
    schema, row = encoded
    n_rows = 1
    for request in requests:
        if not isinstance(request, str):
            n_rows += request.n_rows
    if n_rows * len(row) > _LARGE:
        return _evaluate_in_slices(function, x, encoded, requests)
    X = function.room(n_rows, len(row))
    X[0] = row
    starts, start = [], 1
    for request in requests:
        starts.append(start)
        if not isinstance(request, str):
            request.fill(X, start, schema)
            start += request.n_rows
    P = function.predict(X)
    own = function.first(P, x)
    return [EvaluatedPredictions(own, P, start, function) for start in starts or (1,)]


def _evaluate_in_slices(
    function: FastFunction, x: Features, encoded: Encoded, requests: Sequence[Request | str]
) -> list[Predictions]:
    """Evaluate wide rows in slices: 1000 features would take 80 MB at once."""
    schema, row = encoded
    own: Prediction = None
    answers: list[Predictions] = []
    for request in requests:
        n_parts = 0 if isinstance(request, str) else request.n_parts
        of_part = 0 if isinstance(request, str) or not n_parts else request.n_rows // n_parts
        size = max(1, _LARGE // (len(row) * max(of_part, 1)))
        found: list[Array] = []
        for first in range(0, max(n_parts, 1), size):
            stop = min(first + size, n_parts)
            X = function.room(1 + (stop - first) * of_part, len(row))
            X[0] = row
            if not isinstance(request, str):
                request.fill(X, 1, schema, first, stop)
            P = function.predict(X)
            if not answers and not found:
                own = function.first(P, x)
            found.append(P[min(len(found), 1) :].copy())  # row 0 once
        answers.append(EvaluatedPredictions(own, np.concatenate(found), 1, function))
    return answers


class RowByRow:
    """The model itself, asked for an observation and explainers' rows."""

    def __init__(self, function: ModelFunction, x: Features, y_pred: Prediction) -> None:
        self._function, self._x, self._y_pred = function, x, y_pred

    def evaluate(self, rows: list[list[dict[Any, Any]]]) -> list[Predictions]:
        """Return the predictions for the observation and each explainer's rows.

        Raises
        ------
        ModelRaisedError
            The model raised on the observation itself.
        """
        if hasattr(self._function, "many"):
            try:
                return self._evaluate_at_once(rows)
            except ModelRaisedError:
                pass  # on some of the rows: the other explainers' are evaluated again
        if self._y_pred is None:
            self._y_pred = self._predict([self._x])[0]
        return [self._evaluate_alone(of_one) for of_one in rows]

    def _evaluate_at_once(self, rows: list[list[dict[Any, Any]]]) -> list[Predictions]:
        own = [self._x] if self._y_pred is None else []
        found = self._predict([*own, *chain.from_iterable(rows)])
        y_pred, start = found[0] if own else self._y_pred, len(own)
        answers: list[Predictions] = []
        for of_one in rows:
            answers.append(GivenPredictions([y_pred, *found[start : start + len(of_one)]]))
            start += len(of_one)
        return answers

    def _evaluate_alone(self, rows: list[dict[Any, Any]]) -> Predictions:
        own = self._y_pred
        if not is_usable(own):  # there is nothing to compare the others with
            return GivenPredictions([own, *[None] * len(rows)])
        try:
            return GivenPredictions([own, *self._predict(rows)])
        except ModelRaisedError as raised:
            return GivenPredictions([own], error=raised.error)

    def _predict(self, rows: Sequence[Features]) -> list[Prediction]:
        try:
            return predict_rows(self._function, rows)
        except ExplainerError:
            raise
        except Exception as error:
            raise ModelRaisedError(error) from error
