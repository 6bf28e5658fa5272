"""Kinds of models, and the form in which losses read predictions."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from .core.probabilities import are_finite, are_probabilities
from .core.probabilities import most_probable as most_probable
from .errors import ModelError, ProbabilityError
from .ordering import sort_key
from .typing import Features, ModelFunction, Output, Prediction

Kind: TypeAlias = Literal["classifier", "regressor", "anomaly_detector"]
"""What a model is, where it says so; a callable has no kind."""


def as_probabilities(prediction: Any) -> Prediction:
    """Return a dict of label to probability; None for no prediction.

    No prediction is None, or River's empty dict. ModelError: it is no dict, or a probability in it is no number, or see
    `check_probabilities`.
    """
    if prediction is None:
        return None
    if not isinstance(prediction, dict):
        raise ModelError(
            f"expected the model to predict a dict of probabilities, got {prediction!r}: of numbers the losses are "
            "squared and absolute, of labels expected_zero_one and zero_one (the key `loss`)"
        )
    _check_numbers(prediction)
    check_probabilities(prediction)
    return prediction or None


def _check_numbers(prediction: dict[Any, Any]) -> None:
    for probability in prediction.values():
        if not isinstance(probability, float) and not isinstance(probability, Real):  # the first is much faster
            raise ModelError(f"expected the model to predict a number as each probability, got {prediction!r}")


def check_probabilities(prediction: Any) -> None:
    """Refuse a dict of improper probabilities; anything else passes.

    So do an empty one, and one with NaN or infinity, which are no prediction. ProbabilityError: one is below 0, or
    their sum is not 1, by more than 1e-6.

    Examples
    --------
    >>> check_probabilities({"no": 0.25, "yes": 0.75})
    >>> check_probabilities({"no": 25, "yes": 75})
    Traceback (most recent call last):
    attributary_explainers.errors.ProbabilityError: the model's probabilities sum to 100, not to 1: divide them by \
their sum before the model returns them
    """
    if not isinstance(prediction, dict) or not prediction or are_probabilities(prediction):
        return
    if (least := min(prediction.values())) < 0.0:
        raise ProbabilityError(
            f"the model predicts a probability of {least:.7g}, not one from 0 to 1: let it return probabilities, which "
            "sum to 1"
        )
    raise ProbabilityError(
        f"the model's probabilities sum to {sum(prediction.values()):.7g}, not to 1: divide them by their sum before "
        "the model returns them"
    )


def as_label(prediction: Any) -> Prediction:
    """Return `{label: 1.0}`; for a dict of numbers, the largest's label.

    Any hashable is a label but None: no prediction. ModelError: it is not hashable.
    """
    if isinstance(prediction, dict):
        _check_numbers(prediction)
        return {most_probable(prediction): 1.0} if prediction else None
    label = _builtin(prediction)
    if label is None:
        return None
    try:
        return {label: 1.0}
    except TypeError:
        raise ModelError(
            f"expected the model to predict a label, which is hashable (a string, number or tuple), got {prediction!r}"
        ) from None


def label_of(prediction: Prediction) -> Any:
    """Return the most probable class of a prediction, or its number."""
    return most_probable(prediction) if isinstance(prediction, dict) else prediction


def as_number(prediction: Any) -> Prediction:
    """Return a prediction as a float; None for no prediction.

    ModelError: it is no number. The string of a number is none.
    """
    if prediction is None or type(prediction) is float:
        return prediction
    try:
        if not isinstance(prediction, (str, bytes)):
            return float(_builtin(prediction))
    except (TypeError, ValueError, OverflowError):
        pass
    raise ModelError(
        f"expected the model to predict a number, got {prediction!r}: of probabilities the losses are brier and "
        "cross_entropy, of labels expected_zero_one and zero_one (the key `loss`)"
    )


def as_any(prediction: Any) -> Prediction:
    """Return probabilities where the model returns a dict, else a number."""
    return as_probabilities(prediction) if isinstance(prediction, dict) else as_number(prediction)


def as_output(output: Output) -> Callable[[Any], Prediction]:
    """Return the conversion for the output that a loss reads."""
    return _CONVERSIONS[output]


def is_usable(prediction: Prediction) -> bool:
    """Return whether a loss can read a prediction: present and finite."""
    if prediction is None:
        return False
    if isinstance(prediction, dict):
        return bool(prediction) and are_finite(prediction)
    return math.isfinite(prediction)


class Predictions(abc.ABC):
    """A model's predictions for an observation and for rows made of it.

    `GivenPredictions` has what the model itself returned, row by row; a fast path gives the array.
    """

    own: Prediction
    """The prediction for the observation itself, which is row 0."""
    start: int
    """The rows made of it begin here; before them may be those of others."""
    array: npt.NDArray[np.float64]
    """Shape (rows, classes): probabilities, 0 for a class that a row does not name; or (rows, 1): numbers.

    A row that is no prediction has NaN.
    """
    labels: tuple[Any, ...] | None
    """The class of each column; None for numbers."""
    error: Exception | None = None
    """What the model raised on the rows made of the observation, which are then not there."""

    @abc.abstractmethod
    def column(self, label: Any) -> int:
        """Return the column of a class; -1 for a class that no row names."""

    @abc.abstractmethod
    def rows(self, n: int) -> list[Prediction]:
        """Return `n` predictions from `start` on, as a user's loss reads them."""


class GivenPredictions(Predictions):
    """Holds predictions as a model has returned them.

    The array is made where a loss reads it. The first is that for the observation itself. One of another kind than the
    first that there is (a number among probabilities) counts as no prediction.
    """

    def __init__(self, predictions: list[Prediction], start: int = 1, error: Exception | None = None) -> None:
        self._given, self.start, self.error = predictions, start, error
        self.own = predictions[0] if predictions else None

    def rows(self, n: int) -> list[Prediction]:
        """Return the predictions for `n` rows from `start` on, as given."""
        return self._given[self.start : self.start + n]

    def column(self, label: Any) -> int:
        """Return the column of a class; -1 for a class that no row names."""
        return self._columns.get(label, -1)

    @cached_property
    def labels(self) -> tuple[Any, ...] | None:  # type: ignore[override]  # made once it is read
        """All classes that rows name, by `sort_key`; None for numbers."""
        first = next((prediction for prediction in self._given if prediction is not None), None)
        if not isinstance(first, dict):
            return None
        dicts = [prediction for prediction in self._given if isinstance(prediction, dict)]
        return tuple(sorted(dict.fromkeys(label for prediction in dicts for label in prediction), key=sort_key))

    @cached_property
    def _columns(self) -> dict[Any, int]:
        return {label: column for column, label in enumerate(self.labels or ())}

    @cached_property
    def array(self) -> npt.NDArray[np.float64]:  # type: ignore[override]  # made once it is read
        """The predictions as an array, see `Predictions`."""
        labels, nan = self.labels, math.nan
        rows: list[list[Any]]
        if labels is None:
            rows = [[nan if p is None or isinstance(p, dict) else p] for p in self._given]
        else:
            none = [nan] * len(labels)
            rows = [[p.get(label, 0.0) for label in labels] if isinstance(p, dict) else none for p in self._given]
        return np.array(rows, dtype=np.float64).reshape(len(rows), 1 if labels is None else len(labels))


def predict_rows(function: ModelFunction, rows: Sequence[Features]) -> list[Prediction]:
    """Return the predictions for rows by a function of `model_function`.

    They come of one call where it takes many, else one by one.
    """
    many: Callable[[Sequence[Features]], list[Prediction]] | None = getattr(function, "many", None)
    if many is None:
        return [function(row) for row in rows]
    return many(rows) if rows else []


def show_row(function: ModelFunction, x: Features) -> None:
    """Show the function an observation before any row made of several.

    An estimator that was fitted without names takes its order of features from the first row. An explainer that is
    given the prediction for `x` does not ask for it: the first row would be a mixed one, whose order may differ.
    """
    see: Callable[[Features], None] | None = getattr(function, "see", None)
    if see is not None:
        see(x)


def _builtin(value: Any) -> Any:
    # np.generic too: labels end up in snapshots and events, which hold plain data. An array with one element is what
    # a model gives that was asked about one row.
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size == 1):
        return value.item()
    return value


_CONVERSIONS: dict[Output, Callable[[Any], Prediction]] = {
    "probabilities": as_probabilities,
    "label": as_label,
    "number": as_number,
    "any": as_any,
}
