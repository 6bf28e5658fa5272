"""Kernels of draws and rows: they do for encoded observations what `MarginalImputer` does for dicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import compiled


@compiled
def put(slot: int, new: bool, n: int, row: Any, keys_of_row: Any, matrix: Any, keys: Any, order: Any) -> None:
    """Store an encoded observation in a slot, and move the slot to its place in the order of each feature.

    `order` has per feature the slots, the least key first and ties by slot; `n` is their number before. `keys` has the
    shape (features, slots): what is looked up for a feature lies together.
    """
    for j in range(matrix.shape[1]):
        value = _key(keys_of_row[j])
        at = n
        if not new:
            if keys[j, slot] == value:
                continue
            at = _place(keys[j, slot], slot, n, keys, order, j)
        to = _place(value, slot, n, keys, order, j)
        while at > to:
            order[j, at] = order[j, at - 1]
            at -= 1
        while at + 1 < to:
            order[j, at] = order[j, at + 1]
            at += 1
        order[j, at] = slot
    for j in range(matrix.shape[1]):
        matrix[slot, j] = row[j]
        keys[j, slot] = _key(keys_of_row[j])


@compiled
def put_numbers(
    slot: int,
    new: bool,
    n: int,
    floats: Any,
    integers: Any,
    are_integers: Any,
    places: Any,
    exact: float,
    row: Any,
    matrix: Any,
    keys: Any,
    order: Any,
) -> bool:
    """Do what `put` does for an observation as it is kept.

    Parameters
    ----------
    floats, integers, are_integers
        Shape (features,): its bytes as the ones and as the others, and which of the two each value is.
    places
        Shape (features,): where the value of each column is in them.
    exact
        Numbers have to be below it without their signs.
    row
        Shape (features,): room for the observation.

    Returns
    -------
    False, and nothing is stored, where one is not, or is no number.
    """
    for j in range(len(places)):
        place = places[j]
        row[j] = float(integers[place]) if are_integers[place] else floats[place]
        if not abs(row[j]) < exact:
            return False
    put(slot, new, n, row, row, matrix, keys, order)
    return True


@compiled
def _key(value: float) -> float:
    """Return what a value is sorted by: what is absent, as NaN says, comes before all values."""
    return value if value == value else -np.inf


@compiled
def _place(value: float, slot: int, n: int, keys: Any, order: Any, j: int) -> int:
    """Return the place of (value, slot) among the first n of a feature's order."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        other = order[j, middle]
        if keys[j, other] < value or (keys[j, other] == value and other < slot):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def spread_slots(u: Any, n_stored: int, columns: Any, order: Any, slots: Any) -> None:
    """Write the slots at the positions of `strata.strata` for each player, in the order of the player's feature."""
    k, n = u.shape
    part = n_stored / n
    for i in range(k):
        for j in range(n):
            slots[i, j] = order[columns[i], min(int((j + u[i, j]) * part), n_stored - 1)]


@compiled
def replaced(start: int, columns: Any, slots: Any, matrix: Any, X: Any) -> None:
    """Write for each player and draw row 0 with the player's feature from the slot drawn, as `rows.replace` does."""
    k, n = slots.shape
    r = start
    for i in range(k):
        column = columns[i]
        for j in range(n):
            for f in range(X.shape[1]):
                X[r, f] = X[0, f]
            X[r, column] = matrix[slots[i, j], column]
            r += 1


@compiled
def spread_and_replaced(
    u: Any, n_stored: int, columns: Any, order: Any, slots: Any, start: int, matrix: Any, X: Any
) -> None:
    """Do `spread_slots` and `replaced` in one call, as it is the calls that take time."""
    spread_slots(u, n_stored, columns, order, slots)
    replaced(start, columns, slots, matrix, X)


@compiled
def spread_over_halves(u: Any, older: Any, younger: Any, stratified: bool, slots: Any) -> None:
    """Write a slot for each uniform number: the first half of them from the older rows, the others from the younger.

    `older` and `younger` are slots in the order of a key. Stratified, each number is for an equal part of its half. A
    single number is for both halves, and so are all where no row is older.
    """
    n, n_older, n_younger = len(u), len(older), len(younger)
    if n == 1:
        place = min(int(u[0] * (n_older + n_younger)), n_older + n_younger - 1)
        slots[0] = older[place] if place < n_older else younger[place - n_older]
        return
    half = n // 2
    for j in range(n):
        order = older if j < half and n_older > 0 else younger
        size, part = (half, j) if j < half else (n - half, j - half)
        n_slots = len(order)
        place = int((part + u[j]) * (n_slots / size)) if stratified else int(u[j] * n_slots)
        slots[j] = order[min(place, n_slots - 1)]


@compiled
def spread_and_kept(
    u: Any,
    older: Any,
    younger: Any,
    stratified: bool,
    slots: Any,
    start: int,
    orders: Any,
    columns: Any,
    matrix: Any,
    X: Any,
) -> None:
    """Do `spread_over_halves` and `kept` in one call, as it is the calls that take time."""
    spread_over_halves(u, older, younger, stratified, slots)
    kept(start, orders, columns, slots, matrix, X)


@compiled
def kept(start: int, orders: Any, columns: Any, slots: Any, matrix: Any, X: Any) -> None:
    """Write for each coalition and draw the slot drawn with the coalition's features from row 0, as `rows.keep`."""
    r = start
    for o in range(orders.shape[0]):
        for size in range(1, orders.shape[1]):
            for j in range(slots.shape[0]):
                for f in range(X.shape[1]):
                    X[r, f] = matrix[slots[j], f]
                for i in range(size):
                    column = columns[orders[o, i]]
                    X[r, column] = X[0, column]
                r += 1


@compiled
def means_of_numbers(
    floats: Any,
    integers: Any,
    kinds: Any,
    are_integers: Any,
    start: int,
    step: int,
    largest: float,
    exact: float,
    means: Any,
) -> bool:
    """Write the mean of each column over every `step`-th row from `start` on, added one after the other.

    Parameters
    ----------
    floats, integers
        Shape (rows, columns): the bytes of the rows, as the ones and as the others.
    kinds, are_integers
        Shapes (rows,) and (kinds, columns): by the kind of a row, as which each of its columns is to be read.
    largest, exact
        A mean has to be below the one, a sum of integers without their signs below the other.

    Returns
    -------
    False where one is not, or no number.
    """
    fine = True
    for c in range(floats.shape[1]):
        total, size, n = 0.0, 0.0, 0
        for r in range(start, floats.shape[0], step):
            if are_integers[kinds[r], c]:
                value = float(integers[r, c])
                size += abs(value)
            else:
                value = floats[r, c]
            total += value
            n += 1
        means[c] = total / n
        fine = fine and abs(means[c]) < largest and size < exact
    return fine


@compiled
def correlate(rate: float, columns: Any, values: Any, means: Any, moments: Any) -> None:
    """Smooth means, variances and covariances of pairs of numbers, one pair for each column: see `Locality`."""
    for i in range(len(columns)):
        c = columns[i]
        moments[4, c] += rate * (1.0 - moments[4, c])
        share = min(rate / moments[4, c], 1.0)
        of_x, of_z = values[i] - moments[0, c], means[i] - moments[2, c]
        moments[0, c] += share * of_x
        moments[2, c] += share * of_z
        moments[1, c] = (1.0 - share) * (moments[1, c] + share * of_x * of_x)
        moments[3, c] = (1.0 - share) * (moments[3, c] + share * of_x * of_z)
        moments[5, c] = (1.0 - share) * (moments[5, c] + share * of_z * of_z)
