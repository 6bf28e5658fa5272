"""Kernels of PFI's draws: each feature alone is drawn given all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiled import compiled
from ..columns import expand, rounded
from ..moments import RIDGE, invert, precision
from .levels import couple, discriminant, probabilities
from .matching import choose
from .spans import shifted, spans

NEAREST = 1
"""The bandwidth of matching is the distance of this nearest candidate: little is left of a feature given all others."""


@compiled
def regress(
    covariance: Any,
    mean: Any,
    levels: Any,
    start: Any,
    of: Any,
    number: Any,
    other: Any,
    B: Any,
    weights: Any,
    scores: Any,
) -> None:
    """Write the regression of each feature's columns on all columns that are not of it, and what is made of it.

    Parameters
    ----------
    B
        Shape (columns, columns), written: column c has the coefficients for column c.
    weights
        Shape (columns,), written: one over the variance that the others leave.
    scores
        Shape (features, levels, levels), written: the `discriminant` of each category.
    """
    n, d = len(covariance), len(levels)
    omega = precision(covariance)
    B[:, :] = 0.0
    block = np.empty(n, np.int64)
    for j in range(d):
        first, k = start[j], start[j + 1] - start[j]
        size = 0
        for c in range(first, first + k):
            block[size] = c
            size += 1
        for c in range(start[d], n):  # a product that the feature is part of is not known without it
            if of[int(number[c])] == j or of[other[c]] == j:
                block[size] = c
                size += 1
        own = np.empty((size, size))
        for a in range(size):
            for b in range(size):
                own[a, b] = omega[block[a], block[b]]
        residual = invert(own)
        for a in range(k):
            for i in range(n):
                s = 0.0
                for b in range(size):
                    s -= residual[a, b] * omega[block[b], i]
                B[i, first + a] = s
            for b in range(size):
                B[block[b], first + a] = 0.0
        for a in range(k):
            weights[first + a] = 1.0 / residual[a, a] if residual[a, a] > 0.0 else 0.0
        if levels[j] > 1:
            between = np.empty((k, k))
            for a in range(k):
                for b in range(k):
                    i, c = max(first + a, first + b), min(first + a, first + b)
                    between[a, b] = covariance[i, c] * (1.0 + (RIDGE if a == b else 0.0)) - residual[a, b]
            discriminant(between, mean[first : first + k], scores[j, : k + 1, : k + 1])


@compiled
def predict(phi: Any, B: Any, mean: Any, fitted: Any) -> None:
    """Write what all other features tell of each column: its regression on theirs, less the mean."""
    fitted[:] = 0.0
    for i in range(len(phi)):
        own = phi[i] - mean[i]
        if own != 0.0 and not np.isnan(own):
            slopes = B[i]
            for c in range(len(fitted)):
                fitted[c] += slopes[c] * own


@compiled
def predict_all(phi: Any, slots: Any, B: Any, mean: Any, fitted: Any) -> None:
    """Write what `predict` does for some rows of phi, shape (columns, slots): a feature's distances are next to it.

    The sums are those of `predict`, in its order, of all rows at a time.
    """
    n, m = len(mean), len(slots)
    deviations, told = np.empty((n, m)), np.empty(m)
    for r in range(m):
        row = phi[slots[r]]
        for i in range(n):
            value = row[i] - mean[i]
            deviations[i, r] = 0.0 if np.isnan(value) else value
    for c in range(n):
        told[:] = 0.0
        i = 0
        while i + 4 <= n:
            a, b, e, f = B[i, c], B[i + 1, c], B[i + 2, c], B[i + 3, c]
            of_a, of_b, of_e, of_f = deviations[i], deviations[i + 1], deviations[i + 2], deviations[i + 3]
            for r in range(m):
                told[r] = (((told[r] + a * of_a[r]) + b * of_b[r]) + e * of_e[r]) + f * of_f[r]
            i += 4
        while i < n:
            a, of_a = B[i, c], deviations[i]
            for r in range(m):
                told[r] += a * of_a[r]
            i += 1
        for r in range(m):
            fitted[c, slots[r]] = told[r]


@compiled
def each(
    x: Any,
    wanted: Any,
    rows: Any,
    rows_fitted: Any,
    candidates: Any,
    split: int,
    half: int,
    strong: Any,
    B: Any,
    weights: Any,
    mean: Any,
    scores: Any,
    levels: Any,
    start: Any,
    kind: Any,
    of: Any,
    number: Any,
    other: Any,
    center: Any,
    scale: Any,
    least: Any,
    most: Any,
    stored: Any,
    stored_at: Any,
    u: Any,
    out: Any,
    used: Any,
) -> None:
    """Write draws of each of the features `wanted` given all others; see `walk` for what is common.

    Parameters
    ----------
    rows_fitted
        For all stored rows: see `predict`.
    candidates
        Slots, the first `split` for the first `half` draws. Where rows are not matched, u chooses among them.
    B, weights, mean, scores
        See `regress`.
    u
        Shape (features wanted, draws, 3): uniform numbers.
    out, used
        Shape (features wanted, draws): the draws, and the slots they came from.
    """
    m, n = out.shape[1], len(candidates)
    phi, fitted = np.empty(len(mean)), np.empty(len(mean))
    expand(x, kind, of, number, other, center, scale, phi)
    predict(phi, B, mean, fitted)
    low, high = spans(x, least, most)
    to, back = np.empty(scores.shape[1]), np.empty(scores.shape[1])
    distances, by_slot, chosen = np.empty(n), np.empty(rows_fitted.shape[1]), np.empty(m, np.int64)
    back_fitted = np.empty(len(fitted))
    for w in range(len(wanted)):
        j = wanted[w]
        first, last = start[j], start[j + 1]
        matched = False
        for i in range(len(levels)):
            matched = matched or strong[i, j]
        if matched:
            by_slot[:] = 0.0
            for c in range(first, last):
                own, others, weight = fitted[c], rows_fitted[c], weights[c] / (last - first)
                for r in range(len(by_slot)):
                    by_slot[r] += weight * (own - others[r]) * (own - others[r])
            for r in range(n):
                distances[r] = by_slot[candidates[r]]
            if half > 0:
                choose(distances, 0, split, u[w, :, 0], 0, half, NEAREST, chosen)
            choose(distances, split, n, u[w, :, 0], half, m, NEAREST, chosen)
        else:
            for draw in range(m):
                if draw < half:
                    chosen[draw] = min(int(u[w, draw, 0] * split), split - 1)
                else:
                    chosen[draw] = min(split + int(u[w, draw, 0] * (n - split)), n - 1)
        k = levels[j] - 1
        if k > 0:
            probabilities(fitted[first:last], scores[j, : k + 1, : k + 1], to)
        for draw in range(m):
            slot = candidates[chosen[draw]]
            used[w, draw] = slot
            value = rows[slot, j]
            if np.isnan(value):
                pass  # that it is missing is what was stored
            elif levels[j] == 0:
                moved = shifted(
                    value, fitted[first], rows_fitted[first, slot], low[j], high[j], center[j], scale[j], mean[first]
                )
                if moved != value:
                    value = rounded(moved, stored, stored_at[j], stored_at[j + 1])
            elif k > 0:
                for c in range(k):
                    back_fitted[c] = rows_fitted[first + c, slot]
                probabilities(back_fitted[:k], scores[j, : k + 1, : k + 1], back)
                value = float(couple(to, back, k + 1, int(value), u[w, draw, 1], u[w, draw, 2]))
            out[w, draw] = value
