"""Kernels of absent categories: probabilities given other columns, and draws that change as little as they can."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiled import compiled
from ..moments import invert

LEAST = 1e-4
"""No level has a smaller probability: a level that has been seen can be seen again."""


@compiled
def discriminant(between: Any, shares: Any, means: Any, inverse: Any) -> None:
    """Write what `probabilities` needs, from the covariance of the indicators' fitted values.

    With F the regression of the indicators on the columns that are known, cov(F, 1_c) = cov(F, F)_c: so the class means
    of F, and the covariance within classes, follow from cov(F, F). Linear discriminants of F are those of the columns
    (Hastie, Tibshirani, Buja, Flexible Discriminant Analysis, 1994).

    Parameters
    ----------
    between
        Shape (levels - 1, levels - 1): cov(F, F).
    shares
        Shape (levels - 1,): the shares of all levels but the last one.
    means
        Shape (levels, levels - 1), written: class means of F, less its mean.
    inverse
        Shape (levels - 1, levels - 1), written: inverse of the covariance within classes.
    """
    k = len(shares)
    rest = max(1.0 - shares.sum(), LEAST)
    for i in range(k):
        total = 0.0
        for c in range(k):
            means[c, i] = between[c, i] / max(shares[c], LEAST)
            total += between[c, i]
        means[k, i] = -total / rest
    within = between.copy()
    for c in range(k + 1):
        share = max(shares[c], LEAST) if c < k else rest
        for i in range(k):
            for j in range(k):
                within[i, j] -= share * means[c, i] * means[c, j]
    for i in range(k):
        share = min(max(shares[i], LEAST), 1.0 - LEAST)
        within[i, i] = max(within[i, i], 0.0) + 1e-4 * share * (1.0 - share) + 1e-3 * between[i, i]
    inverse[:, :] = invert(within)


@compiled
def probabilities(fitted: Any, shares: Any, means: Any, inverse: Any, out: Any) -> None:
    """Write the probabilities of the levels where the indicators' fitted values, less their means, are these."""
    k = len(shares)
    highest = -np.inf
    rest = 1.0
    for c in range(k + 1):
        q = 0.0
        for i in range(k):
            a = 0.0
            for j in range(k):
                a += inverse[i, j] * (fitted[j] - means[c, j])
            q += a * (fitted[i] - means[c, i])
        share = shares[c] if c < k else rest
        rest -= share
        out[c] = np.log(max(share, LEAST)) - 0.5 * q
        highest = max(highest, out[c])
    total = 0.0
    for c in range(k + 1):
        out[c] = max(np.exp(out[c] - highest), LEAST)
        total += out[c]
    for c in range(k + 1):
        out[c] /= total


@compiled
def couple(to: Any, start: Any, levels: int, now: int, u: float, v: float) -> int:
    """Return a draw of the probabilities `to`, where `now` is one of `start`: it is kept as often as it can be.

    The maximal coupling: the result has the distribution `to`, and where both are equal nothing changes.
    """
    if u * start[now] < to[now]:
        return now
    total = 0.0
    for c in range(levels):
        total += max(to[c] - start[c], 0.0)
    v *= total
    last = now
    for c in range(levels):
        gain = to[c] - start[c]
        if gain > 0.0:
            last = c
            if v < gain:
                return c
            v -= gain
    return last
