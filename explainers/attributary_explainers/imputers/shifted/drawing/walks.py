"""The kernel of SAGE's draws: stored rows shifted for every coalition that an order of the features grows through."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiled import compiled
from ..columns import LEVEL, PRODUCT, VALUE, expand, rounded, scaled
from ..moments import factor, innovate, tell
from .levels import couple, discriminant, probabilities
from .matching import candidates, choose_along
from .spans import shifted, spans


@compiled
def arrange(order: Any, start: Any, of: Any, number: Any, other: Any, columns: Any, ends: Any) -> None:
    """Write the columns in an order of the features, a product behind the later one of its two, and where each ends."""
    d, n = len(order), len(of)
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
def discriminants(U: Any, mean: Any, order: Any, ends: Any, columns: Any, levels: Any, scores: Any) -> None:
    """Write the `discriminant` of each category given all features before it in an order, by its place."""
    for p in range(1, len(order)):
        k, first = levels[order[p]] - 1, ends[p - 1]
        if k > 0:
            between, shares = np.zeros((k, k)), np.empty(k)
            for a in range(k):
                shares[a] = mean[columns[first + a]]
                for b in range(k):
                    for i in range(first):
                        between[a, b] += U[i, first + a] * U[i, first + b]
            discriminant(between, shares, scores[p, : k + 1, : k + 1])


@compiled
def walk(
    x: Any,
    order: Any,
    stops: Any,
    rows: Any,
    rows_phi: Any,
    ages: Any,
    split: int,
    last: int,
    strong: Any,
    in_use: Any,
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
    low: Any,
    high: Any,
    stored: Any,
    stored_at: Any,
    uniform: Any,
    out: Any,
    used: Any,
) -> None:
    """Write draws of the absent features given the present ones, for coalitions of the first features of an order.

    A stored row r becomes r_A + E[x_A | x_S, drawn] - E[x_A | r_S, r drawn], A the absent and S the present features,
    one absent feature after the other; see `ShiftedSampler`. One factorisation in the order serves all coalitions, and
    a feature is drawn for all of them, and all their draws, at once.

    Parameters
    ----------
    x
        The observation, shape (features,).
    order, stops
        The features by number, and how many of them each coalition has, ascending.
    rows, rows_phi, ages
        Stored rows and their columns by slot, and the slots, that which was stored first at the beginning.
    split, last
        Of `last` candidates `split` are of the older half, for the first half of the draws. Where rows are not matched,
        the first ones of each part are the draws.
    strong
        Shape (features, features): pairs of which rows are matched.
    in_use
        Shape (columns,): their numbers in `mean` and `covariance`, which have more.
    low, high
        See `spans`.
    stored, stored_at
        See `rounded`: the values of features that are integers.
    uniform
        Shape (candidates + draws * (1 + 2 features),): uniform numbers.
    out, used
        Shapes (coalitions, draws, features) and (coalitions, draws): the draws, and the slots they came from.
    """
    d, n, m = len(x), len(kind), out.shape[1]
    half = m // 2 if split > 0 else 0
    slots = candidates(ages, uniform, split, last)
    u = uniform[last:].reshape(m, 1 + 2 * d)
    phi = np.empty(n)
    expand(x, kind, of, number, other, center, scale, phi)
    columns, ends = np.empty(n, np.int64), np.empty(d, np.int64)
    arrange(order, start, of, number, other, columns, ends)
    U = np.empty((n, n))
    factor(covariance, in_use[columns], U)
    # What the columns of the candidates tell that those before do not, and of x, which comes last.
    told, deviations = np.zeros((n, last + 1)), np.empty((n, last + 1))
    for i in range(n):
        c = columns[i]
        center_of = mean[in_use[c]]
        for r in range(last):
            deviations[i, r] = rows_phi[slots[r], c] - center_of
        deviations[i, last] = phi[c] - center_of
        tell(U, 0, i, i, deviations, 0, last + 1, told[i])
        innovate(told[i], U[i, i], last + 1, deviations[i])
    most = 1
    for j in range(d):
        most = max(most, levels[j])
    scores = np.empty((d, most, most))
    discriminants(U, mean, order, ends, in_use[columns], levels, scores)
    chosen = np.empty(len(stops) * m, np.int64)
    choose_along(U, deviations, order, stops, ends, split, half, strong, u[:, 0], m, chosen)
    # Draws by number: those of the first coalition, of the second one, ...
    drawn, values = np.empty((n, len(chosen))), np.empty((n, len(chosen)))
    fitted, found = np.empty((most, len(chosen))), np.empty(len(chosen))
    to, back = np.empty(most), np.empty(most)
    of_draw, of_row = np.empty(most), np.empty(most)
    for s in range(len(stops)):
        for draw in range(m):
            used[s, draw] = slots[chosen[s * m + draw]]
            for p in range(stops[s]):
                out[s, draw, order[p]] = x[order[p]]
    now, s = 0, 0
    for p in range(stops[0], d):
        j, t = order[p], ends[p - 1] if p > 0 else 0
        while s < len(stops) and stops[s] == p:
            for i in range(t):
                drawn[i, now : now + m] = deviations[i, last]
                values[columns[i], now : now + m] = phi[columns[i]]
            s += 1
            now += m
        k = max(levels[j] - 1, 0)
        for c in range(max(k, 1)):
            fitted[c, :now] = 0.0
            tell(U, 0, t, t + c, drawn, 0, now, fitted[c])
        for a in range(now):
            r = chosen[a]
            value = rows[slots[r], j]
            if np.isnan(value):
                pass  # that it is missing is what was stored
            elif levels[j] == 0:
                center_of = mean[in_use[start[j]]]
                moved = shifted(value, fitted[0, a], told[t, r], low[j], high[j], center[j], scale[j], center_of)
                if moved != value:
                    value = rounded(moved, stored, stored_at[j], stored_at[j + 1])
            elif k > 0 and p > 0:
                for c in range(k):
                    of_draw[c], of_row[c] = fitted[c, a], told[t + c, r]
                    for i in range(t, t + c):  # what is told of a row's level includes the levels before
                        of_row[c] -= U[i, t + c] * deviations[i, r]
                probabilities(of_draw[:k], scores[p, : k + 1, : k + 1], to)
                probabilities(of_row[:k], scores[p, : k + 1, : k + 1], back)
                draw = a % m
                value = float(couple(to, back, k + 1, int(value), u[draw, 1 + p], u[draw, 1 + d + p]))
            found[a] = out[a // m, a % m, j] = value
        if p == d - 1:
            continue
        for i in range(t, ends[p]):
            c = columns[i]
            own, center_of = values[c], mean[in_use[c]]
            for a in range(now):
                value = found[a]
                if kind[c] == PRODUCT:
                    own[a] = values[int(number[c]), a] * values[other[c], a]
                elif np.isnan(value):
                    own[a] = np.nan
                elif kind[c] == LEVEL:
                    own[a] = 1.0 if value == number[c] else 0.0
                else:
                    z = scaled(value, center[j], scale[j])
                    own[a] = z if kind[c] == VALUE else max(z - number[c], 0.0)
                drawn[i, a] = own[a] - center_of
            if i > t:
                fitted[0, :now] = 0.0
                tell(U, 0, i, i, drawn, 0, now, fitted[0])
            innovate(fitted[0], U[i, i], now, drawn[i])


@compiled
def walks(
    x: Any,
    orders: Any,
    stops: Any,
    least: Any,
    most: Any,
    rows: Any,
    rows_phi: Any,
    ages: Any,
    split: int,
    last: int,
    strong: Any,
    in_use: Any,
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
    uniform: Any,
    out: Any,
    used: Any,
) -> None:
    """Write the draws of `walk` for several orders of the features, all by the same numbers.

    Parameters
    ----------
    orders, stops
        Shapes (orders, features) and (orders, coalitions of each).
    least, most
        See `spans.ends`.
    out, used
        Those of `walk`, for the coalitions of the first order, of the second one, ...
    """
    low, high = spans(x, least, most)
    n = stops.shape[1]
    for o in range(len(orders) if n > 0 else 0):  # a single player has no coalition to be walked through
        walk(
            x, orders[o], stops[o], rows, rows_phi, ages, split, last, strong, in_use, mean, covariance, levels, start,
            kind, of, number, other, center, scale, low, high, stored, stored_at, uniform,
            out[o * n : (o + 1) * n], used[o * n : (o + 1) * n],
        )  # fmt: skip
