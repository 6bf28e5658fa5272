"""Smoothing, compiled: importance and what its standard error is made of, after one more observation.

A call takes longer than what it does, and so does each array that it is given: so the state is in two arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import compiled

MEAN, SLOW, SPREAD, VARIANCE, SEEN = range(5)
"""Rows of `SmoothedImportance`'s moments: by feature the mean, the slower mean, the smoothed square of their
difference, the variance of the increments, and the number of the last observation that named the feature."""

SLOW_TOTAL, SPREAD_TOTAL, FAST_FAST, FAST_SLOW, SLOW_SLOW, EXPECTED_SPREAD, SPREAD_SQUARES = range(7)
"""Places of `SmoothedImportance`'s weights: the sums of the weights of the slow mean and of the smoothed squares, which
correct these for their start; the inner products of the weights of the fast and the slow mean; the expectation of the
smoothed square per unit of long-run variance; the sum of the squared weights of that smoothing."""

LONGER = 10.0
"""How many times slower than the mean that of its squared differences from the second mean is."""
WARM_UP = 20
"""Observations before the first difference counts: the two means are nearly the same until then."""


@compiled
def smooth(
    alpha: float,
    slower: float,
    rate: float,
    times: int,
    columns: Any,
    increments: Any,
    n: int,
    weights: Any,
    moments: Any,
) -> None:
    """Add the increments of one observation to the means and their spreads, in place.

    Parameters
    ----------
    alpha
        Smoothing factor of the mean.
    slower
        How many times slower than the mean the second mean is.
    rate
        The observation's share in the mean; all earlier ones lose it.
    times
        The increments have the weight of as many observations.
    columns, increments
        Shape (players,): the features that the observation names. All others have the increment 0.
    n
        The number of the observation, from 1 on.
    """
    slow, spread = alpha / slower, alpha / LONGER
    if times > 1:
        slow, spread = 1.0 - math.pow(1.0 - slow, times), 1.0 - math.pow(1.0 - spread, times)
    weights[SLOW_TOTAL] += slow * (1.0 - weights[SLOW_TOTAL])
    slow = min(slow / weights[SLOW_TOTAL], 1.0)
    weights[FAST_FAST] = (1.0 - rate) * (1.0 - rate) * weights[FAST_FAST] + rate * rate
    weights[FAST_SLOW] = (1.0 - rate) * (1.0 - slow) * weights[FAST_SLOW] + rate * slow
    weights[SLOW_SLOW] = (1.0 - slow) * (1.0 - slow) * weights[SLOW_SLOW] + slow * slow
    if n > WARM_UP:
        weights[SPREAD_TOTAL] += spread * (1.0 - weights[SPREAD_TOTAL])
        spread = min(spread / weights[SPREAD_TOTAL], 1.0)
        expected = weights[FAST_FAST] - 2.0 * weights[FAST_SLOW] + weights[SLOW_SLOW]
        weights[EXPECTED_SPREAD] += spread * (expected - weights[EXPECTED_SPREAD])
        weights[SPREAD_SQUARES] = (1.0 - spread) * (1.0 - spread) * weights[SPREAD_SQUARES] + spread * spread
    else:
        spread = 0.0
    increment_of = np.zeros(moments.shape[1])
    for i in range(len(columns)):
        increment_of[columns[i]] = increments[i]
        moments[SEEN, columns[i]] = n
    decay = 1.0 - rate
    for f in range(moments.shape[1]):
        increment = increment_of[f]
        difference = increment - moments[MEAN, f]
        step = rate * difference
        moments[MEAN, f] += step
        moments[VARIANCE, f] = decay * (moments[VARIANCE, f] + difference * step)
        moments[SLOW, f] += slow * (increment - moments[SLOW, f])
        if spread > 0.0:
            apart = moments[MEAN, f] - moments[SLOW, f]
            moments[SPREAD, f] += spread * (apart * apart - moments[SPREAD, f])


@compiled
def twice_smoothed(slower: float, n: int, squares: float, weights: Any, moments: Any, found: Any) -> None:
    """Write the mean smoothed once more, by the slow mean's rate, and its standard error: shape (2, features).

    Parameters
    ----------
    slower
        How many times slower than the mean the second mean is.
    n, squares
        Of the increments so far: their number, and the sum of the squared weights of the mean.
    """
    fast, both, slow = weights[FAST_FAST], weights[FAST_SLOW], weights[SLOW_SLOW]
    of_fast = (slower * slower * slow - 2.0 * slower * both + fast) / ((slower - 1.0) * (slower - 1.0) * fast)
    expected = weights[EXPECTED_SPREAD]
    of_spread = fast / expected if expected > 0.0 else 0.0
    of_variance = squares / (1.0 - squares) if expected <= 0.0 and n > 1 and squares < 1.0 else 0.0
    for f in range(moments.shape[1]):
        found[0, f] = (slower * moments[SLOW, f] - moments[MEAN, f]) / (slower - 1.0)
        found[1, f] = math.sqrt((moments[SPREAD, f] * of_spread + moments[VARIANCE, f] * of_variance) * of_fast)
