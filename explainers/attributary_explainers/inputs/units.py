"""Recognises a feature in another unit, and features that were swapped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..snapshots import Stored
from ..typing import Array
from ..wording import show_number

_GRID = np.linspace(0.05, 0.95, 19)
_FITS = 0.2
"""Mean distance of quantiles, in spans from the tenth to the ninetieth hundredth, below which two samples agree."""
_BETTER = 3.0
"""So many times further apart from what it was than from what the other one was a swapped feature is."""
_FEWEST = 20
_FEWEST_DIFFERENT = 5
"""Different values without which no unit can be told from another."""
_BEYOND = 0.5
"""Share of the range by which values may lie beyond it, in another stretch of the same series."""
_JUMP = 2.0
"""So many times the largest step may be the one at which the unit changed."""
_CLEAR = 0.08
"""By so much another unit has to be further off, or it is said by how much the values are multiplied."""


@dataclass(frozen=True, slots=True)
class UnitChange(Stored):
    """A unit that explains how values changed: `factor` times, plus `offset`."""

    factor: float
    offset: float
    words: str
    """What the values are, as in `12 times what it was`."""


_FACTORS = (
    *(12.0, 100.0, 1000.0, 60.0, 3600.0, 24.0, 7.0, 365.25, 10.0, 1e6),
    *(2.54, 0.3048, 1.609344, 0.45359237, 3.6, 3.785411784),
)
_NAMED = (
    (1.8, 32.0, "in degrees Fahrenheit, and was in Celsius"),
    (1.0 / 1.8, -32.0 / 1.8, "in degrees Celsius, and was in Fahrenheit"),
    (1.0, 273.15, "in kelvin, and was in degrees Celsius"),
    (1.0, -273.15, "in degrees Celsius, and was in kelvin"),
    (-1.0, 0.0, "with the other sign"),
    (-1.0, 1.0, "one minus what it was"),
)
_COMPLEMENT = UnitChange(*_NAMED[-1])

_KNOWN = tuple(
    UnitChange(factor, offset, words)
    for factor, offset, words in (
        *((factor, 0.0, f"{show_number(factor)} times what it was") for factor in _FACTORS),
        *((1.0 / factor, 0.0, f"divided by {show_number(factor)}") for factor in _FACTORS),
        *_NAMED,
    )
)
_USUAL = tuple(
    one for one in _KNOWN if (one.factor, one.offset) in {(12, 0), (100, 0), (1000, 0), (1.8, 32), (1, 273.15)}
)
"""What is likely enough to be recognised by a stretch of values alone."""


def unit_of(before: Sequence[float], after: Sequence[float], last: float | None = None) -> UnitChange | None:
    """Return the known unit change that maps earlier to later values.

    Where more than one does, it is a factor that is estimated. None where no factor does, where the values are as they
    were, or where there are fewer than 20, or fewer than five different ones, of either.

    Of a series whose values hang together those after are a stretch of it, which says little of their distribution.
    Then it is the one usual unit by which they are within the range of those before, and go on from the last of these.

    Parameters
    ----------
    after
        In the order in which they came.
    last
        The value that came just before them; None where it is not known.
    """
    if min(len(before), len(after)) < _FEWEST or min(len(set(before)), len(set(after))) < _FEWEST_DIFFERENT:
        return None
    old, new = (np.quantile(np.array(values, dtype=np.float64), _GRID) for values in (before, after))
    if _distance(old, new) < 2.0 * _FITS:
        return None
    if _independent(after) < _FEWEST:
        held = [one for one in _USUAL if _continues(one, before, after, last)]
        return held[0] if len(held) == 1 else None
    is_share = min(before) >= 0.0 and max(before) <= 1.0
    known = [one for one in _KNOWN if is_share or one != _COMPLEMENT]
    apart = [_distance(np.sort(one.factor * old + one.offset), new) for one in known]
    ranked = sorted(range(len(known)), key=apart.__getitem__)
    first, second = ranked[:2]
    if exact := [i for i in ranked if apart[i] < _FITS and _is_exact(known[i].factor, before, after)]:
        return known[exact[0]]
    factor = float(old @ new / (old @ old))
    by_factor = _distance(factor * old, new) if factor > 0.0 else math.inf
    is_clear = apart[second] > apart[first] + _CLEAR or (known[first].offset != 0.0 and apart[first] < by_factor)
    if apart[first] < _FITS and is_clear:
        return known[first]
    return UnitChange(factor, 0.0, _estimated(factor)) if by_factor < _FITS else None


def _independent(values: Sequence[float]) -> float:
    """Return how many independent values an autoregressive series is worth."""
    off = np.array(values) - np.mean(values)
    lagged = float(off[1:] @ off[:-1]) / (float(off @ off) or 1.0)
    return len(values) * (1.0 - lagged) / (1.0 + lagged) if lagged > 0.0 else float(len(values))


def _continues(unit: UnitChange, before: Sequence[float], after: Sequence[float], last: float | None) -> bool:
    """Return whether the later values continue the earlier, in the unit."""
    low, high = (unit.factor * end + unit.offset for end in (min(before), max(before)))
    room = _BEYOND * (high - low)
    if min(after) < low - room or max(after) > high + room:
        return False
    most = _JUMP * float(np.abs(np.diff(after)).max())
    return last is None or abs(unit.factor * last + unit.offset - after[0]) <= most


def _is_exact(factor: float, before: Sequence[float], after: Sequence[float]) -> bool:
    """Return whether whole numbers turned into multiples of the factor."""
    return factor > 1.0 and not any(value % 1.0 for value in before) and not any(value % factor for value in after)


def _estimated(factor: float) -> str:
    if factor >= 1.0:
        return f"about {show_number(float(f'{factor:.2g}'))} times what it was"
    return f"about one part in {show_number(float(f'{1.0 / factor:.2g}'))} of what it was"


def swapped_with(name: Any, before: Mapping[Any, Sequence[float]], after: Mapping[Any, Sequence[float]]) -> Any | None:
    """Return the feature that has swapped values with `name`, or None."""
    if len(before[name]) < _FEWEST or len(after[name]) < _FEWEST:
        return None
    quantiles = {
        other: tuple(np.quantile(np.array(values[other], dtype=np.float64), _GRID) for values in (before, after))
        for other in before
        if len(before[other]) >= _FEWEST and len(after.get(other, ())) >= _FEWEST
    }
    old, new = quantiles[name]
    best: tuple[float, Any] | None = None
    for other, (other_old, other_new) in quantiles.items():
        if other == name or _distance(old, new) < 2.0 * _FITS:
            continue
        apart = max(_distance(old, other_new), _distance(other_old, new))
        # The other one has to have moved too: two columns that are alike are no swap.
        if apart < _FITS and _distance(other_old, other_new) > _BETTER * apart and (best is None or apart < best[0]):
            best = apart, other
    return None if best is None else best[1]


def _distance(old: Array, new: Array) -> float:
    """Return the mean distance of two samples' quantiles, in spans of `old`."""
    span = float(old[-2] - old[1])
    if not span > 0.0:
        return 0.0 if np.array_equal(old, new) else math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        apart = float(np.abs(old - new).mean()) / span
    return apart if apart == apart else math.inf
