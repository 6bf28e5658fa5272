"""Queries of what has been learnt: which dependence is bent, and of which the spread depends on another feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...typing import Array

Flags = npt.NDArray[np.bool_]


def bends(covariance: Array, start: Any, is_number: Flags) -> Array:
    """Return how much hinges of one feature say of another's value or levels that its own value does not say.

    Parameters
    ----------
    covariance
        Shape (columns, columns), symmetric: per number its value and hinges, per category its indicators.

    Returns
    -------
    Shape (features, features): [j, i] is the largest squared partial correlation of a hinge of j with i.
    """
    d, variances = len(is_number), np.diag(covariance)
    found = np.zeros((d, d))
    targets = np.concatenate([[start[i]] if is_number[i] else np.arange(start[i], start[i + 1]) for i in range(d)]).astype(int)
    owner = np.concatenate([np.full(1 if is_number[i] else start[i + 1] - start[i], i) for i in range(d)]).astype(int)
    for j in np.flatnonzero(is_number):
        value, hinges = start[j], np.arange(start[j] + 1, start[j + 1])
        if variances[value] <= 0.0 or not len(hinges):
            continue
        slopes = covariance[value] / variances[value]
        left = variances - slopes * covariance[value]
        both = covariance[np.ix_(hinges, targets)] - np.outer(covariance[hinges, value], slopes[targets])
        fine = np.outer(left[hinges] > 1e-4 * variances[hinges], left[targets] > 1e-6 * variances[targets])
        shares = np.where(fine, both**2 / np.maximum(np.outer(left[hinges], left[targets]), 1e-300), 0.0).max(axis=0)
        np.maximum.at(found[j], owner, shares)
        found[j, j] = 0.0
    return found


def spreads(with_columns: Array, variance: Array, covariance: Array, start: Any) -> Array:
    """Return how much each feature says of the squared residuals of another one.

    Parameters
    ----------
    with_columns, variance
        Shapes (features, columns) and (features,): covariance of squared residuals with the columns; their variance.

    Returns
    -------
    Shape (features, features): [j, i] is the share of the variance of i's squared residual that j's columns tell.
    """
    d = len(variance)
    found = np.zeros((d, d))
    for j in range(d):
        block = slice(start[j], start[j + 1])
        own = covariance[block, block]
        if not len(own) or not np.diag(own).max() > 0.0:
            continue
        sd = np.sqrt(np.maximum(np.diag(own), 1e-300))
        correlation = own / np.outer(sd, sd) + 1e-2 * np.eye(len(own))
        scaled = with_columns[:, block] / sd
        told = (scaled * np.linalg.solve(correlation, scaled.T).T).sum(axis=1)
        found[j] = np.where(variance > 0.0, told / np.maximum(variance, 1e-300), 0.0)
        found[j, j] = 0.0
    return found
