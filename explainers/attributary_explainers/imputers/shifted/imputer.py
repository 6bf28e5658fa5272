"""Observational removal: removed features are drawn given those that are kept, by shifted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...evaluation.schema import Encoded
from ...typing import Array, Features, Ints, Prediction, Snapshot
from ...validation import check_number
from ..base import Draws, Imputer, Players
from ..requests import Request
from ..reservoirs import LaggedReservoir, Reservoir
from .drawn import DrawnRequest
from .misfit import Misfit
from .sampler import ShiftedSampler

LOOK_EVERY, LOOK_FROM = 20, 500
"""The diagnostic looks at every so many-th observation, when so many have been learnt."""
LOOK_DRAWS, LOOK_ROWS = 2, 8
"""Draws of each feature given all others, and stored rows whose values are marginal draws."""


class ShiftedImputer(Imputer):
    """Draws replacements that fit the kept features: stored observations, shifted by a regression.

    `ShiftedSampler` says how.

    Until a hundred observations are stored, and for features that too few of them have, removal is interventional. A
    feature that the stored observation lacks, or in which it has None, NaN or a category that is new, is as it is
    there; one that x lacks says nothing of the others.

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
        self.misfit = Misfit(min(LOOK_EVERY * self.alpha, 1.0))
        """How much of the dependence draws miss."""
        self._n_seen = 0

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the imputer was made with, as plain data."""
        return {**super().parameters, "sampler": {"alpha": self.alpha}}

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return `n` rows for each player, with its features drawn given all others."""
        return Draws(self._each(x, players, n, rng).sets(), None)

    def request_each(
        self, x: Features, players: Players, n: int, rng: np.random.Generator, encoded: Encoded | None = None
    ) -> Request:
        """Return the draws of `replace_each`, as an array where the rows allow it."""
        return self._each(x, players, n, rng)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows for each coalition, with the other players' features drawn given those of the coalition."""
        orders = [[*kept, *(player for player in players if player not in set(kept))] for kept in coalitions]
        walks = [(order, [len(kept)]) for order, kept in zip(orders, coalitions, strict=True)]
        return Draws(self._walk(x, players, walks, n, rng, replaces=False).sets(), None)

    def request_walk(
        self,
        x: Features,
        players: Players,
        orders: npt.NDArray[np.intp],
        n: int,
        rng: np.random.Generator,
        encoded: Encoded | None = None,
    ) -> Request:
        """Return the draws of `restrict`, one factorisation for each order, as an array where the rows allow it."""
        names = list(players)
        walks = [([names[i] for i in order], range(1, len(order))) for order in orders.tolist()]
        return self._walk(x, players, walks, n, rng, replaces=False)

    def _each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> DrawnRequest:
        encoding, names = self.sampler.encoding, list(players)
        wanted = [encoding.position.get(features[0], -1) if len(features) == 1 else -1 for features in players.values()]
        if min(wanted, default=-1) < 0:  # groups, and features that nothing is known of
            walks = [([*(name for name in names if name != own), own], [len(names) - 1]) for own in names]
            return self._walk(x, players, walks, n, rng, replaces=True)
        row = encoding.encode(x)
        drawn, slots = self.sampler.draw_each(row, np.array(wanted, dtype=np.int64), n, rng)
        values = np.empty((len(names), n, len(row)))
        values[:] = row
        values[np.arange(len(names)), :, wanted] = drawn
        kept = [[name for name in names if name != own] for own in names]
        return DrawnRequest(x, players, kept, values, slots, encoding, self.reservoir.rows, replaces=True)

    def _walk(
        self,
        x: Features,
        players: Players,
        walks: Sequence[tuple[Sequence[Any], Sequence[int]]],
        n: int,
        rng: np.random.Generator,
        *,
        replaces: bool,
    ) -> DrawnRequest:
        """Draw the players behind some places of an order, given those before; for several orders."""
        encoding = self.sampler.encoding
        kept = [list(order[:size]) for order, sizes in walks for size in sizes]
        if len(encoding) == 0:
            slots = np.broadcast_to(rng.integers(len(self.reservoir), size=n), (len(kept), n))
            values: Array = np.empty((len(kept), n, 0))
        else:
            row, parts = encoding.encode(x), [self._arranged(players, order, sizes) for order, sizes in walks]
            values, slots = self.sampler.draw_walk(row, [o for o, _ in parts], [s for _, s in parts], n, rng)
        return DrawnRequest(x, players, kept, values, slots, encoding, self.reservoir.rows, replaces=replaces)

    def _arranged(self, players: Players, order: Sequence[Any], sizes: Sequence[int]) -> tuple[Ints, Ints]:
        """Return the features in the order of their players by number, and how many each coalition has.

        What belongs to no player comes first: it is never drawn.
        """
        position = self.sampler.encoding.position
        of_players = [[position[name] for name in players[player] if name in position] for player in order]
        removable = {j for numbers in of_players for j in numbers}
        arranged = [j for j in range(len(position)) if j not in removable]
        n_before = [len(arranged)]
        for numbers in of_players:
            arranged += numbers
            n_before.append(len(arranged))
        return np.array(arranged, dtype=np.int64), np.array([n_before[size] for size in sizes], dtype=np.int64)

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Take in one observation, and learn it, when the diagnostic has looked at it."""
        self._n_seen += 1
        if self._n_seen % LOOK_EVERY == 0 and self.sampler.learnt.n >= LOOK_FROM:
            self._look(x, rng)
        slot = super().update(x, y_pred, rng)
        self.sampler.update(x, slot, self.reservoir.rows)
        return slot

    def _look(self, x: Features, rng: np.random.Generator) -> None:
        sampler = self.sampler
        row = sampler.encoding.encode(x)
        drawn, _ = sampler.draw_each(row, np.arange(len(row)), LOOK_DRAWS, rng)
        stored = sampler.table.rows[rng.choice(sampler.ages, size=LOOK_ROWS)]
        self.misfit.update(row, drawn, stored, sampler.encoding)

    def snapshot(self) -> Snapshot:
        """Return plain data and, for what the sampler has learnt, bytes."""
        own = {"sampler": self.sampler.snapshot(), "misfit": self.misfit.snapshot(), "n_seen": self._n_seen}
        return {**super().snapshot(), **own}

    def restore(self, state: Snapshot) -> None:
        """Take the state of an imputer with equal parameters."""
        super().restore(state)
        self.sampler = ShiftedSampler(self.reservoir.size, self.alpha)
        self.sampler.restore(state["sampler"], self.reservoir.rows)
        self.misfit.restore(state["misfit"], self.sampler.encoding)
        self._n_seen = state["n_seen"]
