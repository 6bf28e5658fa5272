"""Kernels that keep draws of numbers near what has been: a regression says anything of what it has not seen.

Where many features follow few influences, or a feature has come loose from the others for a while, the covariance has
directions of hardly any variance, and large coefficients that cancel along all others. An observation that leaves them
by a little is told a mean that lies hundreds of spreads away, and a model whose loss or score is unbounded has a single
one of these draws decide an importance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiled import compiled

BEYOND = 0.5
"""Draws and what is told of a feature lie no further outside of its values than this share of their range.

Of five hundred stored values of a Gaussian that is three standard deviations beyond the outermost one: what fits is as
it was, of a feature that rises all the time, too, for the observation's own value is one of them.
"""


@compiled
def ends(rows: Any, slots: Any) -> Any:
    """Return the smallest and the largest stored value of each feature; NaN where there is none.

    Parameters
    ----------
    rows, slots
        Stored rows by slot, and those that there are.
    """
    low, high = np.full(rows.shape[1], np.nan), np.full(rows.shape[1], np.nan)
    for r in range(len(slots)):
        row = rows[slots[r]]
        for j in range(len(row)):
            value = row[j]
            if not np.isnan(value):
                if not low[j] <= value:
                    low[j] = value
                if not high[j] >= value:
                    high[j] = value
    return low, high


@compiled
def spans(x: Any, least: Any, most: Any) -> Any:
    """Return the smallest and the largest value that a draw of each feature may have.

    Parameters
    ----------
    x
        The observation, shape (features,): its own values are possible ones.
    least, most
        See `ends`.
    """
    low, high = x.copy(), x.copy()
    for j in range(len(x)):
        if not np.isnan(least[j]):
            if not low[j] <= least[j]:
                low[j] = least[j]
            if not high[j] >= most[j]:
                high[j] = most[j]
        more = BEYOND * (high[j] - low[j])
        low[j] -= more
        high[j] += more
    return low, high


@compiled
def within(value: float, low: float, high: float) -> float:
    """Return the value, or the end of the span that it lies beyond."""
    if value < low:
        return low
    if value > high:
        return high
    return value


@compiled
def shifted(
    value: float, told: float, told_of_row: float, low: float, high: float, center: float, scale: float, mean: float
) -> float:
    """Return a stored number, moved by how much more is told of the observation than of the stored row.

    Parameters
    ----------
    told, told_of_row
        What the kept features say, in units of the feature's spread, less its mean in these units.
    low, high
        See `spans`.
    """
    least, most = (low - center) / scale - mean, (high - center) / scale - mean
    move = within(told, least, most) - within(told_of_row, least, most)
    return value if move == 0.0 else within(value + scale * move, low, high)
