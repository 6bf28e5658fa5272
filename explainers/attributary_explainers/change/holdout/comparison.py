"""Compares what frozen models say to observations with what another model said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ...losses.losses import Loss
from ...predictions import is_usable, most_probable, predict_rows
from ...typing import Array, Features, ModelFunction, Prediction
from ...validation import LARGEST
from ..discrepancy import Distance
from .rows import Row, column_of

Comparison: TypeAlias = tuple[list[float], list[float]]
"""By row the loss of the frozen model, and how far its prediction is from the other one; NaN where one has none."""


def predictions(function: ModelFunction, rows: Sequence[Features]) -> list[Prediction]:
    """Return what a frozen model predicts; None for a row on which it raises, as one that lacks a feature may."""
    try:
        return predict_rows(function, rows)
    except Exception:  # noqa: BLE001 - what an old model raises is no fault of the present one or of the observation
        return [None] if len(rows) == 1 else [predictions(function, [row])[0] for row in rows]


def compare(
    function: ModelFunction,
    rows: Sequence[Row],
    loss: Loss,
    distance: Distance,
    others: Sequence[Prediction] | None = None,
) -> Comparison:
    """Compare a frozen model's predictions with the targets and with those of another model.

    Parameters
    ----------
    others
        By row the other model's prediction; None for that of the row.
    """
    losses, distances = [], []
    others = [row.prediction for row in rows] if others is None else others
    for row, other, prediction in zip(rows, others, predictions(function, [row.x for row in rows]), strict=True):
        if not (is_usable(prediction) and is_usable(other)):
            losses.append(math.nan)
            distances.append(math.nan)
            continue
        if row.is_label and isinstance(prediction, dict):
            prediction = {most_probable(prediction): 1.0}
        distances.append(min(distance(prediction, other), LARGEST))
        losses.append(loss(row.y, prediction))
    return losses, distances


class RecentLosses:
    """The losses of a frozen model on the observations that it was asked about last.

    Parameters
    ----------
    function
        Of the model.
    loss, distance
        As for `compare`.
    """

    def __init__(self, function: ModelFunction, loss: Loss, distance: Distance) -> None:
        self._function, self._loss, self._distance = function, loss, distance
        self._recent: dict[int, float] = {}
        """By number of the observation."""

    def of(self, rows: Sequence[Row], latest: int | None = None) -> Array:
        """Return the losses on observations, NaN without a prediction; only about new ones the model is asked.

        Parameters
        ----------
        latest
            From 0 on; only so many of the rows count, the last ones. None: all.
        """
        first = 0 if latest is None else max(len(rows) - latest, 0)
        numbers, recent = column_of(rows, "n")[first:], self._recent
        if new := [i for i, n in enumerate(numbers, start=first) if n not in recent]:
            losses, _ = compare(self._function, [rows[i] for i in new], self._loss, self._distance)
            recent.update(zip((numbers[i - first] for i in new), losses, strict=True))
        self._recent = {n: recent[n] for n in numbers}
        return np.array(list(self._recent.values()), dtype=np.float64)
