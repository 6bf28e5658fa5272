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
    last = -1
    for i in range(n):
        if np.isnan(values[i]):
            continue
        if feature[i] != last:
            last = feature[i]
            counts[last] += 1.0
        rate[i] = max(1.0 / counts[last], alpha)
        step[i] = values[i] - mean[i]
        mean[i] += rate[i] * step[i]
    for i in range(n):
        if rate[i] == 0.0:
            continue
        for j in range(i + 1):
            if rate[j] > 0.0:
                r = max(rate[i], rate[j])
                covariance[i, j] = (1.0 - r) * (covariance[i, j] + r * step[i] * step[j])


@compiled
def factor(covariance: Any, columns: Any, L: Any) -> None:
    """Write the Cholesky factor of the covariance with its rows and columns in this order.

    A column that those before it determine has 0 on the diagonal: it adds nothing.
    """
    n = len(columns)
    for i in range(n):
        a = columns[i]
        own = covariance[a, a]
        for j in range(i + 1):
            b = columns[j]
            s = covariance[a, b] if a >= b else covariance[b, a]
            if i == j:
                s += RIDGE * own
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(s) if s > 0.5 * RIDGE * own and own > 0.0 else 0.0
            else:
                L[i, j] = s / L[j, j] if L[j, j] > 0.0 else 0.0


@compiled
def innovations(L: Any, deviations: Any, first: int, last: int, found: Any) -> None:
    """Write what columns first … last - 1 tell that those before them do not; 0 where a column is NaN."""
    for i in range(first, last):
        s = deviations[i]
        for k in range(i):
            s -= L[i, k] * found[k]
        found[i] = s / L[i, i] if L[i, i] > 0.0 and not np.isnan(s) else 0.0


@compiled
def innovations_of(L: Any, values: Any, columns: Any, mean: Any) -> Any:
    """Return the `innovations` of some rows, shape (columns, rows): so the compiler takes several rows at a time.

    Parameters
    ----------
    values
        Shape (rows, columns), in the order of `mean`; `columns` is that of L.
    """
    n, m = len(columns), len(values)
    found = np.empty((n, m))
    for i in range(n):
        c, own = columns[i], found[i]
        for r in range(m):
            own[r] = values[r, c] - mean[c]
        for k in range(i):
            a, other = L[i, k], found[k]
            if a != 0.0:
                for r in range(m):
                    own[r] -= a * other[r]
        scale = 1.0 / L[i, i] if L[i, i] > 0.0 else 0.0
        for r in range(m):
            own[r] = 0.0 if np.isnan(own[r]) else own[r] * scale
    return found


@compiled
def inverse_of_factor(L: Any) -> Any:
    """Return the inverse of a lower triangle; a row that is 0 on the diagonal stays 0."""
    n = len(L)
    inverse = np.zeros((n, n))
    for i in range(n):
        if L[i, i] > 0.0:
            inverse[i, i] = 1.0 / L[i, i]
            for j in range(i):
                s = 0.0
                for k in range(j, i):
                    s += L[i, k] * inverse[k, j]
                inverse[i, j] = -s / L[i, i]
    return inverse


@compiled
def precision(covariance: Any) -> Any:
    """Return the inverse of the covariance (lower triangle given); columns that others determine have 0 in it."""
    n = len(covariance)
    L = np.zeros((n, n))
    factor(covariance, np.arange(n), L)
    inverse = inverse_of_factor(L)
    found = np.zeros((n, n))
    for k in range(n):
        for i in range(k + 1):
            a = inverse[k, i]
            if a != 0.0:
                for j in range(k + 1):
                    found[i, j] += a * inverse[k, j]
    return found


@compiled
def invert(A: Any) -> Any:
    """Return the inverse of a small positive semidefinite matrix; what is 0 on its diagonal stays 0."""
    n = len(A)
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(s) if s > 1e-12 * A[i, i] else 0.0
            else:
                L[i, j] = s / L[j, j] if L[j, j] > 0.0 else 0.0
    inverse = inverse_of_factor(L)
    return inverse.T @ inverse
