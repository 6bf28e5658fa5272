"""Changes of importance and their explanations, made of numbers written by hand."""

from __future__ import annotations

import math
from typing import Any

from attributary_explainers import ChangeExplanation, Estimate, ImportanceChange, Losses, Onset

Importance = dict[Any, float]

LOSSES = Losses(
    "brier",
    "squared probability",
    2.0,
    Estimate(0.31, 0.01, 3800),
    Estimate(0.62, 0.02, 1000),
    Estimate(0.44, 0.02, 500),
    Estimate(0.18, 0.02, 500),
)
"""Of a change that the model has followed."""


def change_of(
    before: Importance, after: Importance, *, error: float = 0.01, after_error: float = 0.01, **fields: Any
) -> ImportanceChange:
    """The error of the change is that of a difference of two independent estimates, where none is given."""
    both = dict.fromkeys((*before, *after))
    errors, after_errors = dict.fromkeys(before, error), dict.fromkeys(after, after_error)
    delta = {f: math.hypot(errors.get(f, 0.0), after_errors.get(f, 0.0)) for f in both}
    values = {
        "method": "pfi",
        "loss": "zero_one",
        "loss_unit": "share of observations",
        "loss_largest": 1.0,
        "n_observations": 500,
        "before": before,
        "after": after,
        "before_std_error": errors,
        "after_std_error": after_errors,
        "delta_std_error": delta,
        "before_loss": 0.31,
        "after_loss": 0.04,
    }
    return ImportanceChange(**{**values, **fields})


def explanation_of(change: ImportanceChange, **head: Any) -> ChangeExplanation:
    """An alarm of the detector at 9385 that was explained at 10 384, with all else that an explanation says."""
    values = {
        "verdict": "followed",
        "route": "detector",
        "n_observations": 10_384,
        "n_detected": 9385,
        "closes": 9385,
        "window": 1000,
        "reference_observation": 300,
        "detector": "adwin",
        "detector_params": {"delta": 0.025},
        "signal": "zero_one",
        "discrepancy": 0.52,
        "threshold": 0.2,
        "n_discrepancy": 500,
        "distance": "label",
        "scale": "relative",
        "losses": LOSSES,
        "onset": Onset(9340, 9328, 9351),
    }
    return ChangeExplanation(**{**values, "importances": {"pfi": change}, **head})


def explained(
    n_observations: int = 700,
    n_detected: int = 600,
    before: float = 0.1,
    after: float = 0.4,
    names: tuple[str, ...] = ("a", "b"),
) -> ChangeExplanation:
    """A change of every feature, of the last the most."""
    change = change_of(dict.fromkeys(names, before), {name: after + 0.1 * i for i, name in enumerate(names)})
    return explanation_of(change, n_observations=n_observations, n_detected=n_detected, closes=n_detected)
