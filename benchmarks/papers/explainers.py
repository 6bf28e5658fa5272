"""The explainers as the papers describe them, and ours beside them. The one place that knows the arguments."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from attributary_explainers import GeometricReservoir, IncrementalPFI, IncrementalSAGE, Reservoir, as_batch
from attributary_explainers.typing import Importance

__all__ = ["as_batch", "average", "observational_sage", "our_sage", "paper_sage", "realisations"]

RESERVOIR_SIZE = 100
"""L, in all experiments of the papers."""


def realisations(
    model: Any, *, alpha: float, n: int, loss: str, seed: int, reservoir: type[Reservoir] = GeometricReservoir
) -> list[IncrementalPFI]:
    """n iPFI explainers, each with its own reservoir and draws: the paper averages ten of them."""
    return [
        IncrementalPFI(
            model,
            loss=loss,
            alpha=alpha,
            n_samples=1,
            sampling="independent",
            reservoir=reservoir(RESERVOIR_SIZE),
            seed=seed + number,
        )
        for number in range(n)
    ]


def average(explainers: Sequence[IncrementalPFI], *, raw: bool = False) -> Importance:
    """Mean importance of several explainers of the same features; raw is the paper's recursion from 0."""
    found = [explainer.raw_importance if raw else explainer.importance for explainer in explainers]
    return {name: statistics.fmean(importance[name] for importance in found) for name in found[0]}


def paper_sage(model: Any, **parameters: Any) -> IncrementalSAGE:
    """iSAGE as in its Algorithm 1: independent draws, and no correction for their finite number.

    One thing is ours: the draws of an observation serve all its coalitions. That changes no expectation.
    """
    reservoir = GeometricReservoir(RESERVOIR_SIZE)
    return IncrementalSAGE(model, reservoir=reservoir, sampling="independent", bias_correction=False, **parameters)


def our_sage(model: Any, **parameters: Any) -> IncrementalSAGE:
    """iSAGE as this library does it unless told otherwise: stratified draws, bias corrected."""
    return IncrementalSAGE(model, reservoir=GeometricReservoir(RESERVOIR_SIZE), **parameters)


def observational_sage(model: Any, **parameters: Any) -> IncrementalSAGE:
    """iSAGE with absent features drawn given the present ones (its Algorithms 3 and 4), otherwise as `paper_sage`."""
    reservoir = GeometricReservoir(RESERVOIR_SIZE)
    return IncrementalSAGE(
        model,
        removal="observational-trees",
        reservoir=reservoir,
        sampling="independent",
        bias_correction=False,
        **parameters,
    )
