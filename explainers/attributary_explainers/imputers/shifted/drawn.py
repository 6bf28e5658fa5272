"""Rows that the sampler has drawn, as a request: dicts, or an array where each value has a place in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...evaluation.schema import Schema
from ...typing import Array, Features, Ints
from ..requests import Request, Row
from .encoding import RARE, Encoding


class DrawnRequest(Request):
    """Rows in which absent features have drawn values.

    Parameters
    ----------
    x
        The observation.
    players
        Player to its features.
    kept
        Shape (sets,): of each set of draws, an order of the players, and of how many the features come from x: of the
        first ones.
    values, slots
        Shapes (sets, draws, features) and (sets, draws): codes, and the slots of the rows that they are made of.
    encoding
        What the codes mean.
    stored
        The reservoir's rows.
    replaces
        Whether all features that are not drawn come from x, also those of no player (PFI).
    """

    slots = None

    def __init__(
        self,
        x: Features,
        players: Mapping[Any, Sequence[Any]],
        kept: Sequence[tuple[Sequence[Any], int]],
        values: Array,
        slots: Ints,
        encoding: Encoding,
        stored: Sequence[Features],
        *,
        replaces: bool,
    ) -> None:
        self._x, self._players, self._kept, self._replaces = x, players, kept, replaces
        self._values, self._slots, self._encoding, self._stored = values, slots, encoding, stored
        self.n_rows = slots.size

    def rows(self) -> list[Row]:
        """Return the rows, made of the stored observations."""
        return [row for of_set in self.sets() for row in of_set]

    def sets(self) -> list[list[Row]]:
        """Return the rows of each set of draws."""
        found = []
        for (order, size), values, slots in zip(self._kept, self._values, self._slots, strict=True):
            held = set(order[:size])
            absent = [name for player, names in self._players.items() if player not in held for name in names]
            present = {name for player in held for name in self._players[player]}
            base = {k: v for k, v in self._x.items() if k in present or (self._replaces and k not in set(absent))}
            found.append([self._row(base, absent, *drawn) for drawn in zip(values, slots.tolist(), strict=True)])
        return found

    def _row(self, base: Row, absent: Sequence[Any], values: Array, slot: int) -> Row:
        row, stored = dict(base), self._stored[slot]
        for name in absent:
            if name in stored:
                row[name] = self._value(name, values, stored)
        # The order of x: to a model that reads rows by position, and to a reader, the same features.
        return {**{name: row[name] for name in self._x if name in row}, **row}

    def _value(self, name: Any, values: Array, stored: Features) -> Any:
        encoding = self._encoding
        j = encoding.position.get(name)
        if j is None:
            return stored[name]
        value = encoding.value(j, values[j], encoding.encode_one(j, stored[name]), stored[name])
        return self._rare(j, name) if value is RARE else value

    def _rare(self, j: int, name: Any) -> Any:
        rare = float(len(self._encoding.features[j].levels))
        for row in self._stored:
            if name in row and self._encoding.encode_one(j, row[name]) == rare:
                return row[name]
        return self._encoding.features[j].stored[0]

    def fill(self, X: Array, start: int, schema: Schema) -> None:
        """Write the codes as the schema has them; where one has no code there, the rows are encoded."""
        if not self.n_rows:
            return
        values, encoding = self._values.reshape(self.n_rows, -1), self._encoding
        rows = X[start : start + self.n_rows]
        # Both have the features in the order of their names.
        if (
            encoding.names != schema.features
            or len(self._x) != len(schema)
            or encoding.n_frequent.keys() != schema.codes.keys()
            or np.isnan(values).any()
            or any(values[:, j].max() >= n for j, n in encoding.n_frequent.items())
        ):
            rows[:] = schema.encode_many(self.rows())
            return
        rows[:] = values
        for j in encoding.n_frequent:
            known = [schema.code(j, level) for level in encoding.features[j].levels]
            rows[:, j] = np.array(known)[values[:, j].astype(np.int64)]
