"""The imputer that the parameters of an explainer, or of a snapshot, name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InvalidParameterError, SnapshotError
from ..validation import check_choice
from .base import REMOVAL_NAMES, SAMPLING_NAMES, Imputer
from .conditional.sampler import ConditionalSampler
from .constant import ConstantImputer
from .marginal import MarginalImputer
from .observational import ConditionalImputer
from .reservoirs import RESERVOIR_NAMES, Reservoir, make_reservoir
from .shifted.imputer import ShiftedImputer


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
