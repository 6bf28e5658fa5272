"""Checks at the first row that the named features are there.

A typo is refused before anything is explained. Features may appear and vanish, so that not every one has to be there:
of a group one is enough.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..errors import InvalidParameterError
from ..wording import did_you_mean

_SHOWN = 10


def check_groups_there(groups: Mapping[Any, Sequence[Any]], x: Collection[Any]) -> None:
    """Refuse groups if a group has no feature in the first row.

    Raises
    ------
    InvalidParameterError
        Names the group, what the row has, and what may have been meant.
    """
    for group, features in groups.items():
        if not any(feature in x for feature in features):
            expected = (
                f"made of features that the rows have; the first row has none of the group {group!r} (it has {_of(x)})"
            )
            raise InvalidParameterError("groups", expected, list(features), hint=did_you_mean(features[0], x))


def check_features_there(parameter: str, features: Collection[Any], x: Collection[Any]) -> None:
    """Refuse features if the first row has none, or any looks misspelt.

    Raises
    ------
    InvalidParameterError
        Names the feature, what the row has, and what may have been meant.
    """
    absent = [feature for feature in features if feature not in x]
    others = [feature for feature in x if feature not in features]
    for feature in absent:
        hint = did_you_mean(feature, others)
        if hint or len(absent) == len(features):
            expected = f"made of features that the rows have (the first row has {_of(x)})"
            raise InvalidParameterError(parameter, expected, feature, hint=hint)


def _of(x: Collection[Any]) -> str:
    names = [repr(name) for name in x]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "") or "none"
