"""Predictions and losses of frozen models, compared with another model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...losses.losses import Loss
from ...predictions import is_usable, most_probable, predict_rows
from ...typing import Array, Features, ModelFunction, Prediction
from ...validation import LARGEST
from ..discrepancy import Distance
from .rows import Row, column_of


def predictions(function: ModelFunction, rows: Sequence[Features]) -> list[Prediction]:
    """Return a frozen model's predictions; None for rows it raises on."""
    try:
        return predict_rows(function, rows)
    except Exception:  # noqa: BLE001 - what an old model raises is no fault of the present one or of the observation
        return [None] if len(rows) == 1 else [predictions(function, [row])[0] for row in rows]


def usable_predictions(function: ModelFunction, xs: Sequence[Features], are_labels: Sequence[bool]) -> list[Prediction]:
    """Return a frozen model's predictions or labels; None if unusable."""
    found = [p if is_usable(p) else None for p in predictions(function, xs)]
    if any(are_labels):
        pairs = zip(found, are_labels, strict=True)
        return [{most_probable(p): 1.0} if of and isinstance(p, dict) else p for p, of in pairs]
    return found


def losses_of(predicted: Sequence[Prediction], ys: Sequence[Any], loss: Loss) -> list[float]:
    """Return the losses of predictions; NaN where there is none."""
    return [math.nan if p is None else loss(y, p) for p, y in zip(predicted, ys, strict=True)]


def distances_between(predicted: Sequence[Prediction], others: Sequence[Prediction], distance: Distance) -> list[float]:
    """Return how far predictions are from others; NaN where there is none."""
    pairs = zip(predicted, others, strict=True)
    return [math.nan if p is None else min(distance(p, other), LARGEST) for p, other in pairs]


class RecentLosses:
    """A frozen model's losses on the observations it was last asked about.

    Parameters
    ----------
    function
        Of the model.
    loss
        Loss of its predictions.
    """

    def __init__(self, function: ModelFunction, loss: Loss) -> None:
        self._function, self._loss = function, loss
        self._recent: dict[int, float] = {}
        """By number of the observation."""

    def of(self, rows: Sequence[Row], latest: int | None = None) -> Array:
        """Return the losses, NaN without a prediction; ask only about new rows.

        Parameters
        ----------
        latest
            Valid range >= 0; only so many of the last rows count. None: all.
        """
        first = 0 if latest is None else max(len(rows) - latest, 0)
        numbers, recent = column_of(rows, "n")[first:], self._recent
        known = next((i for i, n in enumerate(numbers) if n not in recent), len(numbers))
        if known < len(numbers):  # what comes after it is new, too
            xs, ys, are_labels = (column_of(rows, name, first + known) for name in ("x", "y", "is_label"))
            losses = losses_of(usable_predictions(self._function, xs, are_labels), ys, self._loss)
            recent.update(zip(numbers[known:], losses, strict=True))
        self._recent = {n: recent[n] for n in numbers}
        return np.array(list(self._recent.values()), dtype=np.float64)
