"""Asks a model which features go with a shift of its loss, by stored observations of before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...losses.losses import as_loss
from ...models.function import model_function
from ...typing import Groups, Output
from ..events import LossShift, LossShiftExplained
from ..signal.calibration import CLIP
from .expected import expected_share, kind_of_rise
from .importance import losses, naming_loss
from .rows import KeptRows
from .suspects import suspects


def examine(
    model: Any,
    output: Output,
    shift: LossShift,
    rows: KeptRows,
    observation: int,
    *,
    groups: Groups | None = None,
    missing: str | Mapping[Any, Any] = "absent",
    seed: int = 0,
) -> LossShiftExplained:
    """Return the shift with its features, and with its kind where only the observations' inputs can tell it.

    Parameters
    ----------
    rows
        Of before and after the onset.
    observation
        Number of the last one.
    """
    loss = as_loss({"number": "absolute", "label": "zero_one"}.get(output, "cross_entropy"), epsilon=CLIP)
    function = model_function(model, output)
    before, after = rows.before(), rows.after()
    found = suspects(function, naming_loss(output), before, after, groups=groups, missing=missing, seed=seed)
    expected = None
    if output != "probabilities" and shift.kind != "level":
        expected = expected_share(
            [x for x, _ in before],
            losses(function, loss, before, missing),
            [x for x, _ in after],
            losses(function, loss, after, missing),
        )
        told = kind_of_rise(expected, found, is_number=output == "number")
        # More noise moves the slope, too: where inputs explain the rise, only its own test says that it is worse.
        if shift.kind == "rose" or (told == "harder" and shift.signal != "slope"):
            shift = replace(shift, kind=told)
    return LossShiftExplained(shift, observation, found, len(before), len(after), expected, loss.name)
