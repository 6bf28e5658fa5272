"""Observational removal: draws given the kept features, by shifted rows."""

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
from .drawn import DrawnRequest, Seating
from .misfit import Misfit
from .sampler import WARM_UP, ShiftedSampler

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
