"""Observational removal as in the paper: values drawn from tree leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..typing import Array, Features, Prediction, Snapshot
from ..validation import check_choice
from .base import SAMPLING_NAMES, Draws, Imputer, Players, Rows
from .conditional.sampler import EMPTY, ConditionalSampler
from .reservoirs import LaggedReservoir, Reservoir
from .strata import independent_sets


class ConditionalImputer(Imputer):
    """Draws replacements that fit the kept features: observational removal.

    Each removed feature is drawn from the leaf of its own tree (iSAGE Algorithms 3 and 4), see `ConditionalSampler`;
    where that has no value yet, the feature comes from a stored observation, as in marginal removal. Coalitions of one
    observation share the uniform numbers of their draws: one for each draw and feature.

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
        """Return `n` rows per player, its features drawn given all others."""
        rows: list[Rows] = []
        codes = self.sampler.codes(x)
        for features in players.values():
            absent = set(features)
            kept = {feature: x[feature] for feature in x if feature not in absent}
            numbers, slots = self._numbers(n, len(features), rng).T.tolist(), self._slots(n, rng)
            of_kept = {feature: code for feature, code in codes.items() if feature in kept}
            drawn = {
                feature: self.sampler.draw_all(feature, of_kept, of_feature)[0]
                for feature, of_feature in zip(features, numbers, strict=True)
            }
            rows.append(_rows(x, kept, drawn, [self.reservoir.rows[slot] for slot in slots]))
        return Draws(rows, None)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows per coalition, all other features drawn given its own."""
        features = [feature for of_player in players.values() for feature in of_player]
        numbers, slots = self._numbers(n, len(features), rng).T.tolist(), self._slots(n, rng)
        of_feature = dict(zip(features, numbers, strict=True))
        codes, stored = self.sampler.codes(x), [self.reservoir.rows[slot] for slot in slots]
        rows: list[Rows] = []
        known: set[Any] = set()
        found: dict[Any, tuple[list[Any], set[Any]]] = {}
        for kept in coalitions:
            present = {feature for player in kept for feature in players[player] if feature in x}
            absent = [feature for player in players if player not in set(kept) for feature in players[player]]
            of_present = {feature: code for feature, code in codes.items() if feature in present}
            if not known <= present:
                found.clear()
            new = present - known
            for feature in absent:
                # What no tree has asked for makes no difference to its draws.
                if feature not in found or not new.isdisjoint(found[feature][1]):
                    found[feature] = self.sampler.draw_all(feature, of_present, of_feature[feature])
            known = present
            drawn = {feature: found[feature][0] for feature in absent}
            rows.append(_rows(x, {feature: x[feature] for feature in x if feature in present}, drawn, stored))
        return Draws(rows, None)

    def _numbers(self, n: int, n_features: int, rng: np.random.Generator) -> Array:
        """Draw uniform numbers, shape (draws, features), as `sampling` says."""
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
        """Take in an observation; every tree learns it."""
        self.sampler.update(x)
        return super().update(x, y_pred, rng)

    def snapshot(self) -> Snapshot:
        """Return plain data and, for the trees, bytes."""
        return {**super().snapshot(), "sampler": self.sampler.snapshot()}

    def restore(self, state: Snapshot) -> None:
        """Take the state of an imputer with equal parameters."""
        super().restore(state)
        self.sampler = ConditionalSampler.from_snapshot(state["sampler"])


def _rows(x: Features, kept: Features, drawn: Mapping[Any, Sequence[Any]], stored: Sequence[Features]) -> Rows:
    """Return a row per draw: kept values, drawn ones, stored ones for EMPTY."""
    # The order of x: to a model that reads rows by position, and to a reader, the same features.
    order = [*(feature for feature in x if feature in kept or feature in drawn), *(f for f in drawn if f not in x)]
    rows = []
    for i, of_draw in enumerate(stored):
        row = {}
        for feature in order:
            if feature in kept:
                row[feature] = kept[feature]
                continue
            value = drawn[feature][i]
            if value is not EMPTY:
                row[feature] = value
            elif feature in of_draw:
                row[feature] = of_draw[feature]
        rows.append(row)
    return rows
