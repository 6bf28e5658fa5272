"""Kernels of one covariance matrix: it learns rows of columns, and says what some columns tell of the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled

RIDGE = 1e-4
"""Added to each variance, as a share of it: what others leave of a column is not known better."""


@compiled
def learn(values: Any, feature: Any, alpha: float, counts: Any, mean: Any, covariance: Any) -> None:
    """Add one row of columns to the exponentially weighted mean and covariance, in place.

    A column whose value is NaN teaches nothing, nor do its pairs. Each feature has its own count of observations, so
    that one which comes late starts as the others did: its rate is max(1 / count, alpha).

    Parameters
    ----------
    feature
        Shape (columns,): which count a column has.
    counts
        Shape (features + products,): raised by one where the value is there.
    """
    n = len(values)
    rate, step = np.zeros(n), np.zeros(n)
    last, are_alike = -1, True
    for i in range(n):
        if np.isnan(values[i]):
            are_alike = False
            continue
        if feature[i] != last:
            last = feature[i]
            counts[last] += 1.0
        rate[i] = max(1.0 / counts[last], alpha)
        step[i] = values[i] - mean[i]
        mean[i] += rate[i] * step[i]
        are_alike = are_alike and rate[i] == rate[0]
    for i in range(n if are_alike else 0):  # as nearly always: the compiler takes several columns at a time
        row, keep, own = covariance[i], 1.0 - rate[0], rate[0] * step[i]
        for j in range(i + 1):
            row[j] = keep * (row[j] + own * step[j])
    for i in range(0 if are_alike else n):
        if rate[i] == 0.0:
            continue
        for j in range(i + 1):
            if rate[j] > 0.0:
                r = max(rate[i], rate[j])
                covariance[i, j] = (1.0 - r) * (covariance[i, j] + r * step[i] * step[j])


@compiled
def learn_all(values: Any, feature: Any, counts: Any, mean: Any, covariance: Any) -> None:
    """Add some rows of columns to means and covariances in which all count alike; see `learn`."""
    for r in range(len(values)):
        learn(values[r], feature, 0.0, counts, mean, covariance)


@compiled
def tell(U: Any, first: int, last: int, column: int, innovations: Any, begin: int, end: int, told: Any) -> None:
    """Add to `told` what innovations first … last - 1 of draws begin … end - 1 tell of a column.

    Four at a time: with few draws, setting up the inner loop takes longer than what it does.

    Parameters
    ----------
    U
        See `factor`.
    innovations, told
        Shapes (columns, draws) and (draws,).
    """
    k = first
    while k + 4 <= last:
        a, b, c, d = U[k, column], U[k + 1, column], U[k + 2, column], U[k + 3, column]
        of_a, of_b, of_c, of_d = innovations[k], innovations[k + 1], innovations[k + 2], innovations[k + 3]
        for r in range(begin, end):
            told[r] += a * of_a[r] + b * of_b[r] + c * of_c[r] + d * of_d[r]
        k += 4
    while k < last:
        a, of_a = U[k, column], innovations[k]
        for r in range(begin, end):
            told[r] += a * of_a[r]
        k += 1


@compiled
def factor(covariance: Any, columns: Any, U: Any) -> None:
    """Write the transposed Cholesky factor of the covariance with its rows and columns in this order.

    A column that those before it determine has 0 on the diagonal: it adds nothing. Row by row, so that the compiler
    takes several columns at a time.

    Parameters
    ----------
    covariance
        The lower triangle is read.
    U
        Shape (columns, columns), written: U[k, i] is what innovation k adds to column i; the lower triangle is left.
    """
    n = len(columns)
    told = np.empty(n)
    for i in range(n):
        a, row = columns[i], U[i]
        for j in range(i, n):
            b = columns[j]
            row[j] = covariance[a, b] if a >= b else covariance[b, a]
        own = row[i]
        row[i] += RIDGE * own
        told[i:] = 0.0
        tell(U, 0, i, i, U, i, n, told)
        for j in range(i, n):
            row[j] -= told[j]
        if row[i] > 0.5 * RIDGE * own and own > 0.0:
            root = np.sqrt(row[i])
            row[i] = root
            for j in range(i + 1, n):
                row[j] /= root
        else:
            row[i:] = 0.0


@compiled
def innovate(told: Any, root: float, n: int, deviations: Any) -> None:
    """Make the deviations of a column what those before do not tell; 0 where one is NaN.

    Parameters
    ----------
    told
        See `tell`.
    root
        The diagonal of the factor, 0 where nothing is left.
    """
    weight = 1.0 / root if root > 0.0 else 0.0
    for r in range(n):
        own = deviations[r] - told[r]
        deviations[r] = 0.0 if np.isnan(own) else own * weight


@compiled
def inverse_of_factor(U: Any) -> Any:
    """Return the inverse of the transpose of an upper triangle; a row that is 0 on the diagonal stays 0."""
    n = len(U)
    inverse = np.zeros((n, n))
    for i in range(n):
        if U[i, i] > 0.0:
            row, weight = inverse[i], -1.0 / U[i, i]
            for k in range(i):
                a, other = U[k, i], inverse[k]
                for j in range(k + 1):
                    row[j] += a * other[j]
            for j in range(i):
                row[j] *= weight
            row[i] = -weight
    return inverse


@compiled
def precision(covariance: Any) -> Any:
    """Return the inverse of the covariance (lower triangle given); columns that others determine have 0 in it."""
    n = len(covariance)
    U = np.zeros((n, n))
    factor(covariance, np.arange(n), U)
    inverse = inverse_of_factor(U)
    found = np.zeros((n, n))
    for k in range(n):
        own = inverse[k]
        for i in range(k + 1):
            a, row = own[i], found[i]
            if a != 0.0:
                for j in range(k + 1):
                    row[j] += a * own[j]
    return found


@compiled(waits=True)
def invert(A: Any) -> Any:
    """Return the inverse of a small positive semidefinite matrix; what is 0 on its diagonal stays 0."""
    n = len(A)
    U = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= U[k, i] * U[k, j]
            if i == j:
                U[i, i] = np.sqrt(s) if s > 1e-12 * A[i, i] else 0.0
            else:
                U[j, i] = s / U[j, j] if U[j, j] > 0.0 else 0.0
    inverse = inverse_of_factor(U)
    return inverse.T @ inverse
