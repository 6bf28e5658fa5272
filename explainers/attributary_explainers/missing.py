"""Missing values: None and NaN in an observation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from .predictions import is_usable
from .typing import Features, Prediction
from .validation import check_choice

MISSING_NAMES = ("value", "absent", "skip")
"""Policies that explainers know by name."""

_PLAIN = frozenset((int, str, bool))
"""Types without a missing value."""


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, or pandas' NA or NaT."""
    if isinstance(value, (Real, Decimal)):
        try:
            return math.isnan(value)
        except OverflowError:  # an integer of 400 digits
            return False
        except ValueError:  # Decimal's signalling NaN
            return True
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # pandas' own, without importing it


def has_missing(x: Features) -> bool:
    """Return whether some feature of an observation is missing."""
    for value in x.values():  # asked of every observation: `is_missing` of each value would take ten times as long
        kind = type(value)
        if (value != value) if kind is float else (kind not in _PLAIN and is_missing(value)):
            return True
    return False


def can_be_drawn(x: Features, y_pred: Prediction) -> bool:
    """Return whether an observation may be drawn into other rows.

    It may not where an infinite value leaves no usable prediction: drawn, it would cost other rows their explanation
    too. Finite rows are stored even while the model has learnt nothing and predicts nothing.
    """
    return is_usable(y_pred) or not any(
        isinstance(value, (float, np.floating)) and math.isinf(value) for value in x.values()
    )


def drop_missing(x: Features) -> dict[Any, Any]:
    """Return a copy of an observation without its missing features."""
    return {name: value for name, value in x.items() if not is_missing(value)}


def check_missing(missing: object) -> str | dict[Any, Any]:
    """Return a valid `missing` policy, or raise InvalidParameterError."""
    return dict(missing) if isinstance(missing, Mapping) else check_choice("missing", missing, MISSING_NAMES)


def read_missing(x: Features, policy: str | Mapping[Any, Any]) -> Features | None:
    """Return the observation by the policy; None where it is left out.

    With a mapping, a missing feature that is not in it is left away, as with `absent`.
    """
    if policy == "value" or not has_missing(x):
        return x
    if isinstance(policy, Mapping):
        missing = {name for name, value in x.items() if is_missing(value)}
        kept = {name: value for name, value in x.items() if name not in missing or name in policy}
        return {name: policy[name] if name in missing else value for name, value in kept.items()}
    return None if policy == "skip" else drop_missing(x)
