"""Checks how large an observation is, its numbers and its loss: no single one may stop the worker or ruin a model.

Explaining d features costs in the order of d², and every observation may end in a reservoir or a window of the state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from attributary_explainers.validation import LARGEST
from attributary_topics import InvalidRecordError, Observation

from ..config.models import ModelConfig
from .model_state import ModelState

MAX_NAME_LENGTH = 249
"""Longest name of a feature that is not declared, in characters: it is a label in metrics."""


ALL_OTHERS = "*"
"""Stands in `bounds` for every feature that is not named there."""


def check_size(observation: Observation, config: ModelConfig) -> None:
    """Check the size of an observation by itself.

    Raises
    ------
    InvalidRecordError
        `too_large`.
    """
    x = observation.x
    n_text = sum(len(value) for value in (*x.values(), observation.y) if isinstance(value, str))
    if n_text > config.max_text:
        raise InvalidRecordError("too_large", "x", f"at most {config.max_text} characters of text (max_text)", n_text)
    if config.features is not None:
        return
    if len(x) > config.max_features:
        raise InvalidRecordError("too_large", "x", _expected(config), f"{len(x)} features")
    for name in x:
        if len(name) > MAX_NAME_LENGTH:
            expected = f"names of at most {MAX_NAME_LENGTH} characters, or `features` that declare it"
            raise InvalidRecordError("too_large", "x", expected, name)


def within_bounds(observation: Observation, config: ModelConfig) -> Observation:
    """Return the observation with its numbers within the bounds of their features, clipped where that is configured.

    Raises
    ------
    InvalidRecordError
        `out_of_bounds`.
    """
    bounds, x = config.bounds, observation.x
    if not bounds:
        return observation
    clipped: dict[str, float] = {}
    for name in x if ALL_OTHERS in bounds else bounds.keys() & x.keys():
        value = x[name]
        low, high = bounds.get(name) or bounds[ALL_OTHERS]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if low is not None and value < low:
            clipped[name] = low
        elif high is not None and value > high:
            clipped[name] = high
    if not clipped:
        return observation
    if not config.clip:
        name = min(clipped)
        low, high = bounds.get(name) or bounds[ALL_OTHERS]
        ends = [f"at {word} {bound:g}" for word, bound in (("least", low), ("most", high)) if bound is not None]
        expected = f"a number of {' and '.join(ends)} (bounds of the model; `clip: true` would take the nearest)"
        raise InvalidRecordError("out_of_bounds", f"x.{name}", expected, x[name])
    return replace(observation, x={**x, **clipped})


class AbsurdPredictionError(Exception):
    """Says that a model's prediction is no finite number, or one whose loss is useless: the observation is not learnt.

    Parameters
    ----------
    model_id, prediction
        What the model predicted.
    loss
        Its loss; None where the prediction itself is not finite.
    """

    def __init__(self, model_id: str, prediction: Any, loss: float | None = None) -> None:
        found = f"{prediction!r}"[:80] + (f", whose loss is {loss:.3g}" if loss is not None else "")
        super().__init__(
            f"the model predicts {found}. The observation is neither explained nor learnt. If all observations of the "
            f"model end here, a number that it learnt has ruined it: start it afresh with `attributary models reset "
            f"{model_id}`, and set models.{model_id}.bounds, which refuse such numbers or, with `clip: true`, cut them"
        )


def is_absurd(loss: float) -> bool:
    """Return whether a loss is NaN, infinite or beyond 1e150, which no mean takes."""
    return not (math.isfinite(loss) and abs(loss) < LARGEST)


def check_known(state: ModelState, x: Mapping[str, Any]) -> None:
    """Check that the model would not have too many features at a time with those of `x`.

    What it knows depends on earlier observations: refused ones must be remembered as those on which the model raises.

    Raises
    ------
    InvalidRecordError
        `too_large`.
    """
    config = state.config
    if config.features is not None:
        return
    for explainer in state.explainers.values():
        known = explainer.importance
        if len(known) + len(x) <= config.max_features:
            continue
        grouped = {name for members in config.groups.values() for name in members}
        new = [name for name in x if name not in known and name not in grouped]
        if new and len(known) + len(new) > config.max_features:
            raise InvalidRecordError("too_large", "x", _expected(config), f"{len(known)} and {len(new)} more")


def _expected(config: ModelConfig) -> str:
    return f"at most {config.max_features} features at a time (max_features), or `features` that declare them"
