"""How far two models' predictions are from each other (Change, equations 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .losses import most_probable
from .models import is_usable, predict_rows
from .typing import Features, ModelFunction, Output, Prediction
from .validation import check_choice


@dataclass(frozen=True)
class Distance:
    """A distance between two predictions, by name, with the model output that it reads."""

    name: str
    output: Output
    function: Callable[[Any, Any], float]

    def __call__(self, a: Prediction, b: Prediction) -> float:
        """Distance between two usable predictions of the same kind."""
        return self.function(a, b)


def as_distance(name: str) -> Distance:
    """`label` (1 where labels differ), `probability` (half the L1 distance, in [0, 1]) or `number`."""
    return _DISTANCES[check_choice("distance", name, _DISTANCES)]


def expected_discrepancy(
    reference: ModelFunction, current: ModelFunction, xs: Sequence[Features], distance: Distance
) -> tuple[float, int]:
    """Mean distance between two models over `xs`, and the number of rows in which both had a prediction.

    A mean over no row is 0: models that predict nothing do not differ.
    """
    total, n = 0.0, 0
    rows = list(xs)
    for a, b in zip(predict_rows(reference, rows), predict_rows(current, rows), strict=True):
        if is_usable(a) and is_usable(b):
            total += distance(a, b)
            n += 1
    return (total / n if n else 0.0), n


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
