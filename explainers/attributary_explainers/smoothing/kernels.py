"""Smoothing, compiled: importance and its standard error after one more observation.

A call takes longer than what these do, and so does each array that it is given: so the state is in two arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import compiled

MEAN, VARIANCE, SEEN = range(3)
"""Rows of `SmoothedImportance`'s array: by feature the mean, the variance, and the last observation that named it."""

RETIRED, TWICE, OWN, LIVE = range(4)
"""Rows of `RowInfluence`'s array; from the last one on there is one for each slot of the reservoir."""


@compiled
def smooth(
    rate: float, columns: Any, increments: Any, parts: Any, slots: Any, n: int, width: int, moments: Any, table: Any
) -> None:
    """Add the increments of one observation to the means, their variances and the influences, in place.

    Parameters
    ----------
    rate
        The observation's share in the mean; all earlier ones lose it.
    columns, increments
        Shape (players,): the features that the observation names. All others have the increment 0.
    parts
        Shape (players, draws): each draw's part, whose mean is the increment; no column where they are not known.
    slots
        Shape (players, draws), or (1, draws) where all players share them: the slots that were drawn from.
    n
        The number of the observation, from 1 on.
    width
        How many columns of `moments` and `table` are in use.
    """
    decay = 1.0 - rate
    for z in range(LIVE, table.shape[0]):
        for f in range(width):
            table[z, f] *= decay
    for f in range(width):
        table[RETIRED, f] *= decay * decay
        table[TWICE, f] *= decay * decay
        table[OWN, f] = -moments[MEAN, f]
    k, n_draws = parts.shape
    for i in range(k):
        f = columns[i]
        table[OWN, f] = increments[i] - moments[MEAN, f]
        moments[SEEN, f] = n
    if n_draws > 0 and n > 1:
        drawn = np.zeros(table.shape[0] - LIVE)
        for i in range(k):
            f = columns[i]
            row = i if slots.shape[0] > 1 else 0
            for j in range(n_draws):
                drawn[slots[row, j]] += (parts[i, j] - moments[MEAN, f]) * (rate / n_draws)
            total = 0.0
            for j in range(n_draws):
                z = slots[row, j]
                if drawn[z] != 0.0:
                    table[LIVE + z, f] += drawn[z]
                    total += drawn[z] * drawn[z]
                    drawn[z] = 0.0
            table[TWICE, f] += total
    for f in range(width):
        difference = table[OWN, f]
        step = rate * difference
        moments[MEAN, f] += step
        moments[VARIANCE, f] = decay * (moments[VARIANCE, f] + difference * step)
        table[OWN, f] = 0.0 if n == 1 else step


@compiled
def stored_in(slot: int, width: int, table: Any) -> None:
    """Move the last observation's influence to the slot that it is stored in; -1 for none."""
    for f in range(width):
        own = table[OWN, f]
        if slot < 0:
            table[RETIRED, f] += own * own
        else:
            table[RETIRED, f] += table[LIVE + slot, f] * table[LIVE + slot, f]
            table[LIVE + slot, f] = own
        table[OWN, f] = 0.0
