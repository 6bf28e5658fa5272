# cython: infer_types=True
"""Exponentially weighted moments of columns, and of what the regression leaves of numbers."""

from __future__ import annotations

from typing import Any

from ..buffers import floats

try:
    import cython
except ImportError:
    from .. import _cython as cython

MEAN, SQUARE, VARIANCE = range(3)
"""Rows of the moments of squared residuals: of a residual's square, of the capped share, and the variance of that."""
_MOST = cython.declare(cython.double, 9.0)
"""Squared residuals count up to so many times their mean: a few far out say nothing of the others."""


@cython.ccall
def learn(
    values: cython.double[:, ::1], at: cython.Py_ssize_t, feature: cython.longlong[::1], alpha: cython.double,
    counts: cython.double[::1], mean: cython.double[::1], covariance: cython.double[:, ::1],
) -> cython.bint:  # fmt: skip
    """Add one row of columns to the exponentially weighted mean and covariance, in place.

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
    """
    last: cython.longlong = -1
    are_alike: cython.bint = True
    n: cython.Py_ssize_t = values.shape[1]
    rate: cython.double[::1] = floats(n)
    step: cython.double[::1] = floats(n)
    for i in range(n):
        if values[at, i] != values[at, i]:
            are_alike = False
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
    """Add some rows of columns to what is learnt, all of which count alike."""
    rows: cython.double[:, ::1] = memoryview(values)
    for r in range(rows.shape[0]):
        learn(
            rows, r, memoryview(learnt.counted), 0.0, memoryview(learnt.counts), memoryview(learnt.mean),
            memoryview(learnt.covariance),
        )  # fmt: skip


def take_in(values: Any, learnt: Any, used: Any, start: Any, slopes: Any, means: Any, alpha: cython.double) -> None:
    """Add one observation to all moments; those of squared residuals and of products come first.

    Parameters
    ----------
    values
        All columns of the observation, shape (1, columns).
    learnt
        See `Learnt`.
    used, start
        The columns that the regression has, by their numbers among all, and where those of each feature begin.
    slopes, means
        The regression's, of these columns.
    """
    phi: cython.double[:, ::1] = memoryview(values)
    levels: cython.longlong[::1] = memoryview(learnt.encoding.levels)
    in_use: cython.longlong[::1] = memoryview(used)
    first: cython.longlong[::1] = memoryview(start)
    B: cython.double[:, ::1] = memoryview(slopes)
    regression_mean: cython.double[::1] = memoryview(means)
    mean: cython.double[::1] = memoryview(learnt.mean)
    count: cython.double = learnt.n
    rate: cython.double = max(1.0 / (count + 1.0), alpha)
    d: cython.Py_ssize_t = levels.shape[0]
    n: cython.Py_ssize_t = in_use.shape[0]
    deviations: cython.double[::1] = floats(n)
    residuals: cython.double[::1] = floats(d)
    apart: cython.double[::1] = floats(d)
    for i in range(n):
        own = phi[0, in_use[i]] - regression_mean[i]
        deviations[i] = own if own == own else 0.0
    for j in range(d):
        residuals[j] = apart[j] = float("nan")
        if levels[j] == 0:
            at = first[j]
            own = phi[0, in_use[at]]
            apart[j] = own - mean[in_use[at]]
            residuals[j] = own - regression_mean[at]
            for i in range(n):
                residuals[j] -= B[i, at] * deviations[i]
    _learn_spread(
        residuals, phi, mean, rate, memoryview(learnt.spread), memoryview(learnt.spread_with)
    )  # fmt: skip
    if len(learnt.product_variance):
        _learn_products(
            residuals, apart, rate, memoryview(learnt.product_variance), memoryview(learnt.product_with)
        )  # fmt: skip
    learn(
        phi, 0, memoryview(learnt.counted), alpha, memoryview(learnt.counts), mean, memoryview(learnt.covariance)
    )  # fmt: skip


@cython.cfunc
def _learn_spread(
    residuals: cython.double[::1], phi: cython.double[:, ::1], mean: cython.double[::1], rate: cython.double,
    moments: cython.double[:, ::1], with_columns: cython.double[:, ::1],
) -> cython.bint:  # fmt: skip
    """Add one observation to the covariances of squared residuals with the columns, in place.

    Parameters
    ----------
    residuals
        Shape (features,): what all other features leave of a number; NaN for what is none.
    phi, mean
        All columns, shape (1, columns), and their means.
    moments
        Shape (3, features).
    with_columns
        Shape (features, columns): covariance of the capped squares with the columns.
    """
    are_there: cython.bint = True
    keep: cython.double = 1.0 - rate
    n: cython.Py_ssize_t = mean.shape[0]
    deviations: cython.double[::1] = floats(n)
    for c in range(n):
        deviations[c] = phi[0, c] - mean[c]
        are_there = are_there and deviations[c] == deviations[c]
    for j in range(residuals.shape[0]):
        e = residuals[j]
        if e != e:
            continue
        moments[0, j] += rate * (e * e - moments[0, j])
        share = min(e * e / moments[0, j], _MOST) if moments[0, j] > 0.0 else 0.0
        step: cython.double = share - moments[1, j]
        moments[1, j] += rate * step
        moments[2, j] = keep * (moments[2, j] + rate * step * step)
        step *= rate
        if are_there:
            for c in range(n):
                with_columns[j, c] = keep * (with_columns[j, c] + step * deviations[c])
        else:
            for c in range(n):
                if deviations[c] == deviations[c]:
                    with_columns[j, c] = keep * (with_columns[j, c] + step * deviations[c])
    return True


@cython.cfunc
def _learn_products(
    residuals: cython.double[::1], apart: cython.double[::1], rate: cython.double, variance: cython.double[:, ::1],
    with_products: cython.double[:, :, ::1],
) -> cython.bint:  # fmt: skip
    """Add one observation to the covariances of residuals with products of two values, in place.

    Parameters
    ----------
    residuals
        As for `_learn_spread`.
    apart
        Shape (features,): how far the numbers' values are from their means. NaN for what is none.
    variance
        Shape (features, features): of the product of a and b, at [a, b] with a > b.
    with_products
        Shape (features, features, features): covariance of the residual of j with that product, at [j, a, b].
    """
    keep: cython.double = 1.0 - rate
    for a in range(residuals.shape[0]):
        for b in range(a):
            product = apart[a] * apart[b]
            if product != product:
                continue
            variance[a, b] += rate * (product * product - variance[a, b])
            for j in range(residuals.shape[0]):
                if residuals[j] == residuals[j]:
                    with_products[j, a, b] = keep * with_products[j, a, b] + rate * residuals[j] * product
    return True
