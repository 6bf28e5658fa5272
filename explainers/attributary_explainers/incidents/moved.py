"""Comparison of all features' values before and since an incident began."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..inputs.monitor import InputMonitor, Reference
from ..loss_shift.distance import kuiper, kuiper_quantile
from ..wording import show_number
from .incident import MOVED, Involved

_FEWEST_BLOCKS = 20
"""Blocks without which it is not known how the values of a feature hang together."""
_MEMORY = 80
"""Blocks that the kept numbers are of, at most."""
_NOTABLE = 0.25
"""Spans of the middle half by which a median has to move to be what is said."""


def moved_features(
    inputs: InputMonitor, before: Mapping[Any, Reference], n_since: int, level: float
) -> tuple[Involved, ...]:
    """Return the features whose distribution moved beyond chance.

    Only features with numbers are compared. The furthest moved comes first.

    It is Kuiper's test of the kept numbers of before and the latest ones, of as many independent ones as these are
    worth. Some feature comes out that has not moved with the probability `level` at most.

    Parameters
    ----------
    n_since
        Observations since it surely began, of which the latest 50 are compared.
    """
    found, quantile = [], kuiper_quantile(level / max(len(before), 1))
    for name, (summary, kept, n_blocks, independent) in before.items():
        now = [one for one in inputs.latest(name, n_since) if isinstance(one, float)]
        worth = independent * len(now) / 50.0
        if n_blocks < _FEWEST_BLOCKS or worth < 1.0 or not kept:
            continue
        spread = 1.0 / worth + 1.0 / min(len(kept), min(n_blocks, _MEMORY) * independent)
        beyond = kuiper(np.array(kept), len(kept), np.sort(now), len(now)) - quantile * math.sqrt(spread)
        if beyond > 0.0:
            found.append((beyond, Involved(name, moved=True, said=_said(summary.quantiles, np.array(now)))))
    return tuple(one for _, one in sorted(found, key=lambda one: -one[0]))


def _said(before: tuple[float, ...], now: Any) -> str:
    low, lower, middle, upper, high = before[2:7]
    median = float(np.median(now))
    if abs(median - middle) > _NOTABLE * (upper - lower):
        return f"{MOVED}its median was {show_number(middle)}, is {show_number(median)}"
    ends = [show_number(float(end)) for end in (low, high, *np.quantile(now, (0.1, 0.9)))]
    return f"{MOVED}it was mostly {ends[0]} to {ends[1]}, is {ends[2]} to {ends[3]}"
