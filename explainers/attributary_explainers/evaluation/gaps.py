"""Schemas of rows that may lack features: NaN for a missing feature."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..typing import Array, Features
from .registry import number_types, takes_gaps
from .schema import NUMBERS, NotEncodableError, Schema

_MOST_FEATURES = 256
"""More features than these are not kept for rows to come, unless four observations have as many."""


class GapSchema(Schema):
    """Schema of rows that may lack features, each gap encoded as NaN.

    A value that is NaN itself is refused, as by every schema: it is no absent feature. What an evaluator returns for a
    row does not depend on columns of features that the row lacks.
    """

    takes_gaps = True

    def _encode_others(self, rows: Sequence[Features]) -> Array:
        if len(rows) == 1 and not rows[0]:
            raise NotEncodableError("there is no feature")
        for row in rows:
            if not row.keys() <= self.keys:
                raise NotEncodableError("a row has a feature that the others do not have")
        return self._filled(rows)

    def encode_known(self, rows: Sequence[Features]) -> Array:
        """Return rows as `encode_many` does, less features that have no column."""
        keys = self.keys
        known = [x if x.keys() <= keys else {name: x[name] for name in x if name in keys} for x in rows]
        return self._filled(known)

    def _filled(self, rows: Sequence[Features]) -> Array:
        position, codes, d = self.position, self.codes, len(self)
        X = np.full((len(rows), d), np.nan)
        places: list[int] = []
        values: list[Any] = []
        for start, row in zip(range(0, len(rows) * d, d), rows, strict=True):
            columns = [position[name] for name in row]
            places += [start + column for column in columns]
            if codes:
                pairs = zip(columns, row.values(), strict=True)
                values += [self.code(column, value) if column in codes else value for column, value in pairs]
            else:
                values += row.values()
        X.put(places, self._checked(values))
        return X

    def decode(self, row: Array, like: Iterable[Any]) -> dict[Any, Any]:
        """Return a row as a dict in the order of `like`, without absent features."""
        there = row == row
        return super().decode(row, [feature for feature in like if there[self.position[feature]]])

    def for_columns(
        self, features: Iterable[Any], categorical: Collection[Any] = (), numbers: frozenset[type] = NUMBERS
    ) -> Schema:
        """Return a schema for columns made of these, which may lack numbers too."""
        return GapSchema(features, categorical, numbers)


def gap_schemas(
    model: Any, x: Features, categorical: frozenset[Any], expected: Collection[Any], before: Schema | None
) -> Iterator[GapSchema]:
    """Yield schemas for rows with gaps, best first, if the model takes such.

    Parameters
    ----------
    x
        The observation.
    categorical
        Those of its features that are categories.
    expected
        Features that rows made of it may have, too.
    before
        The schema until now: its features stay, so that later rows may have them again.
    """
    if not takes_gaps(model):
        return
    numbers = number_types(model)
    least = x.keys() | set(expected)
    if before is not None and before.takes_gaps:
        features = before.keys | least
        if len(features) <= max(_MOST_FEATURES, 4 * len(least)):
            yield GapSchema(features, (before.categorical - x.keys()) | categorical, numbers)
    # What is not covered may be about a feature that this observation lacks.
    yield GapSchema(least, categorical, numbers)
