"""Kernels that learn what the regression leaves: whether squared residuals, or products, depend on other features."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled

MEAN, SQUARE, VARIANCE = range(3)
"""Rows of the moments: of a residual's square, of the capped share, and the variance of that."""
MOST = 9.0
"""Squared residuals count up to so many times their mean: a few far out say nothing of the others."""


@compiled
def learn_spread(
    residuals: Any, phi: Any, mean: Any, alpha: float, count: float, moments: Any, with_columns: Any
) -> None:
    """Add one observation to the covariances of squared residuals with the columns, in place.

    Parameters
    ----------
    residuals
        Shape (features,): what all other features leave of a number; NaN for what is none.
    phi, mean
        All columns and their means.
    count
        How many observations were added before.
    moments
        Shape (3, features).
    with_columns
        Shape (features, columns): covariance of the capped squares with the columns.
    """
    rate = max(1.0 / (count + 1.0), alpha)
    keep, n = 1.0 - rate, len(phi)
    deviations, are_there = np.empty(n), True
    for c in range(n):
        deviations[c] = phi[c] - mean[c]
        are_there = are_there and not np.isnan(deviations[c])
    for j in range(len(residuals)):
        e = residuals[j]
        if np.isnan(e):
            continue
        moments[MEAN, j] += rate * (e * e - moments[MEAN, j])
        share = min(e * e / moments[MEAN, j], MOST) if moments[MEAN, j] > 0.0 else 0.0
        step = share - moments[SQUARE, j]
        moments[SQUARE, j] += rate * step
        moments[VARIANCE, j] = keep * (moments[VARIANCE, j] + rate * step * step)
        row, step = with_columns[j], rate * step
        if are_there:
            for c in range(n):
                row[c] = keep * (row[c] + step * deviations[c])
        else:
            for c in range(n):
                if not np.isnan(deviations[c]):
                    row[c] = keep * (row[c] + step * deviations[c])


@compiled
def learn_products(
    residuals: Any, z: Any, mean: Any, alpha: float, count: float, variance: Any, with_products: Any
) -> None:
    """Add one observation to the covariances of residuals with products of two values, in place.

    Parameters
    ----------
    residuals
        As for `learn_spread`, shape (features,).
    z, mean
        Shape (features,): the numbers' values and their means; a product is of deviations. NaN for what is none.
    variance
        Shape (features, features): of the product of a and b, at [a, b] with a > b.
    with_products
        Shape (features, features, features): covariance of the residual of j with that product, at [j, a, b].
    """
    rate = max(1.0 / (count + 1.0), alpha)
    keep = 1.0 - rate
    d = len(residuals)
    for a in range(d):
        for b in range(a):
            product = (z[a] - mean[a]) * (z[b] - mean[b])
            if np.isnan(product):
                continue
            variance[a, b] += rate * (product * product - variance[a, b])
            for j in range(d):
                if not np.isnan(residuals[j]):
                    with_products[j, a, b] = keep * with_products[j, a, b] + rate * residuals[j] * product
