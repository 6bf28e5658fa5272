"""Checks how large an observation is: no single observation may stop the worker, whoever writes it.

Explaining d features costs in the order of d², and every observation may end in a reservoir or a window of the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attributary_topics import InvalidRecordError, Observation

from ..config.models import ModelConfig
from .model_state import ModelState

MAX_NAME_LENGTH = 249
"""Longest name of a feature that is not declared, in characters: it is a label in metrics."""


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
