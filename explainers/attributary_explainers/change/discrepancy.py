"""Measures how far predictions differ (Change, equations 3 and 4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidParameterError
from ..predictions import as_number, is_usable, most_probable, predict_rows
from ..typing import Features, ModelFunction, Output, Prediction
from ..validation import LARGEST, check_choice


@dataclass(frozen=True)
class Distance:
    """Measures how far two predictions are apart; it has a name.

    `output` is the model output that it reads.
    """

    name: str
    output: Output
    function: Callable[[Any, Any], float]

    def __call__(self, a: Prediction, b: Prediction) -> float:
        """Return the distance between two usable predictions of the same kind."""
        return self.function(a, b)


def as_distance(name: str) -> Distance:
    """Return a distance: 0/1 `label`, half-L1 `probability` or `number`."""
    return _DISTANCES[check_choice("distance", name, _DISTANCES)]


def distance_for(output: Output, name: str | None = None) -> Distance:
    """Return the distance between predictions of the kind that the loss reads.

    None takes `number` for numbers, and `label` for classes. InvalidParameterError: the distance of that name is not
    known, or reads something else.
    """
    is_number = output == "number"
    if name is None:
        return _DISTANCES["number" if output in ("number", "any") else "label"]
    distance = as_distance(name)
    if output != "any" and (distance.output == "number") != is_number:
        what = (
            "number, because the loss reads numbers"
            if is_number
            else "label or probability, because the loss reads classes"
        )
        raise InvalidParameterError("distance", f"{what} (or left out)", name)
    return distance


def expected_discrepancy(
    reference: ModelFunction, current: ModelFunction, xs: Sequence[Features], distance: Distance
) -> tuple[float, int]:
    """Return the mean distance of two models on `xs`, and its row count.

    Only rows that both models predict count. The mean over no row is 0: models that predict nothing do not differ.
    """
    total, n = 0.0, 0
    rows = list(xs)
    for a, b in zip(predict_rows(reference, rows), predict_rows(current, rows), strict=True):
        if is_usable(a) and is_usable(b):
            total += min(distance(a, b), LARGEST)  # a sum of large ones would be infinite
            n += 1
    return (total / n if n else 0.0), n


def as_prediction(y_pred: Any, output: Output) -> Prediction:
    """Return a model's own prediction in the form that losses read.

    ModelError: a number is read, and it is none.
    """
    if output == "number" and type(y_pred) is not float and not isinstance(y_pred, dict):
        as_number(y_pred)
    if output == "number" or y_pred is None or isinstance(y_pred, dict):
        return y_pred or None if isinstance(y_pred, dict) else y_pred
    return {y_pred: 1.0}


def spread(ys: Sequence[Any], distance: Distance) -> float:
    """Return the mean distance of two different targets; 0 for under two.

    For classes it is the probability that two targets differ, (1 - sum of squared shares) n / (n - 1); for numbers it
    is Gini's mean difference, in O(n log n), without targets that are not finite numbers.

    Examples
    --------
    >>> spread(["a", "a", "b", "b"], as_distance("label")), spread([1.0, 2.0, 4.0], as_distance("number"))
    (0.6666666666666667, 2.0)
    """
    if distance.output != "number":
        n = len(ys)
        counts = Counter(ys).values()
        return 1.0 - sum(c * (c - 1) for c in counts) / (n * (n - 1)) if n > 1 else 0.0
    v = np.array([number for y in ys if math.isfinite(number := _as_float(y))])
    n = len(v)
    if n < 2:
        return 0.0
    unit = float(np.abs(v).max())
    if unit == 0.0:
        return 0.0
    v = np.sort(v / unit)  # a sum of large ones would be infinite
    return float(2.0 * np.dot(2.0 * np.arange(1, n + 1) - n - 1, v) / (n * (n - 1))) * unit


def _as_float(y: Any) -> float:
    try:
        return float(y)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _label(a: dict[Any, float], b: dict[Any, float]) -> float:
    return float(most_probable(a) != most_probable(b))


def _probability(a: dict[Any, float], b: dict[Any, float]) -> float:
    return 0.5 * sum(abs(a.get(label, 0.0) - b.get(label, 0.0)) for label in dict.fromkeys((*a, *b)))


def _number(a: float, b: float) -> float:
    return abs(a - b)


_DISTANCES = {
    "label": Distance("label", "label", _label),
    "probability": Distance("probability", "probabilities", _probability),
    "number": Distance("number", "number", _number),
}
