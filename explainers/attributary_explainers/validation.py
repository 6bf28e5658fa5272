"""Checks of constructor arguments, with the same messages everywhere."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidParameterError
from .typing import Groups
from .wording import did_you_mean

LARGEST = 1e150
"""Beyond it the square of a number, or a sum of such, may not be finite."""


def check_integer(parameter: str, value: object, *, minimum: int) -> int:
    """Return an int >= `minimum`, or raise InvalidParameterError."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise InvalidParameterError(parameter, f"an integer >= {minimum}", value)
    return int(value)


def generator_of(seed: int | None) -> np.random.Generator:
    """Return the generator of a seed, or raise InvalidParameterError."""
    try:
        return np.random.default_rng(seed)
    except (ValueError, TypeError):
        raise InvalidParameterError("seed", "None or an integer >= 0", seed) from None


def check_number(
    parameter: str,
    value: object,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    minimum: float = -math.inf,
    maximum: float = math.inf,
) -> float:
    """Return a float within the bounds, or raise InvalidParameterError."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:  # an integer that no float holds
        number = math.nan
    if not (above < number < below and minimum <= number <= maximum):
        limits = [f"a number > {above:g}"] if above > -math.inf else ["a number"]
        limits = [f"a number >= {minimum:g}"] if minimum > -math.inf else limits
        limits += [f"< {below:g}"] if below < math.inf else []
        limits += [f"<= {maximum:g}"] if maximum < math.inf else []
        raise InvalidParameterError(parameter, " and ".join(limits), value)
    return number


def check_choice(
    parameter: str, value: object, choices: Collection[str], *, elsewhere: Mapping[str, str] | None = None
) -> str:
    """Return `value`, or raise InvalidParameterError where it is no choice.

    `elsewhere` has, by the name that a choice has elsewhere, in small letters, the choice: the error names it.
    """
    if not isinstance(value, str) or value not in choices:
        meant = (elsewhere or {}).get(str(value).lower())
        hint = did_you_mean(value, choices) if meant is None else did_you_mean(meant, choices)
        raise InvalidParameterError(parameter, "one of " + ", ".join(sorted(choices)), value, hint=hint)
    return value


def check_groups(groups: Groups | None) -> dict[str, tuple[Any, ...]]:
    """Return a copy of disjoint `groups`, or raise InvalidParameterError."""
    given: object = groups
    if given is not None and not isinstance(given, Mapping):
        expected = 'a mapping of names to lists of features, as {"money": ["salary"]}'
        raise InvalidParameterError("groups", expected, given)
    checked: dict[str, tuple[Any, ...]] = {}
    for name, features in (groups or {}).items():
        checked[name] = () if isinstance(features, str) else tuple(features)
    members = [feature for features in checked.values() for feature in features]
    if len(members) != len(set(members)) or not all(checked.values()) or checked.keys() & set(members):
        raise InvalidParameterError(
            "groups", "non-empty lists of features, each feature in one group, no group named like a feature", groups
        )
    return checked


def is_representable(values: npt.ArrayLike) -> bool:
    """Return whether values are finite, and sums of their squares too."""
    return bool((np.abs(values) < LARGEST).all())
