# cython: infer_types=True
"""Exponentially weighted moments of columns and of regression residuals."""

from __future__ import annotations

from typing import Any

from ..buffers import floats
from .drawing import Reader

try:
    import cython
except ImportError:
    from .. import _cython as cython

MEAN, SQUARE, VARIANCE = range(3)
"""Rows of the moments of squared residuals: of a residual's square, of the capped share, and the variance of that."""
_NAN = cython.declare(cython.double, float("nan"))
_MOST = cython.declare(cython.double, 9.0)
"""Squared residuals count up to so many times their mean: a few far out say nothing of the others."""


@cython.ccall
def learn(
    values: cython.double[:, ::1], at: cython.Py_ssize_t, feature: cython.longlong[::1], alpha: cython.double,
    counts: cython.double[::1], mean: cython.double[::1], covariance: cython.double[:, ::1],
    rate: cython.double[::1], step: cython.double[::1],
) -> cython.bint:  # fmt: skip
    """Add a row to the exponentially weighted mean and covariance, in place.

    A column whose value is NaN teaches nothing, nor do its pairs. Each feature has its own count of observations, so
    that one which comes late starts as the others did: its rate is max(1 / count, alpha).

    Parameters
    ----------
    values, at
        Rows of columns, and which of them is added.
    feature
        Shape (columns,): which count a column has.
    counts
        Shape (features + products,): raised by one where the value is there.
    covariance
        Its lower triangle is kept.
    rate, step
        Room for a number of each column.
    """
    last: cython.longlong = -1
    are_alike: cython.bint = True
    n: cython.Py_ssize_t = values.shape[1]
    for i in range(n):
        if values[at, i] != values[at, i]:
            are_alike, rate[i] = False, 0.0
            continue
        if feature[i] != last:
            last = feature[i]
            counts[last] += 1.0
        rate[i] = max(1.0 / counts[last], alpha)
        step[i] = values[at, i] - mean[i]
        mean[i] += rate[i] * step[i]
        are_alike = are_alike and rate[i] == rate[0]
    if are_alike:  # as nearly always: the compiler takes several columns at a time
        for i in range(n):
            keep, own = 1.0 - rate[0], rate[0] * step[i]
            for j in range(i + 1):
                covariance[i, j] = keep * (covariance[i, j] + own * step[j])
        return True
    for i in range(n):
        if rate[i] == 0.0:
            continue
        for j in range(i + 1):
            if rate[j] > 0.0:
                r = max(rate[i], rate[j])
                covariance[i, j] = (1.0 - r) * (covariance[i, j] + r * step[i] * step[j])
    return True


def learn_all(values: Any, learnt: Any) -> None:
    """Add rows of columns to the learnt statistics, all with equal weight."""
    rows: cython.double[:, ::1] = memoryview(values)
    counted: cython.longlong[::1] = memoryview(learnt.counted)
    counts: cython.double[::1] = memoryview(learnt.counts)
    mean: cython.double[::1] = memoryview(learnt.mean)
    covariance: cython.double[:, ::1] = memoryview(learnt.covariance)
    rate: cython.double[::1] = floats(max(mean.shape[0], 1))
    step: cython.double[::1] = floats(max(mean.shape[0], 1))
    for r in range(rows.shape[0]):
        learn(rows, r, counted, 0.0, counts, mean, covariance, rate, step)


@cython.cclass
class Moments:
    """Adds observations to all moments that are learnt, in place.

    Parameters
    ----------
    learnt
        See `Learnt`.
    used, start
        The columns that the regression has, by their numbers among all, and where those of each feature begin.
    slopes, means
        The regression's, of these columns.
    """

    _reader: object
    _values: cython.double[:, ::1]
    """All columns of the observation that is added, in one row."""
    _levels: cython.longlong[::1]
    _counted: cython.longlong[::1]
    _counts: cython.double[::1]
    _mean: cython.double[::1]
    _covariance: cython.double[:, ::1]
    _spread: cython.double[:, ::1]
    _spread_with: cython.double[:, ::1]
    _products: cython.double[:, ::1]
    _with_products: cython.double[:, :, ::1]
    _in_use: cython.longlong[::1]
    _start: cython.longlong[::1]
    _B: cython.double[:, ::1]
    _regression_mean: cython.double[::1]
    _deviations: cython.double[::1]
    _residuals: cython.double[::1]
    """Shape (features,): what all other features leave of a number; NaN for what is none."""
    _apart: cython.double[::1]
    """Shape (features,): how far the numbers' values are from their means; NaN for what is none."""
    _rate: cython.double[::1]
    _step: cython.double[::1]

    def __init__(self, learnt: Any, used: Any, start: Any, slopes: Any, means: Any) -> None:
        self._reader, self._levels = Reader(learnt.columns, learnt.encoding), memoryview(learnt.encoding.levels)
        self._counted, self._counts = memoryview(learnt.counted), memoryview(learnt.counts)
        self._mean, self._covariance = memoryview(learnt.mean), memoryview(learnt.covariance)
        self._spread, self._spread_with = memoryview(learnt.spread), memoryview(learnt.spread_with)
        self._products, self._with_products = memoryview(learnt.product_variance), memoryview(learnt.product_with)
        self._in_use, self._start = memoryview(used), memoryview(start)
        self._B, self._regression_mean = memoryview(slopes), memoryview(means)
        n: cython.Py_ssize_t = max(self._mean.shape[0], 1)
        d: cython.Py_ssize_t = self._levels.shape[0]
        self._values = floats(1, n)
        self._deviations, self._rate, self._step = floats(n), floats(n), floats(n)
        self._residuals, self._apart = floats(d), floats(d)

    def add(self, row: Any, rate: cython.double, alpha: cython.double) -> None:
        """Add an encoded observation, shape (1, features).

        The moments of squared residuals and of products come first; the rate is theirs, `alpha` that of the others.
        """
        self._reader.read(row, self._values)
        n: cython.Py_ssize_t = self._in_use.shape[0]
        for i in range(n):
            own = self._values[0, self._in_use[i]] - self._regression_mean[i]
            self._deviations[i] = own if own == own else 0.0
        for j in range(self._levels.shape[0]):
            self._residuals[j] = self._apart[j] = _NAN
            if self._levels[j] == 0:
                at = self._start[j]
                left: cython.double = self._values[0, self._in_use[at]]
                self._apart[j] = left - self._mean[self._in_use[at]]
                left -= self._regression_mean[at]
                for i in range(n):
                    left -= self._B[i, at] * self._deviations[i]
                self._residuals[j] = left
        self._add_spread(rate)
        if self._products.shape[0] > 0:
            self._add_products(rate)
        learn(self._values, 0, self._counted, alpha, self._counts, self._mean, self._covariance, self._rate, self._step)

    @cython.cfunc
    def _add_spread(self, rate: cython.double) -> cython.bint:
        """Add an observation to covariances of squared residuals with columns."""
        are_there: cython.bint = True
        keep: cython.double = 1.0 - rate
        n: cython.Py_ssize_t = self._mean.shape[0]
        for c in range(n):
            self._deviations[c] = self._values[0, c] - self._mean[c]
            are_there = are_there and self._deviations[c] == self._deviations[c]
        for j in range(self._residuals.shape[0]):
            e = self._residuals[j]
            if e != e:
                continue
            self._spread[0, j] += rate * (e * e - self._spread[0, j])
            share = min(e * e / self._spread[0, j], _MOST) if self._spread[0, j] > 0.0 else 0.0
            step: cython.double = share - self._spread[1, j]
            self._spread[1, j] += rate * step
            self._spread[2, j] = keep * (self._spread[2, j] + rate * step * step)
            step *= rate
            for c in range(n):
                if are_there or self._deviations[c] == self._deviations[c]:
                    self._spread_with[j, c] = keep * (self._spread_with[j, c] + step * self._deviations[c])
        return True

    @cython.cfunc
    def _add_products(self, rate: cython.double) -> cython.bint:
        """Add an observation to covariances of residuals with pairs' products."""
        keep: cython.double = 1.0 - rate
        for a in range(self._residuals.shape[0]):
            for b in range(a):
                product = self._apart[a] * self._apart[b]
                if product != product:
                    continue
                self._products[a, b] += rate * (product * product - self._products[a, b])
                for j in range(self._residuals.shape[0]):
                    if self._residuals[j] == self._residuals[j]:
                        self._with_products[j, a, b] = (
                            keep * self._with_products[j, a, b] + rate * self._residuals[j] * product
                        )
        return True
