"""The kernel of SAGE's draws: stored rows shifted for every coalition that an order of the features grows through."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled
from .columns import LEVEL, PRODUCT, VALUE, rounded, scaled
from .levels import couple, discriminant, probabilities
from .matching import choose
from .moments import RIDGE, factor, innovations, innovations_of

NEAREST = 3
"""The bandwidth of matching is the distance of this nearest candidate."""
LEAST_VARIANCE = 0.01
"""What is left of a column's variance counts at least as this share of it when distances are measured."""


@compiled
def arrange(order: Any, start: Any, kind: Any, of: Any, number: Any, other: Any, columns: Any, ends: Any) -> None:
    """Write the columns in an order of the features, a product behind the later one of its two, and where each ends."""
    d, n = len(order), len(kind)
    place = np.empty(d, np.int64)
    for p in range(d):
        place[order[p]] = p
    at = 0
    for p in range(d):
        j = order[p]
        for c in range(start[j], start[j + 1]):
            columns[at] = c
            at += 1
        for c in range(start[d], n):
            if max(place[of[int(number[c])]], place[of[other[c]]]) == p:
                columns[at] = c
                at += 1
        ends[p] = at


@compiled
def walk(
    x: Any,
    phi: Any,
    order: Any,
    stops: Any,
    rows: Any,
    rows_phi: Any,
    split: int,
    half: int,
    strong: Any,
    mean: Any,
    covariance: Any,
    levels: Any,
    start: Any,
    kind: Any,
    of: Any,
    number: Any,
    other: Any,
    center: Any,
    scale: Any,
    stored: Any,
    stored_at: Any,
    u: Any,
    out: Any,
    used: Any,
) -> None:
    """Write draws of the absent features given the present ones, for coalitions of the first features of an order.

    A stored row r becomes r_A + E[x_A | x_S, drawn] - E[x_A | r_S, r drawn], A the absent and S the present features,
    one absent feature after the other; see `ShiftedSampler`.

    Parameters
    ----------
    x, phi
        The observation, shape (features,), and its columns.
    order, stops
        The features by number, and how many of them each coalition has.
    rows, rows_phi
        Stored rows and their columns, candidates where rows are matched: `split` of them for the first `half` draws,
        the others for the other draws. Where they are not, the first ones of each part are the draws.
    strong
        Shape (features, features): pairs of which rows are matched.
    stored, stored_at
        See `rounded`: the values of features that are integers.
    u
        Shape (draws, 1 + 2 features): uniform numbers.
    out, used
        Shapes (coalitions, draws, features) and (coalitions, draws): the draws, and which of `rows` they came from.
    """
    d, n, m = len(x), len(phi), out.shape[1]
    columns, ends = np.empty(n, np.int64), np.empty(d, np.int64)
    arrange(order, start, kind, of, number, other, columns, ends)
    L = np.zeros((n, n))
    factor(covariance, columns, L)
    deviations, of_x = np.empty(n), np.zeros(n)
    for i in range(n):
        deviations[i] = phi[columns[i]] - mean[columns[i]]
    innovations(L, deviations, 0, n, of_x)
    of_rows = innovations_of(L, rows_phi, columns, mean)
    most = 1
    for j in range(d):
        most = max(most, levels[j])
    means, inverses = np.empty((d, most, most)), np.empty((d, most, most))
    for p in range(1, d):
        k = levels[order[p]] - 1
        if k > 0:
            first = ends[p - 1]
            between = np.zeros((k, k))
            for a in range(k):
                for b in range(k):
                    for i in range(first):
                        between[a, b] += L[first + a, i] * L[first + b, i]
            shares = mean[start[order[p]] : start[order[p]] + k]
            discriminant(between, shares, means[p, : k + 1, :k], inverses[p, :k, :k])
    left = np.empty(n)  # what the columns known so far leave of the variance
    for i in range(n):
        left[i] = (1.0 + RIDGE) * covariance[columns[i], columns[i]]
    apart, distances = np.zeros((n, len(rows))), np.empty(len(rows))
    chosen = np.empty(m, np.int64)
    drawn, now, to, back = np.empty(n), np.empty(n), np.empty(most), np.empty(most)
    fitted, of_row = np.empty(most), np.empty(n)
    done = 0
    for s in range(len(stops)):
        known = ends[stops[s] - 1] if stops[s] > 0 else 0
        matched = False
        for p in range(stops[s]):
            for q in range(stops[s], d):
                matched = matched or strong[order[p], order[q]]
        for i in range(known, n):
            for t in range(done, known):
                left[i] -= L[i, t] * L[i, t]
        if len(rows) > m:
            distances[:] = 0.0
            for i in range(known, n):
                own = apart[i]
                for t in range(done, known):
                    a, b = L[i, t], of_x[t]
                    others = of_rows[t]
                    for r in range(len(rows)):
                        own[r] += a * (b - others[r])
                v = covariance[columns[i], columns[i]]
                if v > 0.0:
                    weight = 1.0 / (max(left[i], LEAST_VARIANCE * v) * (n - known))
                    for r in range(len(rows)):
                        distances[r] += weight * own[r] * own[r]
        done = known
        if matched and len(rows) > m:
            if half > 0:
                choose(distances, 0, split, u[:, 0], 0, half, NEAREST, chosen)
            choose(distances, split, len(rows), u[:, 0], half, m, NEAREST, chosen)
        else:
            for r in range(m):
                chosen[r] = r if r < half else split + r - half
        for draw in range(m):
            r = chosen[draw]
            used[s, draw] = r
            for i in range(n):
                of_row[i] = of_rows[i, r]
            for i in range(known):
                drawn[i] = of_x[i]
                now[columns[i]] = phi[columns[i]]
            for p in range(stops[s]):
                out[s, draw, order[p]] = x[order[p]]
            for p in range(stops[s], d):
                j, t = order[p], ends[p - 1] if p > 0 else 0
                value = rows[r, j]
                if np.isnan(value):
                    pass  # that it is missing is what was stored
                elif levels[j] == 0:
                    move = 0.0
                    for i in range(t):
                        move += L[t, i] * (drawn[i] - of_row[i])
                    if move != 0.0:
                        value = rounded(value + scale[j] * move, stored, stored_at[j], stored_at[j + 1])
                elif levels[j] > 1 and p > 0:
                    k = levels[j] - 1
                    shares = mean[start[j] : start[j] + k]
                    for c in range(k):
                        fitted[c] = 0.0
                        for i in range(t):
                            fitted[c] += L[t + c, i] * drawn[i]
                    probabilities(fitted, shares, means[p, : k + 1, :k], inverses[p, :k, :k], to)
                    for c in range(k):
                        fitted[c] = 0.0
                        for i in range(t):
                            fitted[c] += L[t + c, i] * of_row[i]
                    probabilities(fitted, shares, means[p, : k + 1, :k], inverses[p, :k, :k], back)
                    value = float(couple(to, back, k + 1, int(value), u[draw, 1 + p], u[draw, 1 + d + p]))
                out[s, draw, j] = value
                if p == d - 1:
                    continue
                for i in range(t, ends[p]):
                    c = columns[i]
                    if kind[c] == PRODUCT:
                        now[c] = now[int(number[c])] * now[other[c]]
                    elif np.isnan(value):
                        now[c] = np.nan
                    elif kind[c] == LEVEL:
                        now[c] = 1.0 if value == number[c] else 0.0
                    else:
                        z = scaled(value, center[j], scale[j])
                        now[c] = z if kind[c] == VALUE else max(z - number[c], 0.0)
                    deviations[i] = now[c] - mean[c]
                innovations(L, deviations, t, ends[p], drawn)
