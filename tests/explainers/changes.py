"""Changes of importance and their explanations, made of numbers written by hand."""

from __future__ import annotations

import math
from typing import Any

from attributary_explainers import ChangeExplanation, ImportanceChange

Importance = dict[Any, float]


def change_of(
    before: Importance,
    after: Importance,
    *,
    crossed: Importance | None = None,
    error: float = 0.01,
    after_error: float = 0.01,
    part_error: float | None = None,
    **fields: Any,
) -> ImportanceChange:
    """Everything is the model's doing where `crossed` is left out: the reference is on the new data as it was."""
    crossed = {f: before.get(f, 0.0) for f in after} if crossed is None else crossed
    both = dict.fromkeys((*before, *after))
    errors, after_errors = dict.fromkeys(before, error), dict.fromkeys(after, after_error)
    delta = {f: math.hypot(errors.get(f, 0.0), after_errors.get(f, 0.0)) for f in both}
    parts = delta if part_error is None else dict.fromkeys(both, part_error)
    values = {
        "method": "pfi",
        "loss": "zero_one",
        "loss_unit": "share of observations",
        "loss_largest": 1.0,
        "before": before,
        "crossed": crossed,
        "after": after,
        "before_std_error": errors,
        "crossed_std_error": after_errors,
        "after_std_error": after_errors,
        "model_part_std_error": parts,
        "data_part_std_error": parts,
        "delta_std_error": delta,
        "before_loss": 0.02,
        "crossed_loss": 0.31,
        "after_loss": 0.04,
    }
    return ImportanceChange(**{**values, **fields})


def explanation_of(change: ImportanceChange, **head: Any) -> ChangeExplanation:
    """An alarm of the detector at 10 085 of 10 384 observations, with all else that an explanation says."""
    values = {
        "kind": "model",
        "route": "detector",
        "n_observations": 10_384,
        "n_detected": 10_085,
        "window": 300,
        "reference_observation": 300,
        "detector": "adwin",
        "detector_params": {"delta": 0.025},
        "signal": "zero_one",
        "discrepancy": 0.52,
        "threshold": 0.3,
        "n_discrepancy": 600,
        "distance": "label",
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
    return explanation_of(change, n_observations=n_observations, n_detected=n_detected)
