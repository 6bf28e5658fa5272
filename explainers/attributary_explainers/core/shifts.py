# cython: infer_types=True
"""Shifts: observations go into blocks, and full blocks into evidence."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import exp, log
else:
    from math import exp, log

SUM, SEEN = range(2)
"""Rows of a block: by feature the sum of its increments, and at which observation, as `N` counts, it was named last."""

N, SKIPPED, FILLED, LAST = range(4)
"""Counts beside a block: the observations so far, with those that were left out as an increment was not finite; these;
the observations in the block; the number of the last one in the stream."""

# The same as C knows them.
_SUM = cython.declare(cython.int, 0)
_SEEN = cython.declare(cython.int, 1)
_N = cython.declare(cython.int, 0)
_SKIPPED = cython.declare(cython.int, 1)
_FILLED = cython.declare(cython.int, 2)
_LAST = cython.declare(cython.int, 3)

MEAN, SLACK, SCALE, LOW, HIGH = range(5)
"""Rows of a reference: by feature the importance, what a change is at least, the spread of a block's mean,
and the least and the largest value that a block counts as."""

CUSUM, ONSET, MOVED, BLOCKS = range(4)
"""Rows of the path, by feature and direction: a sum that is 0 where nothing has begun, the number of the first
observation after it was, and since then the sum of the differences from the reference, and the blocks."""

N_RATES = 3
"""Evidence follows a block at so many rates: small ones find small shifts, large ones find large shifts soon."""
_SLOWEST = cython.declare(cython.double, 0.25)
"""The first of these rates; each is twice the one before."""
_OF_PATH = cython.declare(cython.int, 1)
_LARGEST_GAIN = cython.declare(cython.double, 3.0)
"""What a block adds to the logarithm of the evidence at most: one absurd block tells nothing, five in a row do."""


# hot
def add(
    block: cython.double[:, ::1], columns: cython.Py_ssize_t[::1], increments: cython.const[cython.double][::1],
    counts: cython.longlong[::1], number: cython.longlong, largest: cython.double,
) -> int:  # fmt: skip
    """Count an observation, and add its increments if all are finite.

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

    Returns
    -------
    The number of observations in the block.
    """
    counts[_N] += 1
    counts[_LAST] = number
    for i in range(columns.shape[0]):
        if not abs(increments[i]) < largest:
            counts[_SKIPPED] += 1
            return counts[_FILLED]
    for i in range(columns.shape[0]):
        block[_SUM, columns[i]] += increments[i]
        block[_SEEN, columns[i]] = counts[_N]
    counts[_FILLED] += 1
    return counts[_FILLED]


def gather(
    means: cython.const[cython.double][::1], reference: cython.const[cython.double][:, ::1], next_number: cython.double,
    evidence: cython.double[:, :, ::1], path: cython.double[:, :, ::1],
) -> float:  # fmt: skip
    """Add a block's evidence of a shift, in place; return the whole sum.

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
    total: cython.double = 0.0
    for j in range(means.shape[0]):
        scale = reference[SCALE, j]
        difference = means[j] - reference[MEAN, j]
        counted = min(max(means[j], reference[LOW, j]), reference[HIGH, j]) - reference[MEAN, j]
        for side in range(2):
            towards = counted if side == 0 else -counted
            rate = _SLOWEST
            for i in range(evidence.shape[2]):
                gain = -_LARGEST_GAIN
                if scale > 0.0:
                    u = rate * (towards - reference[SLACK, j]) / scale
                    gain = log(1.0 + u + 0.5 * u * u) if u > 0.0 else -log(1.0 - u + 0.5 * u * u)
                    gain = min(gain, _LARGEST_GAIN) - 0.5 * rate * rate
                evidence[j, side, i] = (1.0 + evidence[j, side, i]) * exp(gain)
                total += evidence[j, side, i]
                if i == _OF_PATH:
                    path[CUSUM, j, side] += gain
                rate *= 2.0
            if path[CUSUM, j, side] > 0.0:
                path[MOVED, j, side] += difference
                path[BLOCKS, j, side] += 1.0
            else:
                path[CUSUM, j, side] = path[MOVED, j, side] = path[BLOCKS, j, side] = 0.0
                path[ONSET, j, side] = next_number
    return float(total)
