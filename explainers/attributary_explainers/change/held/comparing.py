"""Asks a frozen model about observations, and compares what it says with what another model said."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import numpy as np

from ...evaluation.evaluator import NotCoveredError
from ...evaluation.function import FastFunction
from ...evaluation.schema import LARGEST_EXACT, NotEncodableError, Schema
from ...keeping.alike import Alike, Numbers
from ...losses.kernels import ABSOLUTE, BRIER
from ...losses.losses import Loss
from ...predictions import is_usable, most_probable, predict_rows
from ...typing import Array, Ints, ModelFunction, Prediction
from ...validation import LARGEST
from ..discrepancy import Distance

Known: TypeAlias = tuple[dict[Any, Any], Prediction]
"""Features and prediction of a row, as they are before they are kept."""

Compared: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""By row the loss of the frozen model, and how far its prediction is from the other one; NaN where one has none."""

_NOWHERE: Ints = np.empty(0, np.int64)


@dataclass(slots=True)
class Batch:
    """Holds observations that a frozen model is asked about, at least one.

    Attributes
    ----------
    x, said
        Their features, where these are the same numbers, and what the other model said, where it is alike:
        probabilities, or floats.
    y, are_labels
        By row the target, and whether what the other model said came as a label.
    known
        Gives features and predictions row by row.
    """

    x: Numbers | None
    said: Alike | Sequence[float] | None
    y: Sequence[Any]
    are_labels: Sequence[int]
    known: Callable[[], Sequence[Known]]


class FrozenFunction:
    """Asks a model that does not change about many observations at once.

    Parameters
    ----------
    function
        From `model_function`.
    """

    def __init__(self, function: ModelFunction) -> None:
        self.function = function
        self._fitting: tuple[Schema, tuple[Any, ...]] | None = None
        """A schema, and the features of rows that it is known to be that of."""
        self._order = _NOWHERE
        """By column of the schema, that of the feature."""

    @property
    def takes_many(self) -> bool:
        """Whether many are predicted in one call."""
        return hasattr(self.function, "many")

    @property
    def is_fast(self) -> bool:
        """Whether the model has a fast path."""
        return type(self.function) is FastFunction

    @overload
    def compare(self, batch: Batch, loss: Loss, distance: Distance) -> Compared: ...
    @overload
    def compare(self, batch: Batch, loss: Loss, distance: Distance, *, at_once: bool) -> Compared | None: ...
    def compare(self, batch: Batch, loss: Loss, distance: Distance, *, at_once: bool = False) -> Compared | None:
        """Return how the model's predictions compare with the targets and with the other ones.

        Parameters
        ----------
        at_once
            Whether it is None where that would need the rows one by one: what a model that is asked itself says may
            differ from its fast path in the last bit, so that it shows which rows are asked about together.
        """
        function, X = self.function, None if batch.x is None else self._encoded(batch.x)
        if X is None:
            if at_once:
                return None
            known = batch.known()
            return _one_by_one(batch, known, predictions(function, [x for x, _ in known]), loss, distance)
        assert isinstance(function, FastFunction)
        try:
            P = function.predict(X)
        except Exception as error:  # noqa: BLE001 - see `predictions`
            if at_once:
                return None
            known = batch.known()
            return _one_by_one(batch, known, _without_array(function, error, [x for x, _ in known]), loss, distance)
        found = _compared_at_once(P, function.labels, batch, loss, distance)
        return _one_by_one(batch, batch.known(), function.predictions(P), loss, distance) if found is None else found

    def _encoded(self, rows: Numbers) -> Array | None:
        """Return rows as the fast path of the model reads them; None where they have to be encoded one by one."""
        function, (names, values) = self.function, rows
        if type(function) is not FastFunction or not (np.abs(values) < LARGEST_EXACT).all():
            return None
        if (function.schema_at_hand, names) != self._fitting:
            try:
                schema = function.open(dict(zip(names, values[0].tolist(), strict=True)))
            except (NotCoveredError, NotEncodableError):
                return None
            if schema.codes or schema.keys != set(names) or not schema.plain >= {float, int}:
                return None
            column = {name: i for i, name in enumerate(names)}
            self._fitting, self._order = (schema, names), np.array([column[name] for name in schema.features])
        return values.take(self._order, axis=1)


def predictions(function: ModelFunction, rows: Sequence[dict[Any, Any]]) -> list[Prediction]:
    """Return what a frozen model predicts; None for a row on which it raises, as one that lacks a feature may."""
    try:
        return predict_rows(function, rows)
    except Exception:  # noqa: BLE001 - what an old model raises is no fault of the present one or of the observation
        return _each(function, rows)


def _each(function: ModelFunction, rows: Sequence[dict[Any, Any]]) -> list[Prediction]:
    return [None] if len(rows) == 1 else [predictions(function, [row])[0] for row in rows]


def _without_array(function: FastFunction, error: Exception, rows: Sequence[dict[Any, Any]]) -> list[Prediction]:
    """Return what `predictions` does where the fast path has refused the rows, or failed."""
    if isinstance(error, NotCoveredError):
        function.count_refusal(error)
        with suppress(Exception):
            return [function.naive(row) for row in rows]
    return _each(function, rows)


def _one_by_one(
    batch: Batch, known: Sequence[Known], predicted: Sequence[Prediction], loss: Loss, distance: Distance
) -> Compared:
    losses, distances = [], []
    for (_, own), y, is_label, prediction in zip(known, batch.y, batch.are_labels, predicted, strict=True):
        if not (is_usable(prediction) and is_usable(own)):
            losses.append(math.nan)
            distances.append(math.nan)
            continue
        if is_label and isinstance(prediction, dict):
            prediction = {most_probable(prediction): 1.0}
        distances.append(min(distance(prediction, own), LARGEST))
        losses.append(loss(y, prediction))
    return losses, distances


def _compared_at_once(
    P: Array, labels: tuple[Any, ...] | None, batch: Batch, loss: Loss, distance: Distance
) -> Compared | None:
    """Return what `_one_by_one` does, to the last bit, of usual numbers and of probabilities of two classes.

    None where these are others: with more classes, the order in which they are added up decides the last bit.
    """
    said = batch.said
    if not isinstance(said, Alike):
        if said is None or loss.code != ABSOLUTE or distance.name != "number" or labels is not None:
            return None
        numbers, ys = P[:, 0].tolist(), batch.y
        if {*map(type, ys)} != {float} or not are_usual([*numbers, *said, *ys]):
            return None
        return (
            [abs(y - number) for number, y in zip(numbers, ys, strict=True)],
            [abs(number - own) for number, own in zip(numbers, said, strict=True)],
        )
    if loss.code != BRIER or distance.name != "label" or labels is None or any(batch.are_labels):
        return None
    own, names = said.floats(), said.layout.names
    if own is None or len(labels) != 2 or len(names) != 2:
        return None
    said_now = P.ravel().tolist()
    if not (are_usual(said_now) and are_usual(own)):
        return None
    losses = brier_of_two(said_now, labels, batch.y)
    if losses is None:
        return None
    # Of equals the first is the most probable.
    differ = [[float(a != b) for b in names] for a in labels]
    pairs = zip(said_now[::2], said_now[1::2], own[::2], own[1::2], strict=True)
    return losses, [differ[a1 > a0][b1 > b0] for a0, a1, b0, b1 in pairs]


def brier_of_two(probabilities: Sequence[float], labels: tuple[Any, ...], ys: Sequence[Any]) -> list[float] | None:
    """Return the Brier loss of probabilities of two classes, row by row; None where a target is neither of them."""
    column, losses = {label: i for i, label in enumerate(labels)}, []
    for first, second, y in zip(probabilities[::2], probabilities[1::2], ys, strict=True):
        place = column.get(y)
        if place is None:
            return None
        right, other = (second, first) if place else (first, second)
        wrong = 1.0 - right
        losses.append(wrong * wrong + other * other)
    return losses


def are_usual(numbers: Sequence[float]) -> bool:
    """Return whether all are numbers whose squares, and differences, are finite and not the largest."""
    return sum(map(abs, numbers)) < 0.5 * LARGEST
