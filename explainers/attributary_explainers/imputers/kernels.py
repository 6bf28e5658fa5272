"""Kernels of draws and rows: they do for encoded observations what `MarginalImputer` does for dicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import compiled


@compiled
def put(slot: int, n: int, row: Any, keys_of_row: Any, matrix: Any, keys: Any, order: Any) -> None:
    """Store an encoded observation in a slot, and move the slot to its place in the order of each feature.

    `order` has per feature the slots, the least key first and ties by slot; `n` is their number before, and the slot
    that is new. `keys` has the shape (features, slots): what is looked up for a feature lies together.
    """
    last = np.uint64(1)
    for j in range(matrix.shape[1]):
        matrix[slot, j] = row[j]
        key = keys_of_row[j]
        if key != key:
            key = -np.inf  # what is absent, as NaN says, comes before all values
        if slot < n and keys[j, slot] == key:
            continue
        before = keys[j, slot] if slot < n else key
        # The places of both keys, in steps alike: one search waits for the memory while the other one does. Neither has
        # branches, of which the processor would guess every second one wrong. Unsigned, as numba asks of any other
        # index whether it counts from the end.
        left, right, size = np.uint64(0), np.uint64(0), np.uint64(n)
        while size > last:
            half = size >> last
            there, here = order[j, left + half - last], order[j, right + half - last]
            of_there, of_here = keys[j, there], keys[j, here]
            left = left + half if (of_there < before) | ((of_there == before) & (there < slot)) else left
            right = right + half if (of_here < key) | ((of_here == key) & (here < slot)) else right
            size = size - half
        at: Any = np.int64(left)
        to: Any = np.int64(right)
        if n > 0:
            there, here = order[j, at], order[j, to]
            of_there, of_here = keys[j, there], keys[j, here]
            at = at + 1 if (of_there < before) | ((of_there == before) & (there < slot)) else at
            to = to + 1 if (of_here < key) | ((of_here == key) & (here < slot)) else to
        if slot == n:
            at = n
        if at >= to:
            between = order[j, to : at + 1]
            for i in range(at - to, 0, -1):
                between[i] = between[i - 1]
            between[0] = slot
        else:
            between = order[j, at:to]
            for i in range(to - at - 1):
                between[i] = between[i + 1]
            between[to - at - 1] = slot
        keys[j, slot] = key


@compiled
def put_numbers(
    slot: int, n: int, numbers: Any, places: Any, exact: float, row: Any, matrix: Any, keys: Any, order: Any
) -> bool:
    """Do what `put` does for an observation as it is kept.

    Parameters
    ----------
    numbers
        Shape (features,): its bytes as floats.
    places
        Shape (features,): where the value of each column is in them; -1 and less where it is an integer, at -1 and on.
    exact
        Numbers have to be below it without their signs.
    row
        Shape (features,): room for the observation.

    Returns
    -------
    False, and nothing is stored, where one is not, or is no number.
    """
    integers = numbers.view(np.int64)
    for j in range(len(places)):
        place = places[j]
        row[j] = numbers[place] if place >= 0 else float(integers[-1 - place])
        if not abs(row[j]) < exact:
            return False
    put(slot, n, row, row, matrix, keys, order)
    return True


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


@compiled
def put_in_half(slot: int, n: int, number: int, first: float, second: float, keys: Any, slots: Any) -> None:
    """Store the key and the number of a row in a slot, and let both halves be right again: see `HalvesByAge`.

    Parameters
    ----------
    n
        How many slots there were before, and the slot that is new.
    number
        Of the row: less for what is older.
    first, second, keys
        The key; and the keys of all slots, shape (2, slots).
    slots
        Shape (4, slots): the slots of the older half in the order of their keys, ties by slot; those of the younger
        one; those of all by age; and by slot the number of its row.
    """
    n_older = n // 2
    if slot < n:
        half = 0 if slots[3, slot] < slots[3, slots[2, n_older]] else 1
        size = n - n_older if half else n_older
        _take_out(_place_in_half(slot, size, half, keys, slots), size, half, slots)
        _take_out(_place_by_age(slots[3, slot], n, slots), n, 2, slots)
        n_older -= 1 - half
        n -= 1
    keys[0, slot], keys[1, slot], slots[3, slot] = first, second, number
    _insert(slot, _place_by_age(number, n, slots), n, 2, slots)
    n += 1
    wanted = n // 2
    border = slots[2, wanted]
    n_younger = n - 1 - n_older
    if number < slots[3, border]:
        _insert(slot, _place_in_half(slot, n_older, 0, keys, slots), n_older, 0, slots)
        n_older += 1
    else:
        _insert(slot, _place_in_half(slot, n_younger, 1, keys, slots), n_younger, 1, slots)
        n_younger += 1
    # All others are where they were, but for one on the border.
    if n_older < wanted:
        moved = slots[2, wanted - 1]
        _take_out(_place_in_half(moved, n_younger, 1, keys, slots), n_younger, 1, slots)
        _insert(moved, _place_in_half(moved, n_older, 0, keys, slots), n_older, 0, slots)
    elif n_older > wanted:
        _take_out(_place_in_half(border, n_older, 0, keys, slots), n_older, 0, slots)
        _insert(border, _place_in_half(border, n_younger, 1, keys, slots), n_younger, 1, slots)


@compiled
def _place_in_half(slot: int, size: int, half: int, keys: Any, slots: Any) -> int:
    """Return the place of a slot, by its key, in a half of this size."""
    first, second = keys[0, slot], keys[1, slot]
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        other = slots[half, middle]
        is_less = (keys[1, other] < second) | ((keys[1, other] == second) & (other < slot))
        if (keys[0, other] < first) | ((keys[0, other] == first) & is_less):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _place_by_age(number: int, n: int, slots: Any) -> int:
    """Return the place of the row of a number among the first n by age."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if slots[3, slots[2, middle]] < number:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _take_out(at: int, n: int, order: int, slots: Any) -> None:
    """Take out what is at a place of one of the orders, of n slots."""
    for i in range(at, n - 1):
        slots[order, i] = slots[order, i + 1]


@compiled
def _insert(slot: int, at: int, n: int, order: int, slots: Any) -> None:
    """Insert a slot at a place of one of the orders, of n slots before."""
    for i in range(n, at, -1):
        slots[order, i] = slots[order, i - 1]
    slots[order, at] = slot
