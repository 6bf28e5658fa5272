"""Rows that the sampler has drawn, as a request: dicts, or an array where each value has a place in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...compiled import compiled
from ...evaluation.schema import Schema
from ...typing import Array, Features, Ints
from ..requests import Request, Row
from .encoding import RARE, Encoding


@compiled
def written(
    values: Any, orders: Any, stops: Any, frequent: Any, codes: Any, start: int, X: Any
) -> int:  # fmt: skip
    """Write drawn codes into an array of rows, from row `start` on; what is kept is as in row 0, the observation.

    Parameters
    ----------
    values
        Shape (sets, draws, features).
    orders, stops
        Shapes (orders, features) and (orders, sets of each): how many features of an order, the first ones, are kept.
    frequent
        Shape (features,): the number of levels that have a code, -1 for a number.
    codes
        Shape (features, levels): the code in the array of each of them.

    Returns
    -------
    How many are levels without a code, for which NaN is written; -1 where one is missing, which has no place in it.
    """
    r, n_rare, s = start, 0, 0
    for o in range(orders.shape[0]):
        for stop in stops[o]:
            for draw in range(values.shape[1]):
                for p in range(orders.shape[1]):
                    j = orders[o, p]
                    if p < stop:
                        X[r, j] = X[0, j]
                        continue
                    value = values[s, draw, j]
                    if np.isnan(value):
                        return -1
                    if frequent[j] >= 0:
                        is_rare = value >= frequent[j]
                        n_rare += is_rare
                        value = np.nan if is_rare else codes[j, int(value)]
                    X[r, j] = value
                r += 1
            s += 1
    return n_rare


class DrawnRequest(Request):
    """Rows in which absent features have drawn values.

    Parameters
    ----------
    x
        The observation.
    players
        Player to its features.
    orders, sizes
        Shapes (orders, players) and (orders, sets of each): orders of the players by number, and of how many of them,
        the first ones, the features come from x.
    arranged
        The same by feature; None where the observation says nothing of some, or there is no encoding yet.
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
        orders: Ints,
        sizes: Ints,
        arranged: tuple[Ints, Ints] | None,
        values: Array,
        slots: Ints,
        encoding: Encoding,
        stored: Sequence[Features],
        *,
        replaces: bool,
    ) -> None:
        self._x, self._players, self._replaces = x, players, replaces
        self._orders, self._sizes, self._arranged = orders, sizes, arranged
        self._values, self._slots, self._encoding, self._stored = values, slots, encoding, stored
        self.n_rows = slots.size

    def rows(self) -> list[Row]:
        """Return the rows, made of the stored observations."""
        return [row for of_set in self.sets() for row in of_set]

    def sets(self) -> list[list[Row]]:
        """Return the rows of each set of draws."""
        found, names = [], list(self._players)
        kept = [
            {names[i] for i in order[:size]}
            for order, of_order in zip(self._orders.tolist(), self._sizes.tolist(), strict=True)
            for size in of_order
        ]
        for held, values, slots in zip(kept, self._values, self._slots, strict=True):
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
        """Write the codes as the schema has them; where a value is missing, the rows are encoded."""
        encoding, arranged, rows = self._encoding, self._arranged, X[start : start + self.n_rows]
        # Both have the features in the order of their names.
        if (
            arranged is not None
            and encoding.names == schema.features
            and encoding.n_frequent.keys() == schema.codes.keys()
        ):
            codes = np.empty((len(encoding), max(encoding.n_frequent.values(), default=0)))
            for j, n in encoding.n_frequent.items():
                codes[j, :n] = [schema.code(j, level) for level in encoding.features[j].levels]
            n_rare = written(self._values, *arranged, encoding.frequent, codes, start, X)
            if n_rare > 0:
                self._fill_rare(rows, schema)
            if n_rare >= 0:
                return
        if self.n_rows:
            rows[:] = schema.encode_many(self.rows())

    def _fill_rare(self, rows: Array, schema: Schema) -> None:
        """Write the codes of levels that are rare, or none, which are NaN so far."""
        encoding, values, slots = self._encoding, self._values.reshape(self.n_rows, -1), self._slots.ravel()
        for j in encoding.n_frequent:
            for r in np.flatnonzero(np.isnan(rows[:, j])).tolist():
                stored = self._stored[slots[r]]
                rows[r, j] = schema.code(j, self._value(encoding.names[j], values[r], stored))
