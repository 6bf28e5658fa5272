"""Shifts, compiled: an observation goes into its block, and a block of increments into the evidence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import compiled

SUM, SEEN = range(2)
"""Rows of a block: by feature the sum of its increments, and at which observation, as `N` counts, it was named last."""

N, SKIPPED, FILLED, LAST = range(4)
"""Counts beside a block: the observations so far, with those that were left out as an increment was not finite; these;
the observations in the block; the number of the last one in the stream."""

MEAN, SLACK, SCALE, LOW, HIGH = range(5)
"""Rows of a reference: by feature the importance, what a change is at least, the spread of a block's mean,
and the least and the largest value that a block counts as."""

CUSUM, ONSET, MOVED, BLOCKS = range(4)
"""Rows of the path, by feature and direction: a sum that is 0 where nothing has begun, the number of the first
observation after it was, and since then the sum of the differences from the reference, and the blocks."""

RATES = np.array([0.25, 0.5, 1.0])
"""How strongly evidence follows a block: small ones find small shifts, large ones find large shifts soon."""
_OF_PATH = 1
_LARGEST_GAIN = 3.0
"""What a block adds to the logarithm of the evidence at most: one absurd block tells nothing, five in a row do."""


@compiled
def add(block: Any, columns: Any, increments: Any, counts: Any, number: int, largest: float) -> bool:
    """Count an observation, and add its increments to its block; return False, adding none, where one is not finite.

    Parameters
    ----------
    block
        Shape (2, features), changed in place.
    columns, increments
        Shape (names,). A feature that is not among them has the increment 0.
    counts
        Shape (4,), changed in place.
    number
        The number of the observation in the stream.
    largest
        Beyond it a number counts as not finite.
    """
    counts[N] += 1
    counts[LAST] = number
    for i in range(len(columns)):
        if not abs(increments[i]) < largest:
            counts[SKIPPED] += 1
            return False
    for i in range(len(columns)):
        block[SUM, columns[i]] += increments[i]
        block[SEEN, columns[i]] = counts[N]
    counts[FILLED] += 1
    return True


@compiled
def gather(means: Any, reference: Any, next_number: int, evidence: Any, path: Any) -> float:
    """Gather what a block says for a shift, in place; return the sum of the evidence over everything.

    With u the difference from the reference in one direction, less the slack, per spread of a block and times a rate r,

        psi(u) = ln(1 + u + u^2 / 2) for u > 0, -ln(1 - u + u^2 / 2) otherwise,      R <- (1 + R) exp(psi(u) - r^2 / 2).

    psi is Catoni's (2012): E exp(psi(u) - r^2 / 2) <= 1 where u has a mean of at most 0 and a variance of at most r^2,
    whatever its tails are. So the mean of R less the number of blocks is a supermartingale, and the mean of R stays
    below a level L for L blocks on average at least: the e-detector of Shin, Ramdas and Rinaldo (2022).

    Parameters
    ----------
    means
        Shape (features,): mean increments of the block.
    reference
        Shape (5, features).
    next_number
        The number of the first observation of the next block.
    evidence
        Shape (features, 2, rates): R upwards and downwards.
    path
        Shape (4, features, 2).
    """
    total = 0.0
    for j in range(len(means)):
        scale = reference[SCALE, j]
        difference = means[j] - reference[MEAN, j]
        counted = min(max(means[j], reference[LOW, j]), reference[HIGH, j]) - reference[MEAN, j]
        for side in range(2):
            towards = counted if side == 0 else -counted
            for i in range(len(RATES)):
                gain = -_LARGEST_GAIN
                if scale > 0.0:
                    u = RATES[i] * (towards - reference[SLACK, j]) / scale
                    gain = math.log(1.0 + u + 0.5 * u * u) if u > 0.0 else -math.log(1.0 - u + 0.5 * u * u)
                    gain = min(gain, _LARGEST_GAIN) - 0.5 * RATES[i] * RATES[i]
                evidence[j, side, i] = (1.0 + evidence[j, side, i]) * math.exp(gain)
                total += evidence[j, side, i]
                if i == _OF_PATH:
                    path[CUSUM, j, side] += gain
            if path[CUSUM, j, side] > 0.0:
                path[MOVED, j, side] += difference
                path[BLOCKS, j, side] += 1.0
            else:
                path[CUSUM, j, side] = path[MOVED, j, side] = path[BLOCKS, j, side] = 0.0
                path[ONSET, j, side] = next_number
    return total
