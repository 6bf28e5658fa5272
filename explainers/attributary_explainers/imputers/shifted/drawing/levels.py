"""Kernels of absent categories: probabilities given other columns, and draws that change as little as they can."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiled import compiled
from ..moments import invert

LEAST = 1e-4
"""No level has a smaller probability: a level that has been seen can be seen again."""


@compiled
def discriminant(between: Any, shares: Any, scores: Any) -> None:
    """Write what `probabilities` needs, from the covariance of the indicators' fitted values.

    With F the regression of the indicators on the columns that are known, cov(F, 1_c) = cov(F, F)_c: so the class means
    of F, and the covariance within classes, follow from cov(F, F). Linear discriminants of F are those of the columns
    (Hastie, Tibshirani, Buja, Flexible Discriminant Analysis, 1994). Their squares of F are the same for all levels,
    and left out: with S the inverse of the covariance within classes and m_c a class mean, a level has the score
    log share_c - m_c S m_c / 2 + m_c S F.

    Parameters
    ----------
    between
        Shape (levels - 1, levels - 1): cov(F, F).
    shares
        Shape (levels - 1,): the shares of all levels but the last one.
    scores
        Shape (levels, levels), written: by level the weights m_c S and, last, what is added.
    """
    k = len(shares)
    rest = max(1.0 - shares.sum(), LEAST)
    means = np.empty((k + 1, k))
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
    inverse = invert(within)
    for c in range(k + 1):
        square = 0.0
        for j in range(k):
            weight = 0.0
            for i in range(k):
                weight += inverse[i, j] * means[c, i]
            scores[c, j] = weight
            square += weight * means[c, j]
        scores[c, k] = np.log(max(shares[c], LEAST) if c < k else rest) - 0.5 * square


@compiled
def probabilities(fitted: Any, scores: Any, out: Any) -> None:
    """Write the probabilities of the levels where the indicators' fitted values, less their means, are these."""
    k = len(scores) - 1
    highest = -np.inf
    for c in range(k + 1):
        score = scores[c, k]
        for i in range(k):
            score += scores[c, i] * fitted[i]
        out[c] = score
        highest = max(highest, score)
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
