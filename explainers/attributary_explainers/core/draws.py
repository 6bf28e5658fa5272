"""Draws: which stored rows replace removed features, and the rows to evaluate that are made of them."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from . import _cython as cython


# hot
def spread_slots(
    u: cython.double[:, ::1],
    n_stored: cython.Py_ssize_t,
    columns: cython.Py_ssize_t[::1],
    order: cython.int[:, ::1],
    slots: cython.Py_ssize_t[:, ::1],
) -> None:
    """Write the slots at the positions of `strata.strata` for each player, in the order of the player's feature.

    Parameters
    ----------
    u, slots
        Shape (players, draws): uniform numbers, and the slots that they stand for.
    n_stored
        How many rows are stored.
    columns
        Shape (players,): the column of each player's feature.
    order
        Shape (features, slots): by feature the slots, the least value first.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    place: cython.Py_ssize_t
    n: cython.Py_ssize_t = u.shape[1]
    part: cython.double = n_stored
    part /= n
    for i in range(u.shape[0]):
        for j in range(n):
            place = int((j + u[i, j]) * part)
            slots[i, j] = order[columns[i], min(place, n_stored - 1)]


# hot
def replaced(
    start: cython.Py_ssize_t,
    columns: cython.Py_ssize_t[::1],
    slots: cython.Py_ssize_t[:, ::1],
    matrix: cython.double[:, ::1],
    X: cython.double[:, ::1],
) -> None:
    """Write for each player and draw row 0 with the player's feature from the slot drawn, as `rows.replace` does."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    f: cython.Py_ssize_t
    r: cython.Py_ssize_t = start
    column: cython.Py_ssize_t
    for i in range(slots.shape[0]):
        column = columns[i]
        for j in range(slots.shape[1]):
            for f in range(X.shape[1]):
                X[r, f] = X[0, f]
            X[r, column] = matrix[slots[i, j], column]
            r += 1


# hot
def spread_over_halves(
    u: cython.double[::1],
    older: cython.longlong[::1],
    younger: cython.longlong[::1],
    stratified: cython.bint,
    slots: cython.Py_ssize_t[::1],
) -> None:
    """Write a slot for each uniform number: the first half of them from the older rows, the others from the younger.

    `older` and `younger` are slots in the order of a key. Stratified, each number is for an equal part of its half. A
    single number is for both halves, and so are all where no row is older.
    """
    j: cython.Py_ssize_t
    place: cython.Py_ssize_t
    n: cython.Py_ssize_t = u.shape[0]
    n_older: cython.Py_ssize_t = older.shape[0]
    n_younger: cython.Py_ssize_t = younger.shape[0]
    half: cython.Py_ssize_t = n // 2
    n_slots: cython.Py_ssize_t
    width: cython.double
    if n == 1:
        place = min(int(u[0] * (n_older + n_younger)), n_older + n_younger - 1)
        slots[0] = older[place] if place < n_older else younger[place - n_older]
        return
    for j in range(n):
        n_slots = n_older if j < half and n_older > 0 else n_younger
        width = n_slots
        if not stratified:
            place = int(u[j] * width)
        elif j < half:
            width /= half
            place = int((j + u[j]) * width)
        else:
            width /= n - half
            place = int((j - half + u[j]) * width)
        place = min(place, n_slots - 1)
        slots[j] = older[place] if j < half and n_older > 0 else younger[place]


# hot
def kept(
    start: cython.Py_ssize_t,
    orders: cython.Py_ssize_t[:, ::1],
    columns: cython.Py_ssize_t[::1],
    slots: cython.Py_ssize_t[::1],
    matrix: cython.double[:, ::1],
    X: cython.double[:, ::1],
) -> None:
    """Write for each coalition and draw the slot drawn with the coalition's features from row 0, as `rows.keep`.

    Parameters
    ----------
    orders
        Shape (orders, players): the players by number; all but the last one of an order are walked.
    columns
        Shape (players,): the column of each player's feature.
    """
    o: cython.Py_ssize_t
    size: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    f: cython.Py_ssize_t
    column: cython.Py_ssize_t
    r: cython.Py_ssize_t = start
    for o in range(orders.shape[0]):
        for size in range(1, orders.shape[1]):
            for j in range(slots.shape[0]):
                for f in range(X.shape[1]):
                    X[r, f] = matrix[slots[j], f]
                for i in range(size):
                    column = columns[orders[o, i]]
                    X[r, column] = X[0, column]
                r += 1
