"""Observational removal: draws given the kept features, by shifted rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.observational import write_rows
from ..evaluation.schema import Encoded, Schema
from ..typing import Array, Features, Ints, Prediction, Snapshot
from ..validation import check_number
from .imputer import Draws, Imputer, Players, Request, Row
from .misfit import Misfit
from .reservoirs import LaggedReservoir, Reservoir
from .sampler import WARM_UP, ShiftedSampler
from .statistics import RARE, Encoding


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


PER_FEATURE, ENOUGH = 10, 2000
"""Observations of each feature that have to be learnt before anything is drawn; so many are enough for any number."""
LOOK_EVERY, LOOK_FROM = 20, 500
"""The diagnostic looks at every so many-th observation, when so many have been learnt."""
LOOK_MEMORY = 4
"""It looks back so many times as far as the importance: what features have in common changes less than the loss."""
LOOK_DRAWS, LOOK_ROWS = 2, 8
"""Draws of each feature given all others, and stored rows whose values are marginal draws."""


class ShiftedImputer(Imputer):
    """Draws replacements that fit the kept features, by shifting stored rows.

    `ShiftedSampler` says how.

    Nothing can be drawn until a hundred observations are stored, or as many as there is room for; with more than ten
    features, ten observations per feature, or 2000 in all, must also have been learnt. Removal is interventional for
    features that too few observations have. A feature stays as it is in the stored observation where that lacks it or
    has None, NaN or a new category; a feature that x lacks says nothing of the others.

    Source: Muschalik, Fumagalli, Hammer, Huellermeier, iSAGE: An Incremental Version of SAGE for Online Explanation on
    Data Streams, ECML PKDD 2023, section 3.2 (observational removal). Deviation: they draw from the leaves of a tree
    per feature (Algorithms 3 and 4, `removal="observational-trees"`).

    Parameters
    ----------
    reservoir
        Observations to shift; None is `LaggedReservoir(500)`. The imputer owns it.
    alpha
        Valid range (0, 1]: that of the explainer. The regression forgets up to four times as fast.
    """

    name = "observational"

    def __init__(self, reservoir: Reservoir | None = None, *, alpha: float = 0.001) -> None:
        self.reservoir = LaggedReservoir(500) if reservoir is None else reservoir
        self.alpha = check_number("alpha", alpha, above=0.0, maximum=1.0)
        self.reservoir.settle(self.alpha)
        self.sampler = ShiftedSampler(self.reservoir.size, self.alpha)
        self.misfit = Misfit(min(LOOK_EVERY * self.alpha / LOOK_MEMORY, 1.0))
        """How much of the dependence draws miss."""
        self._n_seen = 0
        self._seating = Seating({}, self.sampler.encoding)

    @property
    def ready(self) -> bool:
        """Whether enough has been stored and learnt to draw from.

        Earlier draws would give another importance. A regression on p features fits any p independent observations
        exactly; from n of them, it adds p / (n - p) of a feature's variance to the draws.
        """
        wanted = PER_FEATURE * len(self.sampler.encoding)
        is_learnt = wanted <= WARM_UP or self.sampler.learnt.n >= min(wanted, ENOUGH)
        return is_learnt and len(self.reservoir) >= min(WARM_UP, self.reservoir.size)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the imputer was made with, as plain data."""
        return {**super().parameters, "sampler": {"alpha": self.alpha}}

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return `n` rows per player, its features drawn given all others."""
        return Draws(self._each(x, players, n, rng).sets(), None)

    def request_each(
        self, x: Features, players: Players, n: int, rng: np.random.Generator, encoded: Encoded | None = None
    ) -> Request:
        """Return the draws of `replace_each`, as an array where the rows allow it."""
        return self._each(x, players, n, rng)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows per coalition, all other features drawn given its own."""
        number = {player: i for i, player in enumerate(players)}
        orders, sizes = (
            np.empty((len(coalitions), len(number)), dtype=np.int64),
            np.empty((len(coalitions), 1), np.int64),
        )
        for order, size, kept in zip(orders, sizes, coalitions, strict=True):
            first = [number[player] for player in kept]
            order[:], size[:] = [*first, *np.setdiff1d(np.arange(len(number)), first)], len(first)
        return Draws(self._walk(x, players, orders, sizes, n, rng, replaces=False).sets(), None)

    def request_coalitions(
        self,
        x: Features,
        players: Players,
        orders: npt.NDArray[np.intp],
        n: int,
        rng: np.random.Generator,
        encoded: Encoded | None = None,
    ) -> Request:
        """Return the draws of `restrict`, by a single factorisation per order."""
        sizes = np.empty((len(orders), max(len(players) - 1, 0)), dtype=np.int64)
        sizes[:] = np.arange(1, len(players))
        return self._walk(x, players, orders, sizes, n, rng, replaces=False)

    def _each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> DrawnRequest:
        encoding, seating = self.sampler.encoding, self._seating_of(players)
        wanted, orders, sizes = seating.single, *seating.each
        if wanted is None:  # groups, and features that nothing is known of
            return self._walk(x, players, orders, sizes, n, rng, replaces=True)
        row = encoding.encode(x)
        codes, slots = self.sampler.draw_each(row, wanted, n, rng)
        values = np.empty((len(wanted), n, len(row)))
        values[np.arange(len(wanted)), :, wanted] = codes
        drawn = orders, sizes, seating.each_arranged, values, slots
        return DrawnRequest(x, players, *drawn, encoding, self.reservoir.rows, replaces=True)

    def _walk(
        self, x: Features, players: Players, orders: Ints, sizes: Ints, n: int, rng: np.random.Generator, *,
        replaces: bool,
    ) -> DrawnRequest:  # fmt: skip
        """Draw the players after some places of each order, given earlier ones."""
        encoding, arranged = self.sampler.encoding, None
        if len(encoding) == 0:
            slots = np.tile(rng.integers(len(self.reservoir), size=n), (sizes.size, 1))
            values: Array = np.empty((sizes.size, n, 0))
        else:
            seating = self._seating_of(players)
            drawn = seating.arranged(orders, sizes)
            values, slots = self.sampler.draw_walk(encoding.encode(x), *drawn, n, rng)
            arranged = drawn if replaces or seating.has_all else None
        of_orders = orders, sizes, arranged, values, slots
        return DrawnRequest(x, players, *of_orders, encoding, self.reservoir.rows, replaces=replaces)

    def _seating_of(self, players: Players) -> Seating:
        """Return the players' features by number; players rarely change."""
        if not self._seating.holds(players, self.sampler.encoding):
            self._seating = Seating(players, self.sampler.encoding)
        return self._seating

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Take in and learn an observation, once the diagnostic has seen it."""
        self._n_seen += 1
        if self._n_seen % LOOK_EVERY == 0 and self.sampler.learnt.n >= LOOK_FROM:
            self._look(x, rng)
        slot = super().update(x, y_pred, rng)
        self.sampler.update(x, slot, self.reservoir.rows, self.reservoir.by_age)
        return slot

    def _look(self, x: Features, rng: np.random.Generator) -> None:
        sampler = self.sampler
        row = sampler.encoding.encode(x)
        drawn, _ = sampler.draw_each(row, np.arange(len(row)), LOOK_DRAWS, rng)
        stored = sampler.table.rows[sampler.ages[rng.integers(len(sampler.ages), size=LOOK_ROWS)]]
        self.misfit.update(row, drawn, stored, sampler.encoding)

    def snapshot(self) -> Snapshot:
        """Return plain data, and bytes of the sampler's learnt statistics."""
        own = {"sampler": self.sampler.snapshot(), "misfit": self.misfit.snapshot(), "n_seen": self._n_seen}
        return {**super().snapshot(), **own}

    def restore(self, state: Snapshot) -> None:
        """Take the state of an imputer with equal parameters."""
        super().restore(state)
        self.sampler = ShiftedSampler(self.reservoir.size, self.alpha)
        self.sampler.restore(state["sampler"], self.reservoir.rows)
        self.misfit.restore(state["misfit"], self.sampler.encoding)
        self._n_seen = state["n_seen"]
