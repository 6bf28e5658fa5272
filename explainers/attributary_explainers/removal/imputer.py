"""Imputers: removed features of a row take their values in stored rows."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..core.reservoir import CoalitionRows, ReplacedRows, SortedRows, Uniforms, uniforms_of
from ..errors import InvalidParameterError
from ..evaluation.schema import Encoded, NotEncodableError, Schema
from ..notebook.described import Described
from ..ordering import OrderNumbers
from ..typing import Array, Features, Groups, Prediction, Snapshot
from ..validation import check_choice
from .reservoirs import LaggedReservoir, Reservoir
from .strata import HalvesByAge, SlotOrder, independent_sets, prediction_key, row_key, strata, strata_of_sets


def replace(x: Features, features: Iterable[Any], drawn: Features) -> dict[Any, Any]:
    """Return a copy of `x` with `features` from `drawn` (iPFI Definition 4)."""
    row = dict(x)
    for feature in features:
        if feature in drawn:
            row[feature] = drawn[feature]
        else:
            row.pop(feature, None)
    return row


def keep(x: Features, kept: Iterable[Any], drawn: Features, players: Mapping[Any, Sequence[Any]]) -> dict[Any, Any]:
    """Return a row: kept players from `x`, others drawn (iSAGE Algorithm 1).

    A feature of `drawn` that belongs to no player is absent, as it is in `x`.
    """
    row: dict[Any, Any] = {}
    held = set(kept)
    for player, features in players.items():
        source = x if player in held else drawn
        for feature in features:
            if feature in source:
                row[feature] = source[feature]
    return row


class StoredRows:
    """Mirrors a reservoir's rows as an array, and is part of no saved state.

    Parameters
    ----------
    schema
        The schema of the observations.
    size
        The number of slots of the reservoir.
    rows
        The observations that are stored now.
    """

    def __init__(self, schema: Schema, size: int, rows: Sequence[Features]) -> None:
        self.schema = schema
        self._sorted = SortedRows(size, len(schema))
        self.matrix: Array = self._sorted.matrix
        self.order: npt.NDArray[np.int32] = self._sorted.order
        self.n = 0
        """How many observations are stored: in the first slots."""
        self._columns = schema.reader()
        self._numbers: dict[int, OrderNumbers] = {column: OrderNumbers() for column in schema.codes}
        self._strange: int | None = None
        self.is_complete = True
        """Whether every stored observation could be encoded; after one that could not, nothing is taken in."""
        self.is_stale = False
        """Whether the observation that could not be encoded is gone, so that a new mirror is complete again."""
        if rows:
            self._put_all(rows)

    def put(self, slot: int, x: dict[Any, Any]) -> None:
        """Store an observation in a slot."""
        if self._strange is not None:
            self.is_stale |= slot == self._strange
            return
        if self._columns.read(x):
            row = self._columns.row
        else:
            try:
                row = self.schema.encode_known((x,))[0]
            except NotEncodableError:
                self._strange, self.is_complete = slot, False
                return
        self._sorted.put(slot, row, self._keys_of(row))
        self.n = self._sorted.n

    def _put_all(self, rows: Sequence[Features]) -> None:
        """Store rows in the first slots at once, as repeated `put` would."""
        try:
            encoded = self.schema.encode_known(rows)
        except NotEncodableError:
            self._strange, self.is_complete = self._first_strange(rows), False
            return
        keys = encoded.T.copy()
        for column, order_numbers in self._numbers.items():
            order_numbers.extend(self.schema.values(column))
            keys[column] = _keys_of(encoded[:, column], order_numbers)
        keys[keys != keys] = -np.inf  # what is absent comes before all values
        self._sorted.put_all(encoded, keys)
        self.n = len(rows)

    def _first_strange(self, rows: Sequence[Features]) -> int:
        for slot, row in enumerate(rows):
            try:
                self.schema.encode_known((row,))
            except NotEncodableError:
                return slot
        return len(rows) - 1

    def _keys_of(self, row: Array) -> Array:
        if not self._numbers:
            return row
        keys = row.copy()
        for column, order_numbers in self._numbers.items():
            if row[column] != row[column]:
                continue
            code = int(row[column])
            if code >= len(order_numbers.numbers) and order_numbers.extend(self.schema.values(column)):
                self._sorted.keys[column, : self.n] = _keys_of(self.matrix[: self.n, column], order_numbers)
            keys[column] = order_numbers.numbers[code]
        return keys


def _keys_of(codes: Array, order_numbers: OrderNumbers) -> Array:
    """Return the sort keys of codes; NaN sorts first."""
    there = codes == codes
    keys = np.full(len(codes), -np.inf)
    keys[there] = np.array(order_numbers.numbers)[codes[there].astype(np.intp)]
    return keys


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


Rows: TypeAlias = list[dict[Any, Any]]

REMOVAL_NAMES = ("interventional", "product", "observational", "observational-trees")
"""Names that `removal` takes; a constant is an imputer of its own: `ConstantImputer(values)`."""

SAMPLING_NAMES = ("stratified", "independent")
"""Names that `sampling` takes: how draws are spread over the reservoir."""


class PlayersByGroup:
    """Finds the players of an observation: its groups and single features.

    Players come in the order of the observation's features.

    A declared group always plays, even where the observation has none of its features: sparse one-hot columns.
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self.group_of = {feature: group for group, features in groups.items() for feature in features}
        """Feature to the group that it is in."""
        self._names: tuple[Any, ...] = ()
        self._alone: dict[Any, Sequence[Any]] = {}

    def of(self, x: Features) -> dict[Any, Sequence[Any]]:
        """Return the players of an observation; not to be changed.

        Raises
        ------
        InvalidParameterError
            A feature has the name of a group.
        """
        if not self._groups:
            names = tuple(x)
            if names != self._names:
                self._names, self._alone = names, {feature: (feature,) for feature in x}
            return self._alone
        players: dict[Any, Sequence[Any]] = {}
        for feature in x:
            player = self.group_of.get(feature)
            if player is None:
                if feature in self._groups:
                    raise InvalidParameterError("groups", "names that no feature has", feature)
                players[feature] = (feature,)
            else:
                players[player] = self._groups[player]
        players.update((name, features) for name, features in self._groups.items() if name not in players)
        return players


class Draws(NamedTuple):
    """Rows to evaluate, and where their replacements came from."""

    rows: list[Rows]
    """The rows of the draws of each player or coalition."""
    slots: npt.NDArray[np.intp] | None
    """Slots of the reservoir, shape (players, draws), or (draws,) where all coalitions share them.

    None where the draws come from no slot.
    """


class Imputer(Described, abc.ABC):
    """Gives removed features other values.

    An explainer calls `replace_each` or `restrict` for an observation, then `update` with it, so that a draw never
    sees the observation that is explained.
    """

    name: ClassVar[str]
    reservoir: Reservoir
    n_independent: ClassVar[bool] = True
    """Whether more draws say more; False where all are the same."""
    in_halves: bool = False
    """Whether the explainer needs the two sets of `restrict` to be independent of each other, stored rows included."""

    @property
    def ready(self) -> bool:
        """Whether there is something to draw from."""
        return bool(self.reservoir.notes)  # of which there is one for each row

    @abc.abstractmethod
    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return `n` rows per player: its features replaced, by own draws (PFI)."""

    @abc.abstractmethod
    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows per coalition: it keeps `x`, all else is drawn (SAGE).

        The coalitions of one call share their draws as far as they can: a feature that the model ignores then changes
        no prediction. The sets of `strata.independent_sets` are independent of each other.
        """

    def request_each(
        self, x: Features, players: Players, n: int, rng: np.random.Generator, encoded: Encoded | None = None
    ) -> Request:
        """Return the rows of `replace_each` as a request.

        Parameters
        ----------
        encoded
            The observation as an array, and its schema, where the model has a fast path.
        """
        return RowsRequest(*self.replace_each(x, players, n, rng))

    def request_coalitions(
        self,
        x: Features,
        players: Players,
        orders: npt.NDArray[np.intp],
        n: int,
        rng: np.random.Generator,
        encoded: Encoded | None = None,
    ) -> Request:
        """Return a request for the rows of `restrict` along orders of players.

        Each order stands for the coalitions that it grows through: see `walked_coalitions`.

        Parameters
        ----------
        orders
            Shape (orders, players): the players by number.
        encoded
            The same as for `request_each`.
        """
        return RowsRequest(*self.restrict(x, players, walked_coalitions(list(players), orders), n, rng))

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Take in an explained observation; return the slot it changed, or None."""
        return self.reservoir.update(x, rng)

    def _facts(self) -> list[tuple[str, str]]:
        return self.reservoir._facts()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the imputer was made with, as plain data."""
        return {"removal": self.name, **self.reservoir.parameters}

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"reservoir": self.reservoir.snapshot()}

    def restore(self, state: Snapshot) -> None:
        """Take the state of an imputer with equal parameters."""
        self.reservoir.restore(state["reservoir"])


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
