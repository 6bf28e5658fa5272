"""One-hot columns as numbers, for models that are not linear."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...evaluation.evaluator import NotCoveredError
from ...evaluation.schema import Schema
from ...typing import Array, Ints

_NEW, _NONE = -2, -1  # a category that the encoder has not learnt; one that it is not to know


class OneHotColumns:
    """The columns of one-hot encoders as their states are now: one for each category that they have learnt.

    A row with another category has a column more, or another one dropped: it is left to the model.

    Parameters
    ----------
    encoded
        The encoded columns (`OneHot`): source, encoder, feature and the names that they make.
    schema
        The schema of the rows that are encoded.

    Raises
    ------
    NotCoveredError
        An encoder leaves out columns that are 0: which a row has depends on its categories.
    """

    def __init__(self, encoded: Iterable[Any], schema: Schema) -> None:
        self._encoded = list(encoded)
        self._schema = schema
        self._seen = self._state()
        self.names: list[Any] = []
        self._dropped: dict[int, Any] = {}
        encoders = {id(column.encoder): column for column in self._encoded}
        for key, column in encoders.items():
            if column.encoder.drop_zeros:
                raise NotCoveredError("a one-hot encoder with drop_zeros before a model that is not linear")
            kept = list(column.encoder._zero_dict)
            if column.encoder.drop_first:
                if not kept:
                    raise NotCoveredError("a one-hot encoder with drop_first knows no category yet")
                self._dropped[key] = min(kept)
                kept.remove(self._dropped[key])
            self.names += [column.renamed(name) for name in kept]
        self._tables: list[Ints] = [np.empty(0, dtype=np.int64)] * len(self._encoded)

    def is_stale(self) -> bool:
        """Return whether an encoder has learnt a category since."""
        return self._state() != self._seen

    def _state(self) -> list[list[Any]]:
        return [list(column.encoder._zero_dict) for column in self._encoded]

    def fill(self, X: Array, places: Ints, Z: Array) -> None:
        """Set the columns of transformed rows.

        Parameters
        ----------
        X
            The rows, shape (rows, features).
        places
            Which column of Z each name has.
        Z
            Shape (rows, columns).

        Raises
        ------
        NotCoveredError
            A row has a category that the encoder has not learnt.
        """
        Z[:, places] = 0.0
        rows = np.arange(len(X))
        for q, column in enumerate(self._encoded):
            if len(self._tables[q]) != len(self._schema.codes[column.source]) or column.encoder.categories is not None:
                self._tables[q] = self._table(column)
            codes = X[:, column.source]
            if self._schema.takes_gaps:
                there = codes == codes
                found = np.full(len(X), _NONE, dtype=np.int64)
                found[there] = self._tables[q][codes[there].astype(np.int64)]
            else:
                found = self._tables[q][codes.astype(np.int64)]
            if found.min() < 0:
                if (found == _NEW).any():
                    raise NotCoveredError("a category that the one-hot encoder has not learnt")
                known = found >= 0
                Z[rows[known], places[found[known]]] = 1.0
            else:
                Z[rows, places[found]] = 1.0

    def _table(self, column: Any) -> Ints:
        """Return the number of the column of each category, by the category's code."""
        number = {name: i for i, name in enumerate(self.names)}
        dropped = self._dropped.get(id(column.encoder))
        table = []
        for value in self._schema.values(column.source):
            plain = f"{column.feature}_{value}"
            categories = column.encoder.categories
            if plain == dropped or (categories is not None and value not in categories[column.feature]):
                table.append(_NONE)
            else:
                table.append(number.get(column.renamed(plain), _NEW))
        return np.array(table, dtype=np.int64)
