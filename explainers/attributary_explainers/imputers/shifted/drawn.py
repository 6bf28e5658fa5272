"""Rows drawn for players: the features of these, and the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...core.shifted.drawing import write_rows
from ...evaluation.schema import Schema
from ...typing import Array, Features, Ints
from ..base import Players
from ..requests import Request, Row
from .encoding import RARE, Encoding


class Seating:
    """The features of each player by number.

    Parameters
    ----------
    players
        Player to its features.
    encoding
        Says which number a feature has. A feature that it does not know has none.
    """

    def __init__(self, players: Players, encoding: Encoding) -> None:
        self._players, self._encoding = dict(players), encoding
        position = encoding.position
        known = [[position[name] for name in names if name in position] for names in players.values()]
        self._counts = np.array([len(numbers) for numbers in known], dtype=np.int64)
        """How many features each player has that are known."""
        self._player = np.full(len(position), len(players))
        """By feature its player, by number; another number for none."""
        for player, numbers in enumerate(known):
            self._player[numbers] = player
        self._n_never = len(position) - int(self._counts.sum())
        self.single: Ints | None = None
        """Shape (players,): the feature of each, where all have exactly one that is known."""
        if all(len(numbers) == 1 == len(names) for numbers, names in zip(known, players.values(), strict=True)):
            self.single = np.array(known, dtype=np.int64).ravel()

    @cached_property
    def each(self) -> tuple[Ints, Ints]:
        """Orders and sizes, as for `arranged`, in which each player is drawn."""
        d = len(self._counts)
        numbers = np.arange(d)
        others = np.tile(numbers, (d, 1))[~np.eye(d, dtype=np.bool_)].reshape(d, max(d - 1, 0))
        return np.column_stack([others, numbers]), np.full((d, 1), d - 1)

    @cached_property
    def each_arranged(self) -> tuple[Ints, Ints]:
        """The same by feature."""
        return self.arranged(*self.each)

    @property
    def has_all(self) -> bool:
        """Whether each feature belongs to a player."""
        return not self._n_never

    def holds(self, players: Players, encoding: Encoding) -> bool:
        """Return whether this is the seating of the players by an encoding."""
        return encoding is self._encoding and players == self._players

    def arranged(self, orders: Ints, sizes: Ints) -> tuple[Ints, Ints]:
        """Return the features in player order, and how many each coalition has.

        Features of no player come first: they are never drawn.

        Parameters
        ----------
        orders
            Shape (orders, players): the players by number.
        sizes
            Shape (orders, coalitions of each): how many players, from the first on, each coalition has.
        """
        if self.single is not None and self.has_all:  # as nearly always: players are features
            return self.single[orders], sizes
        rows, d = np.arange(len(orders))[:, None], len(self._counts)
        places = np.full((len(orders), d + 1), -1)
        places[rows, orders] = np.arange(d)
        ends = np.zeros((len(orders), d + 1), dtype=np.int64)
        np.cumsum(self._counts[orders], axis=1, out=ends[:, 1:])
        return np.argsort(places[:, self._player], axis=1, kind="stable"), self._n_never + ends[rows, sizes]


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

    def fill(self, X: Array, start: int, schema: Schema, first: int = 0, stop: int | None = None) -> None:
        """Write the rows in the schema's codes; encode them if a value is missing."""
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
            n_rare = write_rows(self._values, *arranged, encoding.frequent, codes, start, X)
            if n_rare > 0:
                self._fill_rare(rows, schema)
            if n_rare >= 0:
                return
        if self.n_rows:
            rows[:] = schema.encode_many(self.rows())

    def _fill_rare(self, rows: Array, schema: Schema) -> None:
        """Write the codes of rare or unknown levels, which are NaN so far."""
        encoding, values, slots = self._encoding, self._values.reshape(self.n_rows, -1), self._slots.ravel()
        for j in encoding.n_frequent:
            for r in np.flatnonzero(np.isnan(rows[:, j])).tolist():
                stored = self._stored[slots[r]]
                rows[r, j] = schema.code(j, self._value(encoding.names[j], values[r], stored))
