"""Observational removal as in the paper: removed features are drawn from the leaves of trees."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..typing import Array, Features, Prediction, Snapshot
from ..validation import check_choice
from .base import SAMPLING_NAMES, Draws, Imputer, Players, Rows
from .conditional.sampler import EMPTY, ConditionalSampler
from .reservoirs import LaggedReservoir, Reservoir
from .strata import independent_sets


class ConditionalImputer(Imputer):
    """Draws replacements that fit the kept features: observational removal (iSAGE Algorithms 3 and 4).

    Each removed feature is drawn from the leaf of its own tree, see `ConditionalSampler`; where that has no value yet,
    the feature comes from a stored observation, as in marginal removal. Coalitions of one observation share the
    uniform numbers of their draws: one for each draw and feature.

    Parameters
    ----------
    reservoir
        Observations for what the trees cannot draw; None is `LaggedReservoir()`.
    sampler
        The trees; None is `ConditionalSampler()`. The imputer owns it. Every observation is learnt by all trees, so
        the cost grows with the square of the features: name those that matter in the sampler's `features`.
    sampling
        `stratified` spreads the uniform numbers of the draws evenly over [0, 1); `independent` does not.
    """

    name = "observational-trees"

    def __init__(
        self,
        reservoir: Reservoir | None = None,
        sampler: ConditionalSampler | None = None,
        *,
        sampling: str = "stratified",
    ) -> None:
        self.reservoir = LaggedReservoir() if reservoir is None else reservoir
        self.sampler = ConditionalSampler() if sampler is None else sampler
        self.sampling = check_choice("sampling", sampling, SAMPLING_NAMES)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the imputer was made with, as plain data."""
        sampler = {name: value for name, value in self.sampler.parameters.items() if name != "seed"}
        return {**super().parameters, "sampling": self.sampling, "sampler": sampler}

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return `n` rows for each player, with its features drawn given all others."""
        rows: list[Rows] = []
        for features in players.values():
            absent = set(features)
            present = [feature for feature in x if feature not in absent]
            rows.append(self._drawn(x, present, features, self._numbers(n, len(features), rng), self._slots(n, rng)))
        return Draws(rows, None)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows for each coalition, with the other players' features drawn given those of the coalition."""
        features = [feature for of_player in players.values() for feature in of_player]
        numbers, slots = self._numbers(n, len(features), rng), self._slots(n, rng)
        column = {feature: i for i, feature in enumerate(features)}
        rows: list[Rows] = []
        for kept in coalitions:
            present = {feature for player in kept for feature in players[player] if feature in x}
            absent = [feature for player in players if player not in set(kept) for feature in players[player]]
            of_absent = numbers[:, [column[feature] for feature in absent]]
            rows.append(self._drawn(x, present, absent, of_absent, slots))
        return Draws(rows, None)

    def _drawn(
        self,
        x: Features,
        present: Collection[Any],
        absent: Sequence[Any],
        numbers: Array,
        slots: Sequence[int],
    ) -> Rows:
        kept = {feature: x[feature] for feature in x if feature in present}
        held = set(kept)
        rows = []
        for of_draw, slot in zip(numbers.tolist(), slots, strict=True):
            stored = self.reservoir.rows[slot]
            row = dict(kept)
            for feature, u in zip(absent, of_draw, strict=True):
                value = self.sampler.draw(feature, kept, held, u)
                if value is not EMPTY:
                    row[feature] = value
                elif feature in stored:
                    row[feature] = stored[feature]
            # The order of x: to a model that reads rows by position, and to a reader, the same features.
            rows.append({**{feature: row[feature] for feature in x if feature in row}, **row})
        return rows

    def _numbers(self, n: int, n_features: int, rng: np.random.Generator) -> Array:
        """Draw uniform numbers, shape (draws, features); each column is spread over [0, 1) in every independent set."""
        if self.sampling == "independent":
            return rng.random((n, n_features))
        parts = []
        for size in independent_sets(n):
            order = rng.permuted(np.tile(np.arange(size)[:, None], (1, n_features)), axis=0)
            parts.append((order + rng.random((size, n_features))) / size)
        # Rounding can give 1.0.
        return np.minimum(np.concatenate(parts), np.nextafter(1.0, 0.0))

    def _slots(self, n: int, rng: np.random.Generator) -> list[int]:
        slots: list[int] = rng.integers(len(self.reservoir), size=n).tolist()
        return slots

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Take in one observation; every tree learns it."""
        self.sampler.update(x)
        return super().update(x, y_pred, rng)

    def snapshot(self) -> Snapshot:
        """Return plain data and, for the trees, bytes."""
        return {**super().snapshot(), "sampler": self.sampler.snapshot()}

    def restore(self, state: Snapshot) -> None:
        """Take the state of an imputer with equal parameters."""
        super().restore(state)
        self.sampler = ConditionalSampler.from_snapshot(state["sampler"])
