"""Columns of categories as the numbers that ordinal encoders give them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...evaluation.evaluator import NotCoveredError
from ...evaluation.schema import NUMBERS, Schema
from ...typing import Array
from .columns import Number


class OrdinalColumns:
    """Makes the columns that ordinal encoders make of categories; they come behind those of the rows.

    Parameters
    ----------
    encoded
        The columns, each with its encoder.
    schema
        The schema of the rows.
    """

    def __init__(self, encoded: Iterable[Number], schema: Schema) -> None:
        self._encoded = list(encoded)
        self._schema = schema
        self._tables: list[Array] = [np.empty(0)] * len(self._encoded)
        self._seen: list[tuple[int, int]] = [(-1, -1)] * len(self._encoded)

    def behind(self, X: Array) -> Array:
        """Return rows with these columns behind their own.

        Raises
        ------
        NotCoveredError
            The encoder gives a category no number.
        """
        d = len(self._schema)
        whole = np.empty((len(X), d + len(self._encoded)))
        whole[:, :d] = X
        for q, column in enumerate(self._encoded):
            codes = X[:, column.source]
            there = codes == codes
            numbers = self._table(q)[codes[there].astype(np.int64)]
            if np.isnan(numbers).any():
                raise NotCoveredError("a category without a number")
            whole[:, d + q] = np.nan
            whole[there, d + q] = numbers
        return whole

    def _table(self, q: int) -> Array:
        """Return the number of each category, by the category's code; NaN where it has none."""
        column = self._encoded[q]
        assert column.encoder is not None
        encoder, name = column.encoder
        known, values = encoder.values.get(name, {}), self._schema.values(column.source)
        seen = len(values), len(known)
        # What is learnt stays; what is given may be changed.
        if seen != self._seen[q] or encoder.categories is not None:
            found = [known.get(value, encoder.unknown_value) for value in values]
            numbers = [number if type(number) in NUMBERS else np.nan for number in found]
            self._tables[q], self._seen[q] = np.array(numbers, dtype=np.float64), seen
        return self._tables[q]
