"""Observations that wait to be taken into the curves together, which takes less time than one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import compress
from typing import Any, NamedTuple

from ...typing import Features, Prediction
from .asking import as_float
from .curve import Curve

TOGETHER = 64
"""So many observations wait at most."""

_PLAIN = frozenset((float, int, str, bool, type(None)))


class Together(NamedTuple):
    """Holds observations that enter curves, the values of each feature, None for none, and how many enter no curve."""

    rows: list[dict[Any, Any]]
    columns: dict[Any, list[Any]]
    n_skipped: int


class Waiting:
    """Keeps the last observations and their predictions until they are taken in."""

    def __init__(self) -> None:
        self._rows: list[dict[Any, Any]] = []
        self._predictions: list[Prediction] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, x: Features, y_pred: Prediction) -> None:
        """Keep copies of an observation and of its prediction."""
        self._rows.append(dict(x))
        self._predictions.append(dict(y_pred) if isinstance(y_pred, dict) else y_pred)

    def end(self, curves: Mapping[Any, Curve], n_missing: dict[Any, int], label: Any) -> Together:
        """Return the observations, which wait no longer, and count what is missing for the curves, which are all.

        Parameters
        ----------
        label
            See `as_float`.
        """
        rows, predictions = self._rows, self._predictions
        self._rows, self._predictions = [], []
        are_usable = [not math.isnan(as_float(y_pred, label)) for y_pred in predictions]
        columns = {name: curves[name].values_of(rows, name) for name in n_missing}
        if columns and all(are_usable) and not any(None in column for column in columns.values()):
            return Together(rows, columns, 0)
        for name, column in columns.items():
            n_missing[name] += sum(
                value is None or not is_usable for value, is_usable in zip(column, are_usable, strict=True)
            )
        enter = [
            is_usable and any(column[i] is not None for column in columns.values())
            for i, is_usable in enumerate(are_usable)
        ]
        columns = {name: list(compress(column, enter)) for name, column in columns.items()}
        return Together(list(compress(rows, enter)), columns, len(enter) - sum(enter))


def has_plain_values(x: Features) -> bool:
    """Return whether each value is one that can wait: taking it in raises no error, and nobody can change it."""
    return _PLAIN.issuperset(map(type, x.values()))
