"""Rows in which some features come from stored observations, as dicts.

A removed feature takes the value that the drawn observation had. If that observation lacked the feature, the row lacks
it too: absence is as much an observed fact as a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..typing import Features


def replace(x: Features, features: Iterable[Any], drawn: Features) -> dict[Any, Any]:
    """Return a copy of `x` with `features` from `drawn` (iPFI Definition 4)."""
    row = dict(x)
    for feature in features:
        if feature in drawn:
            row[feature] = drawn[feature]
        else:
            row.pop(feature, None)
    return row


def keep(x: Features, kept: Iterable[Any], drawn: Features, players: Mapping[Any, Sequence[Any]]) -> dict[Any, Any]:
    """Return a row: kept players from `x`, others drawn (iSAGE Algorithm 1).

    A feature of `drawn` that belongs to no player is absent, as it is in `x`.
    """
    row: dict[Any, Any] = {}
    held = set(kept)
    for player, features in players.items():
        source = x if player in held else drawn
        for feature in features:
            if feature in source:
                row[feature] = source[feature]
    return row
