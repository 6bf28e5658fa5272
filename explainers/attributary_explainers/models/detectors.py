"""Anomaly detectors that score many rows in a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..predictions import as_output
from ..typing import Features, Prediction
from .batch import per_row, table
from .frames import Frames, pandas_or_none


class DetectorFunction:
    """A `ModelFunction` with `many`, of a detector with `score_many(X)`.

    `score_many` takes a pandas data frame, as in River's methods for mini-batches and deep-river's detectors. A single
    row, and rows with different features, are scored by `score_one`.

    Parameters
    ----------
    score_one
        The detector's score of one row.
    score_many
        Data frame to as many scores.
    """

    def __init__(self, score_one: Callable[[Any], Any], score_many: Callable[[Any], Any]) -> None:
        self._score_one, self._score_many, self._convert = score_one, score_many, as_output("number")

    def __call__(self, x: Features, /) -> Prediction:
        """Return the score of a row."""
        return self._convert(self._score_one(x))

    def many(self, rows: Sequence[Features]) -> list[Prediction]:
        """Return the scores of a batch of rows."""
        names = list(rows[0])
        pandas = pandas_or_none()
        if pandas is None or any(row.keys() != rows[0].keys() for row in rows):
            return [self(row) for row in rows]
        X = Frames(pandas).make(table(rows, names), names)
        return list(map(self._convert, per_row(self._score_many(X), len(rows))))
