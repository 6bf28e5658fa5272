"""Marginal removal: a removed feature takes its value in a stored row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.uniforms import Uniforms, uniforms_of
from ..evaluation.schema import Encoded, Schema
from ..typing import Features, Prediction, Snapshot
from ..validation import check_choice
from .base import SAMPLING_NAMES, Draws, Imputer, Players, Rows
from .requests import CoalitionsRequest, ReplacedRowsRequest, Request
from .reservoirs import LaggedReservoir, Reservoir
from .rows import keep, replace
from .stored import StoredRows
from .strata import HalvesByAge, SlotOrder, independent_sets, prediction_key, row_key, strata, strata_of_sets

_ORDERS = 4
"""So many orders are kept for each feature that a row has: an observation asks for its features and for groups."""
_ASKED = 5
"""Observations in a row under one schema from which on the stored ones are kept as an array, too."""


class MarginalImputer(Imputer):
    """Draws replacements whatever the kept features: interventional removal.

    Source: iPFI Definition 4, iSAGE Algorithm 1.

    Parameters
    ----------
    reservoir
        Observations to draw from; None is `LaggedReservoir()`. The imputer owns it.
    strategy
        `joint`: all removed features come from one stored row, so that what they have in common is kept.
        `product`: every removed feature comes from a row of its own, as if features were independent.
    sampling
        `independent` draws; or `stratified`, one draw from each equal part of the stored rows, in the order of the
        removed feature (PFI) or of what the model predicted for them (SAGE): the same expectation, less variance.
    """

    def __init__(
        self, reservoir: Reservoir | None = None, *, strategy: str = "joint", sampling: str = "stratified"
    ) -> None:
        self.reservoir = LaggedReservoir() if reservoir is None else reservoir
        self.strategy = check_choice("strategy", strategy, ("joint", "product"))
        self.sampling = check_choice("sampling", sampling, SAMPLING_NAMES)
        self.keeps_predictions = True
        """Whether stored observations are sorted by their predictions, over which `restrict` spreads its draws."""
        self.in_halves = False
        """Whether the two sets of draws of `restrict` come from the older and the younger half of the stored rows."""
        self._prediction_order = SlotOrder()
        self._halves = HalvesByAge()
        self._by_features: dict[tuple[Any, ...], SlotOrder] = {}
        self._unused = 0
        self._uniforms: Uniforms | None = None
        self.stored: StoredRows | None = None
        """The stored observations as an array, where draws are made of it."""
        self._asked: tuple[Schema | None, int] = (None, _ASKED)
        self._columns: tuple[Players, Schema | None, npt.NDArray[np.intp] | None] = ({}, None, None)
        """The columns of the players that were asked for last, in rows of a schema; None where one is no feature."""
        self._replacing: ReplacedRowsRequest | None = None
        """The last request of `request_each`: the next one of the same form draws in its memory."""
        self._walking: CoalitionsRequest | None = None
        """The last request of `request_coalitions`."""

    @property
    def name(self) -> str:  # type: ignore[override]  # the two strategies go by the names of the two removals
        """`interventional` or `product`."""
        return "interventional" if self.strategy == "joint" else "product"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the imputer was made with, as plain data."""
        return {**super().parameters, "sampling": self.sampling}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_replacing": None, "_walking": None}

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return `n` rows for each player, with its features from stored rows."""
        if self.strategy == "joint" or all(len(features) == 1 for features in players.values()):
            slots = self._slots(list(map(tuple, players.values())), n, rng)
            stored = self.reservoir.rows
            rows = [
                [replace(x, features, stored[slot]) for slot in of_player]
                for features, of_player in zip(players.values(), slots.tolist(), strict=True)
            ]
            return Draws(rows, slots)
        return Draws([self._mixed(x, features, n, rng) for features in players.values()], None)

    def request_each(
        self, x: Features, players: Players, n: int, rng: np.random.Generator, encoded: Encoded | None = None
    ) -> Request:
        """Return the draws of `replace_each`, as an array where that is possible."""
        columns = None if encoded is None else self._columns_of(players, encoded.schema)
        stored = None if encoded is None or columns is None else self._as_array(encoded)
        if columns is None or stored is None:
            return super().request_each(x, players, n, rng)
        request = self._replacing
        if request is None or not request.is_of(players, n, stored):
            request = self._replacing = ReplacedRowsRequest(players, columns, n, stored, self.reservoir.rows)
        self._uniforms = draw = uniforms_of(rng, self._uniforms)
        request.draw(x, draw, self.sampling == "stratified")
        return request

    def request_coalitions(
        self,
        x: Features,
        players: Players,
        orders: npt.NDArray[np.intp],
        n: int,
        rng: np.random.Generator,
        encoded: Encoded | None = None,
    ) -> Request:
        """Return the draws of `restrict`, as an array where that is possible."""
        columns = None
        if encoded is not None and (len(players) == len(encoded.schema) or encoded.schema.takes_gaps):
            columns = self._columns_of(players, encoded.schema) if self.strategy == "joint" else None
        stored = None if encoded is None or columns is None else self._as_array(encoded)
        if columns is None or stored is None:
            return super().request_coalitions(x, players, orders, n, rng, encoded)
        request = self._walking
        if request is None or not request.is_of(players, orders, n, stored):
            request = self._walking = CoalitionsRequest(players, columns, orders, n, stored, self.reservoir.rows)
        self.draw_slots(request.of(x), rng)
        return request

    def _columns_of(self, players: Players, schema: Schema) -> npt.NDArray[np.intp] | None:
        """Return columns, shape (players,); None if a player is not in the schema."""
        of_players, of_schema, columns = self._columns
        if of_players is not players or of_schema is not schema:
            # Players may be fewer than the features of the observation, which are the schema's.
            are_features = players.keys() <= schema.keys
            columns = np.array([schema.position[name] for name in players], np.intp) if are_features else None
            self._columns = players, schema, columns
        return columns

    def _as_array(self, encoded: Encoded) -> StoredRows | None:
        """Return the stored rows as an array; None where draws need dicts."""
        stored = self.stored
        if stored is None or stored.schema is not encoded.schema or stored.is_stale:
            # Where a feature is now a number and now a text, each schema is of a few observations only: an array of
            # all rows would cost more than the draws as dicts, which are the same. The first schema is worth one.
            of_last, n_asked = self._asked
            is_of_last = of_last is None or of_last is encoded.schema
            self._asked = encoded.schema, n_asked + 1 if is_of_last else 1
            self.stored = None
            if self._asked[1] < _ASKED:
                return None
            stored = self.stored = StoredRows(encoded.schema, self.reservoir.size, list(self.reservoir.rows))
        if not stored.is_complete:
            return None
        return stored

    def _mixed(self, x: Features, features: Sequence[Any], n: int, rng: np.random.Generator) -> Rows:
        slots = self._slots([(feature,) for feature in features], n, rng)
        # Without this, features in the same order would be drawn with like ranks: as if they moved together.
        mixed = rng.permuted(slots, axis=1).T.tolist()
        stored = self.reservoir.rows
        rows = []
        for of_draw in mixed:
            row = dict(x)
            for feature, slot in zip(features, of_draw, strict=True):
                row = replace(row, (feature,), stored[slot])
            rows.append(row)
        return rows

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows per coalition, all completed from the same drawn rows."""
        stored = self.reservoir.rows
        if self.strategy == "joint":
            slots = np.empty(n, dtype=np.intp)
            self.draw_slots(slots, rng)
            drawn: list[Features] = [stored[slot] for slot in slots.tolist()]
        else:
            slots = None
            features = [feature for of_player in players.values() for feature in of_player]
            drawn = [row for size in independent_sets(n) for row in self._mixed({}, features, size, rng)]
        return Draws([[keep(x, kept, row, players) for row in drawn] for kept in coalitions], slots)

    def draw_slots(self, slots: npt.NDArray[np.intp], rng: np.random.Generator) -> None:
        """Fill `slots` with drawn slots of rows for all coalitions of a walk."""
        stratified = self.sampling == "stratified"
        if self.in_halves:
            self._uniforms = draw = uniforms_of(rng, self._uniforms)
            self._halves.halves.draw(draw, stratified, slots)
        elif stratified:
            slots[:] = self._prediction_order.at(strata_of_sets(len(self.reservoir), len(slots), rng))
        else:
            slots[:] = rng.integers(len(self.reservoir), size=len(slots))

    def _slots(self, keys: Sequence[tuple[Any, ...]], n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
        size = len(self.reservoir)
        if self.sampling == "independent":
            return rng.integers(size, size=(len(keys), n))
        positions = strata(size, n, rng, (len(keys),)).tolist()
        slots = [self._order(key).at(of_key) for key, of_key in zip(keys, positions, strict=True)]
        return np.array(slots, dtype=np.intp).reshape(len(keys), n)

    def _order(self, features: tuple[Any, ...]) -> SlotOrder:
        self._unused = 0
        order = self._by_features.pop(features, None)
        if order is None:
            rows = self.reservoir.rows
            if any(map(rows.may_have, features)):
                keys = [row_key(row, features) for row in rows]
            else:
                keys = [row_key({}, features)] * len(rows)
            order = SlotOrder.of(dict(enumerate(keys)))
            most = _ORDERS * (1 + rows.most_features)
            while len(self._by_features) > most:  # ever new names: those that were asked for last are kept
                del self._by_features[next(iter(self._by_features))]
        self._by_features[features] = order  # behind the others
        return order

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Take in an observation with the model's prediction for it."""
        # Made where the row is kept alone: most are not.
        note = partial(prediction_key, y_pred) if self.keeps_predictions and self.sampling == "stratified" else None
        slot = self.reservoir.update(x, rng, note)
        if slot is None:
            return None
        if self.stored is not None or self._by_features:
            row = self.reservoir.rows[slot]
        if self.stored is not None:
            self.stored.put(slot, row)
        if self.keeps_predictions:
            self._note(slot)
        if self._by_features:
            self._unused += 1
            if self._unused > self.reservoir.size:
                self._by_features.clear()  # draws are made of the array; should they be again, orders are made anew
            for features, order in self._by_features.items():
                order.put(slot, row_key(row, features))
        return slot

    def _note(self, slot: int) -> None:
        """Sort the slot of a newly stored row into the order that walks draw by."""
        key = self.reservoir.notes[slot]
        if self.in_halves:
            self._halves.put(slot, () if key is None else key, self.reservoir.numbers[slot])
        elif key is not None:
            self._prediction_order.put(slot, key)

    def restore(self, state: Snapshot) -> None:
        """Take the state of an imputer with equal parameters."""
        super().restore(state)
        self._by_features, self.stored = {}, None
        notes = self.reservoir.notes if self.keeps_predictions else []
        keys = [note or () for note in notes] if self.in_halves else []
        self._halves = HalvesByAge.of(keys, self.reservoir.numbers[: len(keys)])
        noted = {} if self.in_halves else {slot: note for slot, note in enumerate(notes) if note is not None}
        self._prediction_order = SlotOrder.of(noted)
