"""Requests: the rows that an explainer needs for one observation, as dicts for the model itself or as an array."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..evaluation.changed_rows import LARGE, ChangedRows, OneReplaced, Walked
from ..evaluation.schema import NotEncodableError, Schema
from ..typing import Array, Features
from .kernels import kept, replaced, spread_and_kept, spread_and_replaced, spread_slots
from .rows import keep, replace
from .stored import StoredRows
from .strata import HalvesByAge

Slots: TypeAlias = npt.NDArray[np.intp]
Row: TypeAlias = dict[Any, Any]
Draw: TypeAlias = Callable[[np.random.Generator], Slots]
"""Draws slots from those that are stored now."""


class WalkShape(NamedTuple):
    """Says how the rows of walks follow each other: those of one coalition are consecutive.

    Attributes
    ----------
    orders, coalitions, draws
        How many orders are walked, the coalitions of each, and the rows of each of these. The draws of a coalition
        become those of the next one by the values of one player.
    """

    orders: int
    coalitions: int
    draws: int


class Request(abc.ABC):
    """Rows to evaluate, in which those of one player or coalition are consecutive."""

    n_rows: int
    slots: Slots | None
    """Slots of the reservoir, shape (players, draws), or (draws,) where all coalitions share them.

    None where the rows come from no slot.
    """
    asked: Any = None
    """What the explainer that has made the request needs to know of it when the predictions are there."""
    walk: WalkShape | None = None
    """The shape of the walks that the rows are of; None for others."""

    @abc.abstractmethod
    def rows(self) -> list[Row]:
        """Return the rows as the model reads them, as long as the reservoir has not taken in the observation."""

    @abc.abstractmethod
    def fill(self, X: Array, start: int, schema: Schema) -> None:
        """Write the rows to X from `start` on; row 0 of X is the observation.

        Raises
        ------
        NotEncodableError
            The schema cannot hold them.
        """

    def changed(self, x: Array) -> ChangedRows | None:
        """Return the rows by what changes in `x`, the encoded observation, where an array of them all would be large.

        None: `fill` is to be called.
        """
        return None


class RowsRequest(Request):
    """Rows that an imputer has made as dicts."""

    def __init__(self, rows: Sequence[Sequence[Row]], slots: Slots | None) -> None:
        self._rows = [row for of_player in rows for row in of_player]
        self.n_rows, self.slots = len(self._rows), slots

    def rows(self) -> list[Row]:
        """Return the rows as they were made."""
        return self._rows

    def fill(self, X: Array, start: int, schema: Schema) -> None:
        """Encode the rows."""
        if self._rows:
            rows = X[start : start + self.n_rows] = schema.encode_many(self._rows)
            if schema.takes_gaps and schema.codes:
                # Which features are categories is known of those that the observation has.
                unknown = [column for column in schema.codes if X[0, column] != X[0, column]]
                if not np.isnan(rows[:, unknown]).all():
                    raise NotEncodableError("a row has a category where the observation has nothing")


class SlotsRequest(Request):
    """Rows with values from slots of the reservoir, drawn by uniform numbers where `u` is given, else by `draw`."""

    slots: Slots
    _x: Features
    _columns: Slots
    _u: Array | None
    _draw: Draw | None

    def is_of_all(self, schema: Schema) -> bool:
        """Return whether every feature plays, and it is known how slots are drawn: `redraw` can be called."""
        return not (self._u is None and self._draw is None) and len(self._columns) == len(schema)

    def redraw(self, x: Features, rng: np.random.Generator) -> None:
        """Draw anew, and be the request for another observation of the same form from now on."""
        self._x = x
        if self._draw is None:
            rng.random(out=self._u)
        else:
            self.slots[...] = self._draw(rng)


class ReplaceRequest(SlotsRequest):
    """For each feature and draw, the observation with that feature from a stored one; see `rows.replace`.

    Parameters
    ----------
    x
        The observation.
    features
        The features that are replaced.
    columns
        Shape (features,): the columns of the features.
    slots
        Shape (features, draws): the slots drawn; where `u` is given, room for them, filled together with the rows.
    u
        Shape (features, draws): uniform numbers, one for each equal part of a feature's order (`strata.strata`).
    stored, rows
        The reservoir's rows, as an array and as dicts.
    draw
        What has drawn the slots, where there is no `u`.
    """

    def __init__(
        self,
        x: Features,
        features: Sequence[Any],
        columns: Slots,
        slots: Slots,
        u: Array | None,
        stored: StoredRows,
        rows: Sequence[Features],
        draw: Draw | None = None,
    ) -> None:
        self._x, self._features, self._columns, self._u, self._draw = x, features, columns, u, draw
        self._stored, self._reservoir = stored, rows
        self.slots: Slots = slots
        self.n_rows = slots.size

    def rows(self) -> list[Row]:
        """Return the rows, made of the stored observations."""
        if self._u is not None:
            spread_slots(self._u, self._stored.n, self._columns, self._stored.order, self.slots)
        return [
            replace(self._x, (feature,), self._reservoir[slot])
            for feature, of_feature in zip(self._features, self.slots.tolist(), strict=True)
            for slot in of_feature
        ]

    def fill(self, X: Array, start: int, schema: Schema) -> None:
        """Copy the rows together from the array of stored observations."""
        stored = self._stored
        if self._u is None:
            replaced(start, self._columns, self.slots, stored.matrix, X)
        else:
            spread_and_replaced(self._u, stored.n, self._columns, stored.order, self.slots, start, stored.matrix, X)

    def changed(self, x: Array) -> ChangedRows | None:
        """Return the rows by what changes, where they are many."""
        if self.n_rows * len(x) < LARGE:
            return None
        stored = self._stored
        if self._u is not None:
            spread_slots(self._u, stored.n, self._columns, stored.order, self.slots)
        values = stored.matrix[self.slots, self._columns[:, None]]
        return None if _has_gaps(x) or _has_gaps(values) else OneReplaced(x, self._columns, values)


class WalkRequest(SlotsRequest):
    """For each coalition and draw, the stored observation with the coalition's features from x; see `rows.keep`.

    Parameters
    ----------
    x, columns, stored, rows
        The same as for `ReplaceRequest`.
    players
        Player to its one feature.
    orders
        Shape (orders, players): each a permutation of the players by number; all but the last one of an order are
        walked.
    slots
        Shape (draws,): the slots drawn; where `u` is given, room for them, filled together with the rows.
    u
        Shape (draws,): uniform numbers, by which slots are drawn of `halves`.
    halves
        The reservoir's slots by age and key.
    stratified
        Whether the draws are spread over them.
    draw
        What has drawn the slots, where there is no `u`.
    """

    def __init__(
        self,
        x: Features,
        players: Mapping[Any, Sequence[Any]],
        columns: Slots,
        orders: Slots,
        slots: Slots,
        stored: StoredRows,
        rows: Sequence[Features],
        u: Array | None = None,
        halves: HalvesByAge | None = None,
        stratified: bool = False,
        draw: Draw | None = None,
    ) -> None:
        self._x, self._players, self._columns = x, players, columns
        self.orders = orders
        self._stored, self._reservoir = stored, rows
        self._u, self._halves, self._stratified, self._draw = u, halves, stratified, draw
        self.slots: Slots = slots
        self.walk = WalkShape(len(orders), max(orders.shape[1] - 1, 0), len(slots))
        self.n_rows = math.prod(self.walk)

    def rows(self) -> list[Row]:
        """Return the rows, made of the stored observations."""
        if self._u is not None and self._halves is not None:
            self._halves.write_drawn(self._u, self.slots, stratified=self._stratified)
        drawn = [self._reservoir[slot] for slot in self.slots.tolist()]
        return [
            keep(self._x, coalition, row, self._players)
            for coalition in walked_coalitions(list(self._players), self.orders)
            for row in drawn
        ]

    def fill(self, X: Array, start: int, schema: Schema) -> None:
        """Copy the rows together from the array of stored observations."""
        halves, way = self._halves, (start, self.orders, self._columns)
        if self._u is None or halves is None:
            kept(*way, self.slots, self._stored.matrix, X)
        else:
            older, younger = halves.older.as_array(), halves.younger.as_array()
            drawn = self._u, older, younger, self._stratified, self.slots
            spread_and_kept(*drawn, *way, self._stored.matrix, X)
        if len(self._columns) < len(schema):  # a feature that belongs to no player is absent
            others = np.ones(len(schema), dtype=np.bool_)
            others[self._columns] = False
            X[start : start + self.n_rows, others] = np.nan

    def changed(self, x: Array) -> ChangedRows | None:
        """Return the rows by what changes, where they are many."""
        if self.n_rows * len(x) < LARGE:
            return None
        if self._u is not None and self._halves is not None:
            self._halves.write_drawn(self._u, self.slots, stratified=self._stratified)
        drawn = self._stored.matrix[self.slots]
        if len(self._columns) < len(x) or _has_gaps(x) or _has_gaps(drawn):
            return None
        return Walked(x, self._columns[self.orders], drawn)


def _has_gaps(values: Array) -> bool:
    """Return whether features are absent somewhere, which is not told by what changes."""
    return bool(np.isnan(values).any())


def walked_coalitions(names: Sequence[Any], orders: Slots) -> list[list[Any]]:
    """Return the coalitions of each order, from the first player to all but the last one."""
    return [[names[i] for i in order[: size + 1]] for order in orders.tolist() for size in range(len(order) - 1)]
