"""Smoothing: importance and what its standard error is made of, after one more observation."""

from __future__ import annotations

from typing import Any

from .buffers import floats

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import pow, sqrt
else:
    from math import pow, sqrt

MEAN, SLOW, SPREAD, VARIANCE, SEEN = range(5)
"""Rows of the moments: by feature the mean, the slower mean, the smoothed square of their difference, the variance of
the increments, and the number of the last observation that named the feature."""

SLOW_TOTAL, SPREAD_TOTAL, FAST_FAST, FAST_SLOW, SLOW_SLOW, EXPECTED_SPREAD, SPREAD_SQUARES = range(7)
"""Places of the weights: the sums of the weights of the slow mean and of the smoothed squares, which correct these for
their start; the inner products of the weights of the fast and the slow mean; the expectation of the smoothed square per
unit of long-run variance; the sum of the squared weights of that smoothing."""

_LONGER = cython.declare(cython.double, 10.0)
"""How many times slower than the mean that of its squared differences from the second mean is."""
_WARM_UP = cython.declare(cython.longlong, 20)
"""Observations before the first difference counts: the two means are nearly the same until then."""


@cython.cclass
class Smoother:
    """Adds increments to smoothed means and their spreads, in memory that `SmoothedImportance` holds.

    Parameters
    ----------
    weights
        Shape (7,), see `SLOW_TOTAL`; changed in place.
    moments
        Shape (5, features), see `MEAN`; changed in place.
    columns
        Shape (players,): the features that an observation names. All others have the increment 0.
    increments
        Shape (players,): room for the increments of the next observation.
    """

    increments = cython.declare(object, visibility="readonly")
    _increments: cython.double[::1]
    _weights: cython.double[::1]
    _moments: cython.double[:, ::1]
    _columns: cython.Py_ssize_t[::1]
    _by_feature: cython.double[::1]

    def __init__(self, weights: Any, moments: Any, columns: Any, increments: Any) -> None:
        self.increments, self._increments = increments, increments
        self._weights, self._moments, self._columns = weights, moments, columns
        self._by_feature = floats(max(1, moments.shape[1]))

    # hot
    def smooth(
        self,
        alpha: cython.double,
        slower: cython.double,
        rate: cython.double,
        times: cython.double,
        n: cython.longlong,
    ) -> None:
        """Add the increments of one observation to the means and their spreads.

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
        n
            The number of the observation, from 1 on.
        """
        i: cython.Py_ssize_t
        f: cython.Py_ssize_t
        slow: cython.double = alpha / slower
        spread: cython.double = alpha / _LONGER
        expected: cython.double
        increment: cython.double
        difference: cython.double
        step: cython.double
        apart: cython.double
        if times > 1.0:
            slow = 1.0 - pow(1.0 - slow, times)
            spread = 1.0 - pow(1.0 - spread, times)
        self._weights[0] += slow * (1.0 - self._weights[0])
        slow = min(slow / self._weights[0], 1.0)
        self._weights[2] = (1.0 - rate) * (1.0 - rate) * self._weights[2] + rate * rate
        self._weights[3] = (1.0 - rate) * (1.0 - slow) * self._weights[3] + rate * slow
        self._weights[4] = (1.0 - slow) * (1.0 - slow) * self._weights[4] + slow * slow
        if n > _WARM_UP:
            self._weights[1] += spread * (1.0 - self._weights[1])
            spread = min(spread / self._weights[1], 1.0)
            expected = self._weights[2] - 2.0 * self._weights[3] + self._weights[4]
            self._weights[5] += spread * (expected - self._weights[5])
            self._weights[6] = (1.0 - spread) * (1.0 - spread) * self._weights[6] + spread * spread
        else:
            spread = 0.0
        for f in range(self._moments.shape[1]):
            self._by_feature[f] = 0.0
        for i in range(self._columns.shape[0]):
            f = self._columns[i]
            self._by_feature[f] = self._increments[i]
            self._moments[4, f] = n
        for f in range(self._moments.shape[1]):
            increment = self._by_feature[f]
            difference = increment - self._moments[0, f]
            step = rate * difference
            self._moments[0, f] += step
            self._moments[3, f] = (1.0 - rate) * (self._moments[3, f] + difference * step)
            self._moments[1, f] += slow * (increment - self._moments[1, f])
            if spread > 0.0:
                apart = self._moments[0, f] - self._moments[1, f]
                self._moments[2, f] += spread * (apart * apart - self._moments[2, f])


def twice_smoothed(
    slower: cython.double,
    n: cython.longlong,
    squares: cython.double,
    weights: cython.double[::1],
    moments: cython.double[:, ::1],
    found: cython.double[:, ::1],
) -> None:
    """Write the mean smoothed once more, by the slow mean's rate, and its standard error: shape (2, features).

    Parameters
    ----------
    slower
        How many times slower than the mean the second mean is.
    n, squares
        Of the increments so far: their number, and the sum of the squared weights of the mean.
    """
    f: cython.Py_ssize_t
    fast: cython.double = weights[2]
    both: cython.double = weights[3]
    slow: cython.double = weights[4]
    expected: cython.double = weights[5]
    of_fast: cython.double = (slower * slower * slow - 2.0 * slower * both + fast) / (
        (slower - 1.0) * (slower - 1.0) * fast
    )
    of_spread: cython.double = fast / expected if expected > 0.0 else 0.0
    of_variance: cython.double = squares / (1.0 - squares) if expected <= 0.0 and n > 1 and squares < 1.0 else 0.0
    for f in range(moments.shape[1]):
        found[0, f] = (slower * moments[1, f] - moments[0, f]) / (slower - 1.0)
        found[1, f] = sqrt((moments[2, f] * of_spread + moments[3, f] * of_variance) * of_fast)
