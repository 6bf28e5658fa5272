"""Kernels of draws and rows: they do for encoded observations what `MarginalImputer` does for dicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import compiled


@compiled
def put(slot: int, new: bool, n: int, row: Any, keys_of_row: Any, matrix: Any, keys: Any, order: Any) -> None:
    """Store an encoded observation in a slot, and move the slot to its place in the order of each feature.

    `order` has per feature the slots, the least key first and ties by slot; `n` is their number before.
    """
    for j in range(matrix.shape[1]):
        value = _key(keys_of_row[j])
        count = n
        if not new:
            old = keys[slot, j]
            if old == value:
                continue
            at = _place(old, slot, n, keys, order, j)
            for i in range(at, n - 1):
                order[j, i] = order[j, i + 1]
            count = n - 1
        at = _place(value, slot, count, keys, order, j)
        for i in range(count, at, -1):
            order[j, i] = order[j, i - 1]
        order[j, at] = slot
    for j in range(matrix.shape[1]):
        matrix[slot, j] = row[j]
        keys[slot, j] = _key(keys_of_row[j])


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
        if keys[other, j] < value or (keys[other, j] == value and other < slot):
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
