"""Limits on the observations that a model is given.

No observation may stop the worker or ruin the model, and none is empty. Explaining d features costs in the order of d²,
and every observation may end in a reservoir or a window of the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from attributary_explainers import read_missing
from attributary_explainers.monitor.step import AbsurdPredictionError as AbsurdError
from attributary_topics import InvalidRecordError, Observation

from ...config.models import ModelConfig
from ..model_state import ModelState
from .ranges import ALL_OTHERS
from .vocabulary import n_replaced

MAX_NAME_LENGTH = 249
"""Longest name of a feature that is not declared, in characters: it is a label in metrics."""


LABELLED = ("probabilities", "label")
"""What the losses of classifiers read of a prediction."""


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


def features_of_model(x: dict[str, Any], policy: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the features for the model, by its policy for missing values.

    That is `x` itself where the policy changes nothing.

    By `absent` and by `skip`, which differ in what is explained, it is given none that is missing.
    """
    if None not in x.values():  # as decoding leaves it: nothing else is missing
        return x
    read = read_missing(x, "absent" if policy == "skip" else policy)
    return x if read is x else dict(read or {})


def n_missing(x: dict[str, Any]) -> int:
    """Return how many values are missing."""
    return list(x.values()).count(None)


def check_something_there(observation: Observation, config: ModelConfig) -> None:
    """Check that the model is given a feature at least.

    Raises
    ------
    InvalidRecordError
        `missing_feature`.
    """
    if not features_of_model(observation.x, config.missing):
        policy = config.missing if isinstance(config.missing, str) else "a mapping"
        expected = f"at least one feature that is not missing (`missing` of the model is {policy})"
        raise InvalidRecordError("missing_feature", "x", expected, observation.x)


def within_bounds(observation: Observation, config: ModelConfig) -> Observation:
    """Check an observation's numbers against their bounds, or clip them.

    They are clipped where that is configured.

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
        ends = [f"at {word} {bound:.15g}" for word, bound in (("least", low), ("most", high)) if bound is not None]
        expected = f"a number of {' and '.join(ends)} (bounds of the model; `clip: true` would take the nearest)"
        raise InvalidRecordError("out_of_bounds", f"x.{name}", expected, x[name])
    return replace(observation, x={**x, **clipped})


class AbsurdPredictionError(Exception):
    """Absurd prediction of a model, with the remedy in the message.

    Parameters
    ----------
    error
        What is wrong with the prediction.
    """

    def __init__(self, model_id: str, error: AbsurdError) -> None:
        super().__init__(
            f"{error}. The observation is neither explained nor learnt. If all observations of the "
            f"model end here, a number that it learnt has ruined it: start it afresh with `attributary models reset "
            f"{model_id}`, and set models.{model_id}.bounds, which refuse such numbers or, with `clip: true`, cut them"
        )


def bounded(state: ModelState, observation: Observation, *, has_text: bool) -> Observation:
    """Check label and ranges; replace excess categories by `__other__`.

    Returns the observation and counts the replaced categories.

    Labels and categories are bounded where the model learns: one that does not never grows. What is known depends on
    earlier observations: refused ones must be remembered as those on which the model raises.

    Parameters
    ----------
    has_text
        Whether a feature is text, which a category is.

    Raises
    ------
    InvalidRecordError
        `too_many_labels` or `out_of_range`.
    """
    learns = state.config.learn
    if learns and state.loss.output in LABELLED:
        state.vocabulary.check_label(observation.y)
    state.ranges.check(observation.x)
    if not (learns and has_text):
        return observation
    x = state.vocabulary.read(observation.x)
    if x is observation.x:
        return observation
    state.n_other_categories += n_replaced(observation.x, x)
    return replace(observation, x=x)


def _expected(config: ModelConfig) -> str:
    return f"at most {config.max_features} features at a time (max_features), or `features` that declare them"
