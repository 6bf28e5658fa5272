"""Removal by a constant: a removed feature takes a value that is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidParameterError
from ..typing import Features, Prediction, Snapshot
from .base import Draws, Imputer, Players
from .reservoirs import GeometricReservoir
from .rows import keep, replace


class ConstantImputer(Imputer):
    """Gives removed features fixed values, such as 0 or the training mean.

    Nothing is drawn, so one row per feature or coalition is evaluated whatever `n_samples` is.

    Parameters
    ----------
    values
        Feature to value; a feature that is not named is absent from the row.
    """

    name = "constant"
    n_independent = False

    def __init__(self, values: Mapping[Any, Any]) -> None:
        if not isinstance(values, Mapping):
            raise InvalidParameterError("values", "a mapping of features to values", values)
        self.values = dict(values)
        self.reservoir = GeometricReservoir(1)  # never drawn from

    @property
    def ready(self) -> bool:
        """Always True, as nothing is drawn."""
        return True

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return a row for each player."""
        return Draws([[replace(x, features, self.values)] * n for features in players.values()], None)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return a row for each coalition."""
        return Draws([[keep(x, kept, self.values, players)] * n for kept in coalitions], None)

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Do nothing: no observation is stored."""
        return None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the imputer was made with, as plain data."""
        return {"removal": self.name, "values": dict(self.values)}

    def snapshot(self) -> Snapshot:
        """Return nothing: the parameters say all."""
        return {}

    def restore(self, state: Snapshot) -> None:
        """Do nothing: the parameters say all."""
