"""Measures how far two models' predictions are from each other (Change, equations 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..predictions import is_usable, most_probable, predict_rows
from ..smoothing.means import SmoothedMean
from ..typing import Features, ModelFunction, Output, Prediction, Snapshot
from ..validation import LARGEST, check_choice


@dataclass(frozen=True)
class Distance:
    """Measures the distance between two predictions; has a name, and the model output that it reads."""

    name: str
    output: Output
    function: Callable[[Any, Any], float]

    def __call__(self, a: Prediction, b: Prediction) -> float:
        """Return the distance between two usable predictions of the same kind."""
        return self.function(a, b)


def as_distance(name: str) -> Distance:
    """Return a distance by name: `label` (1 where labels differ), `probability` (half the L1 distance) or `number`."""
    return _DISTANCES[check_choice("distance", name, _DISTANCES)]


def expected_discrepancy(
    reference: ModelFunction, current: ModelFunction, xs: Sequence[Features], distance: Distance
) -> tuple[float, int]:
    """Return the mean distance between two models over `xs`, and the number of rows that both predicted.

    The mean over no row is 0: models that predict nothing do not differ.
    """
    total, n = 0.0, 0
    rows = list(xs)
    for a, b in zip(predict_rows(reference, rows), predict_rows(current, rows), strict=True):
        if is_usable(a) and is_usable(b):
            total += min(distance(a, b), LARGEST)  # a sum of large ones would be infinite
            n += 1
    return (total / n if n else 0.0), n


def as_prediction(y_pred: Any, output: Output) -> Prediction:
    """Return a model's own prediction, of `predict_one` or `predict_proba_one`, in the form that losses read."""
    if output == "number" or y_pred is None or isinstance(y_pred, dict):
        return y_pred or None if isinstance(y_pred, dict) else y_pred
    return {y_pred: 1.0}


class IncrementalDiscrepancy:
    """Smooths the distance between the reference's predictions and those that the current model made in the stream.

    With every observation, D_t = (1 - alpha) D_{t-1} + alpha ||h_r(x_t) - h_t(x_t)||, divided by 1 - (1 - alpha)^n: the
    mean is over the last 2 / alpha observations and the models of that time, so it follows a sudden change with that
    delay; on a model that has stayed as it is, it has the expectation of equation 3 over the inputs that come now.

    Parameters
    ----------
    alpha
        Valid range (0, 1]. Larger follows faster and is noisier.
    batch_size
        Valid range >= 1; the reference does not change, so that many observations can wait for one call of it. The
        value is then late by so many observations at most.

    Source: Change, section 6, names it as future work.
    """

    def __init__(self, reference: ModelFunction, distance: Distance, alpha: float, batch_size: int = 1) -> None:
        self._reference = reference
        self._distance = distance
        self._mean = SmoothedMean(alpha)
        self._batch_size = batch_size
        self._waiting: list[tuple[Features, Prediction]] = []

    @property
    def value(self) -> float | None:
        """The smoothed distance; None before the first."""
        return self._mean.value

    @property
    def n(self) -> int:
        """Number of observations in the smoothed distance."""
        return self._mean.weights.n

    def update(self, x: Features, prediction: Prediction) -> None:
        """Take in what the current model predicted for `x`, which is kept until the reference has been asked."""
        self._waiting.append((x, dict(prediction) if isinstance(prediction, dict) else prediction))
        if len(self._waiting) < self._batch_size:
            return
        waiting, self._waiting = self._waiting, []
        referred = predict_rows(self._reference, [row for row, _ in waiting])
        for (_, current), then in zip(waiting, referred, strict=True):
            if is_usable(then):
                # An infinite one would stay in the mean for ever; a large one says as much.
                self._mean.update(min(self._distance(then, current), LARGEST))

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"mean": self._mean.snapshot(), "waiting": _copied(self._waiting)}

    def restore(self, snapshot: Snapshot) -> None:
        """Take back what `snapshot` gave."""
        self._mean = SmoothedMean.from_snapshot(snapshot["mean"])
        self._waiting = _copied(snapshot["waiting"])


def _copied(waiting: Sequence[tuple[Features, Prediction]]) -> list[tuple[Features, Prediction]]:
    return [(dict(x), dict(p) if isinstance(p, dict) else p) for x, p in waiting]


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
