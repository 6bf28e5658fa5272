"""Smoothing: the mean importance and the moments of its standard error."""

from __future__ import annotations

from typing import Any

from ..validation import check_number
from .buffers import floats

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import expm1, log1p, sqrt
else:
    from math import expm1, log1p, sqrt

MEAN, SLOW, SPREAD, VARIANCE, SEEN = range(5)
"""Rows of the moments: by feature the mean, the slower mean, the smoothed square of their difference, the variance of
the increments, and the number of the last observation that named the feature."""

SLOW_TOTAL, SPREAD_TOTAL, FAST_FAST, FAST_SLOW, SLOW_SLOW, EXPECTED_SPREAD, SPREAD_SQUARES = range(7)
"""Places of the sums that the standard error needs. With w the weights of the mean, v of the slow mean, and u of the
smoothed squares of their difference:

- SLOW_TOTAL, SPREAD_TOTAL: sums of v and of u, by which both are corrected for their start;
- FAST_FAST, FAST_SLOW, SLOW_SLOW: w·w, w·v and v·v;
- EXPECTED_SPREAD: the expectation of the smoothed square per unit of long-run variance;
- SPREAD_SQUARES: u·u.
"""

# The same as C knows them.
_MEAN = cython.declare(cython.int, 0)
_SLOW = cython.declare(cython.int, 1)
_SPREAD = cython.declare(cython.int, 2)
_VARIANCE = cython.declare(cython.int, 3)
_SEEN = cython.declare(cython.int, 4)
_SLOW_TOTAL = cython.declare(cython.int, 0)
_SPREAD_TOTAL = cython.declare(cython.int, 1)
_FAST_FAST = cython.declare(cython.int, 2)
_FAST_SLOW = cython.declare(cython.int, 3)
_SLOW_SLOW = cython.declare(cython.int, 4)
_EXPECTED_SPREAD = cython.declare(cython.int, 5)
_SPREAD_SQUARES = cython.declare(cython.int, 6)

_SPREAD_SLOWER = cython.declare(cython.double, 10.0)
"""How many times slower than the mean the smoothing of the squared differences is."""
_WARM_UP = cython.declare(cython.longlong, 20)
"""Observations before the first difference counts: the two means are nearly the same until then."""


@cython.cclass
class Weights:
    """Exponential weights: s_t = (1 - alpha) s_{t-1} + alpha v_t, s_0 = 0.

    After n steps they sum to 1 - (1 - alpha)^n (iPFI Theorem 2). Dividing by that sum gives an exact weighted
    mean from the first step on; `step` returns the step that such a mean takes.

    Parameters
    ----------
    alpha
        Valid range (0, 1]. Larger forgets faster; 2 / (N + 1) corresponds to a window of N observations.
    """

    alpha = cython.declare(cython.double, visibility="readonly")
    n = cython.declare(cython.longlong, visibility="public")
    total = cython.declare(cython.double, visibility="public")
    """Sum of the weights, 1 - (1 - alpha)^n, by its own recursion: exact where 1 - alpha rounds to 1."""
    squares = cython.declare(cython.double, visibility="public")
    """Sum of the squared normalised weights: one over the effective sample size. 1 until the second value."""

    def __init__(self, alpha: Any, n: int = 0, total: float = 0.0, squares: float = 1.0) -> None:
        self.alpha = check_number("alpha", alpha, above=0.0, maximum=1.0)
        self.n, self.total, self.squares = n, total, squares

    # hot
    @cython.ccall
    @cython.exceptval(check=False)
    def step(self, times: cython.double = 1.0) -> cython.double:
        """Count a value; return its share alpha / (1 - (1 - alpha)^n) of the mean.

        Parameters
        ----------
        times
            Valid range >= 1. The value has the weight of as many values together, 1 - (1 - alpha)^times, and all
            before lose as much: it stands for others that were passed over.
        """
        weight: cython.double = self.alpha
        rate: cython.double
        if times > 1.0 and weight < 1.0:
            weight = -expm1(times * log1p(-weight))
        self.total += weight * (1.0 - self.total)
        rate = min(weight / self.total, 1.0)
        self.n += 1
        self.squares = (1.0 - rate) * (1.0 - rate) * self.squares + rate * rate if self.n > 1 else 1.0
        return rate

    def copy(self) -> Weights:
        """Return a copy, which goes on by itself."""
        return Weights(self.alpha, self.n, self.total, self.squares)

    def __reduce__(self) -> Any:
        return Weights, (self.alpha, self.n, self.total, self.squares)

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {"alpha": self.alpha, "n": self.n, "total": self.total, "squares": self.squares}

    @staticmethod
    def from_snapshot(snapshot: Any) -> Weights:
        """Return the weights that the snapshot was taken of."""
        return Weights(snapshot["alpha"], snapshot["n"], snapshot["total"], snapshot["squares"])


@cython.cclass
class Smoother:
    """An adder of increments to `SmoothedImportance`'s means and spreads.

    Parameters
    ----------
    sums
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
    _sums: cython.double[::1]
    _moments: cython.double[:, ::1]
    _columns: cython.Py_ssize_t[::1]
    _by_feature: cython.double[::1]

    def __init__(self, sums: Any, moments: Any, columns: Any, increments: Any) -> None:
        self.increments, self._increments = increments, increments
        self._sums, self._moments, self._columns = sums, moments, columns
        # Features that are not named stay 0.
        self._by_feature = floats(max(1, moments.shape[1]))

    # hot
    def smooth(self, weights: Weights, slower: cython.double, times: cython.double) -> cython.double:
        """Add an observation's increments to means and spreads; return its share.

        Parameters
        ----------
        weights
            The weights of the mean; this call counts the observation in them.
        slower
            How many times slower than the mean the second mean is.
        times
            The increments have the weight of as many observations.
        """
        i: cython.Py_ssize_t
        f: cython.Py_ssize_t
        rate: cython.double = weights.step(times)
        n: cython.longlong = weights.n
        alpha: cython.double = weights.alpha
        slow_share: cython.double = alpha / slower
        spread_share: cython.double = alpha / _SPREAD_SLOWER
        expected: cython.double
        increment: cython.double
        difference: cython.double
        step: cython.double
        fast_minus_slow: cython.double
        if times > 1.0:
            slow_share = -expm1(times * log1p(-slow_share))
            spread_share = -expm1(times * log1p(-spread_share))
        self._sums[_SLOW_TOTAL] += slow_share * (1.0 - self._sums[_SLOW_TOTAL])
        slow_share = min(slow_share / self._sums[_SLOW_TOTAL], 1.0)
        self._sums[_FAST_FAST] = (1.0 - rate) * (1.0 - rate) * self._sums[_FAST_FAST] + rate * rate
        self._sums[_FAST_SLOW] = (1.0 - rate) * (1.0 - slow_share) * self._sums[_FAST_SLOW] + rate * slow_share
        self._sums[_SLOW_SLOW] = (1.0 - slow_share) * (1.0 - slow_share) * self._sums[
            _SLOW_SLOW
        ] + slow_share * slow_share
        if n > _WARM_UP:
            self._sums[_SPREAD_TOTAL] += spread_share * (1.0 - self._sums[_SPREAD_TOTAL])
            spread_share = min(spread_share / self._sums[_SPREAD_TOTAL], 1.0)
            expected = self._sums[_FAST_FAST] - 2.0 * self._sums[_FAST_SLOW] + self._sums[_SLOW_SLOW]
            self._sums[_EXPECTED_SPREAD] += spread_share * (expected - self._sums[_EXPECTED_SPREAD])
            self._sums[_SPREAD_SQUARES] = (1.0 - spread_share) * (1.0 - spread_share) * self._sums[
                _SPREAD_SQUARES
            ] + spread_share * spread_share
        else:
            spread_share = 0.0
        for i in range(self._columns.shape[0]):
            f = self._columns[i]
            self._by_feature[f] = self._increments[i]
            self._moments[_SEEN, f] = n
        for f in range(self._moments.shape[1]):
            increment = self._by_feature[f]
            difference = increment - self._moments[_MEAN, f]
            step = rate * difference
            self._moments[_MEAN, f] += step
            self._moments[_VARIANCE, f] = (1.0 - rate) * (self._moments[_VARIANCE, f] + difference * step)
            self._moments[_SLOW, f] += slow_share * (increment - self._moments[_SLOW, f])
            if spread_share > 0.0:
                fast_minus_slow = self._moments[_MEAN, f] - self._moments[_SLOW, f]
                self._moments[_SPREAD, f] += spread_share * (
                    fast_minus_slow * fast_minus_slow - self._moments[_SPREAD, f]
                )
        return rate


def twice_smoothed(
    slower: cython.double,
    n: cython.longlong,
    squares: cython.double,
    sums: cython.double[::1],
    moments: cython.double[:, ::1],
    found: cython.double[:, ::1],
) -> None:
    """Write the mean smoothed again, and its standard error (2 x features).

    The second smoothing goes at the slow mean's rate.

    Parameters
    ----------
    slower
        How many times slower than the mean the second mean is.
    n, squares
        Of the increments so far: their number, and the sum of the squared weights of the mean.
    """
    f: cython.Py_ssize_t
    fast: cython.double = sums[_FAST_FAST]
    both: cython.double = sums[_FAST_SLOW]
    slow: cython.double = sums[_SLOW_SLOW]
    expected: cython.double = sums[_EXPECTED_SPREAD]
    of_fast: cython.double = (slower * slower * slow - 2.0 * slower * both + fast) / (
        (slower - 1.0) * (slower - 1.0) * fast
    )
    of_spread: cython.double = fast / expected if expected > 0.0 else 0.0
    of_variance: cython.double = squares / (1.0 - squares) if expected <= 0.0 and n > 1 and squares < 1.0 else 0.0
    for f in range(moments.shape[1]):
        found[0, f] = (slower * moments[_SLOW, f] - moments[_MEAN, f]) / (slower - 1.0)
        found[1, f] = sqrt((moments[_SPREAD, f] * of_spread + moments[_VARIANCE, f] * of_variance) * of_fast)
