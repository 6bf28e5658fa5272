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
    keep = 1.0 - rate
    for j in range(len(residuals)):
        e = residuals[j]
        if np.isnan(e):
            continue
        moments[MEAN, j] += rate * (e * e - moments[MEAN, j])
        share = min(e * e / moments[MEAN, j], MOST) if moments[MEAN, j] > 0.0 else 0.0
        step = share - moments[SQUARE, j]
        moments[SQUARE, j] += rate * step
        moments[VARIANCE, j] = keep * (moments[VARIANCE, j] + rate * step * step)
        for c in range(len(phi)):
            if not np.isnan(phi[c]):
                with_columns[j, c] = keep * (with_columns[j, c] + rate * step * (phi[c] - mean[c]))
