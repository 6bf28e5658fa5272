"""One observation's questions to a model, answered together: h(x) once, and all rows of all explainers as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..errors import ExplainerError
from ..evaluation.evaluator import NotCoveredError
from ..evaluation.function import FastFunction
from ..evaluation.schema import Encoded, NotEncodableError
from ..imputers.requests import Request
from ..predictions import is_usable, predict_rows, show_row
from ..typing import Array, Features, ModelFunction, Prediction


class ModelRaisedError(Exception):
    """The model raised: the error is about these rows, and is the explainers' to count."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@dataclass(slots=True)
class Answer:
    """To one request.

    Where `array` is there it holds all rows of the observation: h(x) in row 0, those of the request from `start` on;
    `function` gave it, and says what its columns are. Else `predictions` has those of the request; None where there
    are none, because h(x) is no prediction or the model raised `error`.
    """

    y_pred: Prediction
    array: Array | None = None
    function: FastFunction | None = None
    start: int = 0
    predictions: list[Prediction] | None = None
    error: Exception | None = None


class Asking:
    """What is asked of a model for one observation.

    Parameters
    ----------
    function
        From `model_function`.
    x
        The observation.
    y_pred
        The prediction for `x` where the caller has it; the naive path saves one evaluation by it, and a fast one, to
        which it costs nothing, has its own: importance is exactly 0 only where both come from the same path.
    """

    encoded: Encoded | None = None
    """The observation as an array, where there is a fast path for it."""

    def __init__(self, function: ModelFunction, x: Features, y_pred: Prediction = None) -> None:
        self._function, self._x, self._y_pred = function, x, y_pred
        self._reason: Exception | None = None
        if isinstance(function, FastFunction):
            try:
                self.encoded = Encoded(*function.encode(x))
            except (NotCoveredError, NotEncodableError) as reason:
                self._reason = reason
        else:
            show_row(function, x)

    def answer(self, requests: Sequence[Request | None]) -> list[Answer]:
        """Predictions for `x` and for the requests; None asks for that of `x` alone.

        Raises
        ------
        ModelRaisedError
            The model raised on `x` itself.
        """
        function = self._function
        if isinstance(function, FastFunction):
            if self.encoded is not None:
                try:
                    return self._by_array(function, requests, self.encoded)
                except (NotCoveredError, NotEncodableError) as reason:
                    self._reason = reason
            function.count_refusal(self._reason)
            self._function = function.naive  # what has been refused would be refused again
        return self._by_model(requests)

    def _by_array(self, function: FastFunction, requests: Sequence[Request | None], encoded: Encoded) -> list[Answer]:
        starts, total = [], 1
        for request in requests:
            starts.append(total)
            if request is not None:
                total += request.n_rows
        X = function.room(total, len(encoded.row))
        X[0] = encoded.row
        for request, start in zip(requests, starts, strict=True):
            if request is not None:
                request.fill(X, start, encoded.schema)
        P = function.predict(X)
        y_pred = function.first(P, self._x)
        return [Answer(y_pred, P, function, start) for start in starts]

    def _by_model(self, requests: Sequence[Request | None]) -> list[Answer]:
        rows = [[] if request is None else request.rows() for request in requests]
        if hasattr(self._function, "many"):
            try:
                return self._at_once(rows)
            except ModelRaisedError:
                pass  # on some of the rows: the other explainers' are asked for again
        if self._y_pred is None:
            self._y_pred = self._predict([self._x])[0]
        return [self._of_one(of_one) for of_one in rows]

    def _at_once(self, rows: list[list[dict[Any, Any]]]) -> list[Answer]:
        own = [self._x] if self._y_pred is None else []
        found = self._predict([*own, *chain.from_iterable(rows)])
        y_pred = found[0] if own else self._y_pred
        answers, start = [], len(own)
        for of_one in rows:
            answers.append(Answer(y_pred, predictions=found[start : start + len(of_one)]))
            start += len(of_one)
        return answers

    def _of_one(self, rows: list[dict[Any, Any]]) -> Answer:
        if not is_usable(self._y_pred):
            return Answer(self._y_pred)  # nothing to compare the others with
        try:
            return Answer(self._y_pred, predictions=self._predict(rows))
        except ModelRaisedError as raised:
            return Answer(self._y_pred, error=raised.error)

    def _predict(self, rows: Sequence[Features]) -> list[Prediction]:
        try:
            return predict_rows(self._function, rows)
        except ExplainerError:
            raise
        except Exception as error:
            raise ModelRaisedError(error) from error
