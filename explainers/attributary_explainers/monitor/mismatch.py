"""Comparison of logged predictions with the explained model's."""

from __future__ import annotations

import math
from typing import Any, Self

from attributary_topics import InvalidRecordError

from ..errors import ProbabilityError
from ..predictions import check_probabilities, label_of
from ..smoothing.means import SmoothedMean

TOLERANCE = 0.01
"""Two numbers agree that differ by less than this share of the spread of those that were logged."""
_ROUNDED = 0.01
"""Logged probabilities that sum to 1 within this have been rounded, and are divided by their sum."""


def as_output(y_pred: Any, y: Any, output: str) -> Any:
    """Return a logged prediction in the form in which the model's own come.

    It is the form that the loss reads. A number as the prediction of a classifier is the probability of 1 or true,
    where the label `y` is one of those. InvalidRecordError: `wrong_prediction`.
    """
    if output == "number":
        if isinstance(y_pred, (int, float)):
            return float(y_pred)
        raise InvalidRecordError("wrong_prediction", "y_pred", "a number, as the model predicts", y_pred)
    if isinstance(y_pred, dict):
        found = {_class_like(name, y): float(p) for name, p in y_pred.items()}
        total = sum(found.values())
        if 0.0 < abs(total - 1.0) <= _ROUNDED:
            found = {name: p / total for name, p in found.items()}
        try:
            check_probabilities(found)
        except ProbabilityError:
            expected = "class to probability, none below 0, which sum to 1"
            raise InvalidRecordError("wrong_prediction", "y_pred", expected, y_pred) from None
        return found
    if type(y_pred) is type(y) and not isinstance(y_pred, float):
        return {y_pred: 1.0}
    if isinstance(y_pred, (int, float)) and isinstance(y, (bool, int)) and 0 <= y_pred <= 1:
        positive, negative = (True, False) if isinstance(y, bool) else (1, 0)
        return {positive: float(y_pred), negative: 1.0 - float(y_pred)}
    expected = "a class, class to probability, or the probability of 1 or true, as the labels are"
    raise InvalidRecordError("wrong_prediction", "y_pred", expected, y_pred)


def _class_like(name: str, y: Any) -> Any:
    """Return a class, which JSON has as text, in the type of the labels."""
    if isinstance(y, bool):
        return {"true": True, "false": False, "True": True, "False": False, "1": True, "0": False}.get(name, name)
    if isinstance(y, int):
        try:
            return int(name)
        except ValueError:
            return name
    return name


def _in_type_of(own: Any, logged: Any) -> Any:
    """Return a logged class in the model's type, as true from "true" or 1."""
    if isinstance(logged, str):
        return _class_like(logged, own)
    if type(own) is bool and logged in (0, 1):
        return bool(logged)
    return int(logged) if type(own) is int and type(logged) is bool else logged


class Mismatch:
    """Smoothed share of logged predictions that differ from the model's.

    Classes differ where they are not the same, numbers where they are further apart than `TOLERANCE` of the spread of
    the logged ones.
    """

    def __init__(self, alpha: float) -> None:
        self.share, self._mean, self._square = (SmoothedMean(alpha) for _ in range(3))

    @property
    def value(self) -> float | None:
        """The share of observations, smoothed; None before the first."""
        return self.share.value

    def update(self, logged: Any, own: Any) -> None:
        """Take in the two predictions of an observation."""
        other = label_of(own)
        if isinstance(own, dict) and isinstance(logged, float):
            return  # the probability of a class that only the label names
        one = _in_type_of(other, label_of(logged))
        if type(one) is bool or type(other) is bool or not _are_numbers(one, other) or isinstance(own, dict):
            self.share.update(float(str(one) != str(other)))
            return
        self._mean.update(float(one))
        self._square.update(float(one) ** 2)
        mean, square = self._mean.value or 0.0, self._square.value or 0.0
        spread = math.sqrt(max(square - mean**2, 0.0))
        self.share.update(float(abs(one - other) > TOLERANCE * max(spread, 1e-12 * abs(one))))

    def snapshot(self) -> dict[str, Any] | None:
        """Return plain data to restore from; None where nothing was logged."""
        if self.share.value is None:
            return None
        return {name: mean.snapshot() for name, mean in vars(self).items()}

    @classmethod
    def from_snapshot(cls, alpha: float, snapshot: dict[str, Any] | None) -> Self:
        """Return the snapshot's share; a new share if empty or `alpha` differs."""
        known = cls(alpha)
        if snapshot is not None and snapshot["share"]["weights"]["alpha"] == alpha:
            for name in vars(known):
                setattr(known, name, SmoothedMean.from_snapshot(snapshot[name]))
        return known


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, (int, float)) for value in values)
