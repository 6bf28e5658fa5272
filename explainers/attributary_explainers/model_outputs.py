"""Kinds of models, and from whatever one returns for a row to the prediction that a loss reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from .errors import ModelError
from .losses import most_probable
from .typing import Output, Prediction

Kind: TypeAlias = Literal["classifier", "regressor", "anomaly_detector"]
"""What a model is, where it says so; a callable has no kind."""


def as_probabilities(prediction: Any) -> Prediction:
    """A dict of label to probability; None for no prediction (None, or River's empty dict).

    Raises
    ------
    ModelError
        It is no dict, or a probability in it is no number.
    """
    if prediction is None:
        return None
    if not isinstance(prediction, dict):
        raise ModelError(f"expected the model to predict a dict of probabilities, got {prediction!r}")
    for probability in prediction.values():
        if not isinstance(probability, float) and not isinstance(probability, Real):  # the first is much faster
            raise ModelError(f"expected the model to predict a number as each probability, got {prediction!r}")
    return prediction or None


def as_label(prediction: Any) -> Prediction:
    """`{label: 1.0}`. Any hashable is a label but None, which is no prediction; of probabilities the most probable.

    Raises
    ------
    ModelError
        It cannot be a label, because it is not hashable.
    """
    if isinstance(prediction, dict):
        probabilities = as_probabilities(prediction)
        return {most_probable(probabilities): 1.0} if isinstance(probabilities, dict) else None
    label = _builtin(prediction)
    if label is None:
        return None
    try:
        return {label: 1.0}
    except TypeError:
        raise ModelError(
            f"expected the model to predict a label, which is hashable (a string, number or tuple), got {prediction!r}"
        ) from None


def as_number(prediction: Any) -> Prediction:
    """A float; None for no prediction.

    Raises
    ------
    ModelError
        It is no number. The string of a number is none.
    """
    if prediction is None or type(prediction) is float:
        return prediction
    try:
        if not isinstance(prediction, (str, bytes)):
            return float(_builtin(prediction))
    except (TypeError, ValueError, OverflowError):
        pass
    raise ModelError(f"expected the model to predict a number, got {prediction!r}")


def as_any(prediction: Any) -> Prediction:
    """Probabilities where the model returns a dict, else a number."""
    return as_probabilities(prediction) if isinstance(prediction, dict) else as_number(prediction)


def as_output(output: Output) -> Callable[[Any], Prediction]:
    """The conversion for the output that a loss reads."""
    return _CONVERSIONS[output]


def is_usable(prediction: Prediction) -> bool:
    """Whether a prediction can enter a loss: there is one, and it is finite."""
    if prediction is None:
        return False
    if isinstance(prediction, dict):
        return bool(prediction) and all(map(math.isfinite, prediction.values()))
    return math.isfinite(prediction)


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
