"""Imputers by the parameters of an explainer, and by constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidParameterError, SnapshotError
from ..typing import Features, Prediction, Snapshot
from ..validation import check_choice
from .conditional import ConditionalImputer, ConditionalSampler
from .imputer import REMOVAL_NAMES, SAMPLING_NAMES, Draws, Imputer, MarginalImputer, Players, keep, replace
from .observational import ShiftedImputer
from .reservoirs import RESERVOIR_NAMES, GeometricReservoir, Reservoir, make_reservoir


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


def imputer_of(parameters: Mapping[str, Any]) -> Imputer:
    """Return a new imputer with these parameters.

    Raises
    ------
    SnapshotError
        The imputer was of the user's own class.
    """
    removal = parameters["removal"]
    if removal not in (*REMOVAL_NAMES, ConstantImputer.name):
        raise SnapshotError(
            f"the snapshot is of an explainer with an imputer of its own, {removal!r}: make the explainer with that "
            "imputer, and take the state with explainer.restore(snapshot)"
        )
    if removal == "constant":
        return ConstantImputer(parameters["values"])
    if parameters["reservoir"] not in RESERVOIR_NAMES:
        raise SnapshotError(
            f"the snapshot is of an explainer with the reservoir {parameters['reservoir']!r}, which is not known here: "
            "make the explainer with that reservoir, and take the state with explainer.restore(snapshot)"
        )
    reservoir = make_reservoir(
        parameters["reservoir"], parameters["reservoir_size"], parameters.get("gap"), parameters.get("reach")
    )
    if removal == "observational":
        return ShiftedImputer(reservoir, **parameters["sampler"])
    sampling = parameters["sampling"]
    if removal == "observational-trees":
        return ConditionalImputer(reservoir, ConditionalSampler(**parameters["sampler"]), sampling=sampling)
    return MarginalImputer(reservoir, strategy="joint" if removal == "interventional" else "product", sampling=sampling)


def choose_imputer(
    removal: str | Imputer, reservoir: Reservoir | None, sampling: str | None, alpha: float, rng: np.random.Generator
) -> Imputer:
    """Return the imputer that the parameters name; `rng` seeds its trees."""
    if isinstance(removal, Imputer):
        if reservoir is not None or sampling is not None:
            raise InvalidParameterError(
                "removal", "a name where reservoir or sampling is given, as an imputer has its own", removal
            )
        return removal
    check_choice("removal", removal, REMOVAL_NAMES)
    sampling = check_choice("sampling", "stratified" if sampling is None else sampling, SAMPLING_NAMES)
    if removal == "observational":
        return ShiftedImputer(reservoir, alpha=alpha)
    if removal == "observational-trees":
        return ConditionalImputer(reservoir, ConditionalSampler(seed=int(rng.integers(2**31))), sampling=sampling)
    return MarginalImputer(reservoir, strategy="joint" if removal == "interventional" else "product", sampling=sampling)
