"""Requests for the rows that explain an observation: dicts or an array."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..core.draws import CoalitionRows, ReplacedRows
from ..core.uniforms import Uniforms
from ..evaluation.schema import NotEncodableError, Schema
from ..typing import Array, Features
from .rows import keep, replace
from .stored import StoredRows

Indices: TypeAlias = npt.NDArray[np.intp]
Players: TypeAlias = Mapping[Any, Sequence[Any]]
"""Feature or group to its features."""
Row: TypeAlias = dict[Any, Any]


class Request(abc.ABC):
    """Rows to evaluate; rows of the same player or coalition are consecutive."""

    n_rows: int
    slots: Indices | None
    """Slots of the reservoir, shape (players, draws), or (draws,) where all coalitions share them.

    None where the rows come from no slot.
    """
    asked: Any = None
    """What the explainer that has made the request needs to know of it when the predictions are there."""

    def __getstate__(self) -> dict[str, Any]:
        # The rows have been evaluated: what has drawn them stays with the original.
        return {name: value for name, value in vars(self).items() if name != "_drawn"}

    @abc.abstractmethod
    def rows(self) -> list[Row]:
        """Return the rows for the model; valid until the reservoir's next update."""

    n_parts: int = 1
    """Players, or coalitions, by which the rows can be written in slices; 1 where all are written together."""

    @abc.abstractmethod
    def fill(self, X: Array, start: int, schema: Schema, first: int = 0, stop: int | None = None) -> None:
        """Write the rows to X from `start` on; row 0 of X is the observation.

        Parameters
        ----------
        first, stop
            Those of some of the parts alone: from the first one up to the last, which is left out.

        Raises
        ------
        NotEncodableError
            The schema cannot hold them.
        """


class RowsRequest(Request):
    """Rows that an imputer has made as dicts."""

    def __init__(self, rows: Sequence[Sequence[Row]], slots: Indices | None) -> None:
        self._rows = [row for of_player in rows for row in of_player]
        self.n_rows, self.slots = len(self._rows), slots

    def rows(self) -> list[Row]:
        """Return the rows as they were made."""
        return self._rows

    def fill(self, X: Array, start: int, schema: Schema, first: int = 0, stop: int | None = None) -> None:
        """Encode the rows."""
        if self._rows:
            rows = X[start : start + self.n_rows] = schema.encode_many(self._rows)
            if schema.takes_gaps and schema.codes:
                # Which features are categories is known of those that the observation has.
                unknown = [column for column in schema.codes if X[0, column] != X[0, column]]
                if not np.isnan(rows[:, unknown]).all():
                    raise NotEncodableError("a row has a category where the observation has nothing")


class ReplacedRowsRequest(Request):
    """Rows of x, each with a feature of a drawn row; see `rows.replace`.

    Parameters
    ----------
    players
        Player to its one feature.
    columns
        Shape (players,): the columns of the features.
    n
        Draws of each feature.
    stored, rows
        The reservoir's rows, as an array and as dicts.
    """

    slots: Indices

    def __init__(
        self, players: Players, columns: Indices, n: int, stored: StoredRows, rows: Sequence[Features]
    ) -> None:
        self._players, self._stored, self._reservoir = players, stored, rows
        self._x: Features = {}
        self._drawn = ReplacedRows(columns, n, stored.matrix, stored.order)
        self.slots = self._drawn.slots
        self.n_parts, self.n_rows = len(columns), self.slots.size

    def is_of(self, players: Players, n: int, stored: StoredRows) -> bool:
        """Return whether it asks for `n` draws for these very players and rows."""
        return players is self._players and stored is self._stored and n == self.slots.shape[1]

    def draw(self, x: Features, draw: Uniforms, stratified: bool) -> None:
        """Draw the rows for an observation; they hold until the next call."""
        self._x = x
        if stratified:
            self._drawn.draw(draw, self._stored.n)
        else:
            self.slots[:] = draw.generator.integers(self._stored.n, size=self.slots.shape)

    def rows(self) -> list[Row]:
        """Return the rows, made of the stored observations."""
        return [
            replace(self._x, (feature,), self._reservoir[slot])
            for feature, of_feature in zip(self._players, self.slots.tolist(), strict=True)
            for slot in of_feature
        ]

    def fill(self, X: Array, start: int, schema: Schema, first: int = 0, stop: int | None = None) -> None:
        """Copy the rows together from the array of stored observations."""
        self._drawn.fill(X, start, first, self.n_parts if stop is None else stop)


class CoalitionsRequest(Request):
    """Drawn rows, each with a coalition's features of x; see `rows.keep`.

    Parameters
    ----------
    players, columns, n, stored, rows
        The same as for `ReplacedRowsRequest`, `n` the draws of each coalition.
    orders
        Shape (orders, players): each a permutation of the players by number; all but the last one of an order are
        walked.
    """

    slots: Indices

    def __init__(
        self,
        players: Players,
        columns: Indices,
        orders: Indices,
        n: int,
        stored: StoredRows,
        rows: Sequence[Features],
    ) -> None:
        self._players, self._columns, self._stored, self._reservoir = players, columns, stored, rows
        self._x: Features = {}
        self._orders, self.slots = orders, np.zeros(n, dtype=np.intp)
        self._drawn = CoalitionRows(columns, orders, self.slots, stored.matrix)
        self.n_parts = len(orders) * max(orders.shape[1] - 1, 0)
        self.n_rows = self.n_parts * n

    def is_of(self, players: Players, orders: Indices, n: int, stored: StoredRows) -> bool:
        """Return whether it is for these very players, orders and rows, and `n`."""
        is_same = players is self._players and orders is self._orders and stored is self._stored
        return is_same and n == len(self.slots)

    def of(self, x: Features) -> Indices:
        """Take an observation, and return the array to write its slots into."""
        self._x = x
        return self.slots

    def rows(self) -> list[Row]:
        """Return the rows, made of the stored observations."""
        drawn = [self._reservoir[slot] for slot in self.slots.tolist()]
        return [
            keep(self._x, coalition, row, self._players)
            for coalition in walked_coalitions(list(self._players), self._orders)
            for row in drawn
        ]

    def fill(self, X: Array, start: int, schema: Schema, first: int = 0, stop: int | None = None) -> None:
        """Copy the rows together from the array of stored observations."""
        last = self.n_parts if stop is None else stop
        self._drawn.fill(X, start, first, last)
        if len(self._columns) < len(schema):  # a feature that belongs to no player is absent
            others = np.ones(len(schema), dtype=np.bool_)
            others[self._columns] = False
            X[start : start + (last - first) * len(self.slots), others] = np.nan


def walked_coalitions(names: Sequence[Any], orders: Indices) -> list[list[Any]]:
    """Return the coalitions of each order: all its beginnings but the whole."""
    return [[names[i] for i in order[: size + 1]] for order in orders.tolist() for size in range(len(order) - 1)]
