"""Stored observations as rows of numbers, with the order of their slots by each feature, and by age and prediction."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import fabs
else:
    from math import fabs

_INFINITE = cython.declare(cython.double, float("inf"))


# hot
def put(
    slot: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    row: cython.double[::1],
    keys_of_row: cython.double[::1],
    matrix: cython.double[:, ::1],
    keys: cython.double[:, ::1],
    order: cython.int[:, ::1],
) -> None:
    """Store an encoded observation in a slot, and move the slot to its place in the order of each feature.

    Parameters
    ----------
    n
        How many slots there were before, and the slot that is new.
    row, keys_of_row
        Shape (features,): the observation, and what it is sorted by; NaN is what is absent, and comes first.
    matrix
        Shape (slots, features).
    keys, order
        Shape (features, slots): by feature the keys of the slots; and the slots, the least key first, ties by slot.
    """
    _put(slot, n, row, keys_of_row, matrix, keys, order)


@cython.cfunc
@cython.exceptval(check=False)
def _put(
    slot: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    row: cython.double[::1],
    keys_of_row: cython.double[::1],
    matrix: cython.double[:, ::1],
    keys: cython.double[:, ::1],
    order: cython.int[:, ::1],
) -> cython.bint:
    j: cython.Py_ssize_t
    at: cython.Py_ssize_t
    to: cython.Py_ssize_t
    key: cython.double
    for j in range(matrix.shape[1]):
        matrix[slot, j] = row[j]
        key = keys_of_row[j]
        if key != key:
            key = -_INFINITE
        if slot < n and keys[j, slot] == key:
            continue
        at = n if slot == n else _place(j, n, keys[j, slot], slot, keys, order)
        to = _place(j, n, key, slot, keys, order)
        while at > to:
            order[j, at] = order[j, at - 1]
            at -= 1
        while at < to - 1:
            order[j, at] = order[j, at + 1]
            at += 1
        order[j, at] = slot
        keys[j, slot] = key
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _place(
    j: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    key: cython.double,
    slot: cython.Py_ssize_t,
    keys: cython.double[:, ::1],
    order: cython.int[:, ::1],
) -> cython.Py_ssize_t:
    """Return how many slots come before a slot with this key in the order of a feature."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = n
    middle: cython.Py_ssize_t
    other: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        other = order[j, middle]
        if keys[j, other] < key or (keys[j, other] == key and other < slot):
            low = middle + 1
        else:
            high = middle
    return low


# hot
def put_numbers(
    slot: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    floats_of_row: cython.double[::1],
    integers_of_row: cython.longlong[::1],
    places: cython.Py_ssize_t[::1],
    exact: cython.double,
    row: cython.double[::1],
    matrix: cython.double[:, ::1],
    keys: cython.double[:, ::1],
    order: cython.int[:, ::1],
) -> bool:
    """Do what `put` does for an observation as it is kept.

    Parameters
    ----------
    floats_of_row, integers_of_row
        Shape (features,): its bytes, as the ones and as the others.
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
    j: cython.Py_ssize_t
    place: cython.Py_ssize_t
    for j in range(places.shape[0]):
        place = places[j]
        row[j] = floats_of_row[place] if place >= 0 else integers_of_row[-1 - place]
        if not fabs(row[j]) < exact:
            return False
    _put(slot, n, row, row, matrix, keys, order)
    return True


# hot
def put_in_half(
    slot: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    number: cython.longlong,
    first: cython.double,
    second: cython.double,
    keys: cython.double[:, ::1],
    slots: cython.longlong[:, ::1],
) -> None:
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
    n_older: cython.Py_ssize_t = n // 2
    n_younger: cython.Py_ssize_t
    half: cython.Py_ssize_t
    size: cython.Py_ssize_t
    wanted: cython.Py_ssize_t
    border: cython.Py_ssize_t
    moved: cython.Py_ssize_t
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


@cython.cfunc
@cython.exceptval(check=False)
def _place_in_half(
    slot: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    half: cython.Py_ssize_t,
    keys: cython.double[:, ::1],
    slots: cython.longlong[:, ::1],
) -> cython.Py_ssize_t:
    """Return the place of a slot, by its key, in a half of this size."""
    first: cython.double = keys[0, slot]
    second: cython.double = keys[1, slot]
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = size
    middle: cython.Py_ssize_t
    other: cython.Py_ssize_t
    is_less: cython.bint
    while low < high:
        middle = (low + high) // 2
        other = slots[half, middle]
        is_less = keys[1, other] < second or (keys[1, other] == second and other < slot)
        if keys[0, other] < first or (keys[0, other] == first and is_less):
            low = middle + 1
        else:
            high = middle
    return low


@cython.cfunc
@cython.exceptval(check=False)
def _place_by_age(number: cython.longlong, n: cython.Py_ssize_t, slots: cython.longlong[:, ::1]) -> cython.Py_ssize_t:
    """Return the place of the row of a number among the first n by age."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = n
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if slots[3, slots[2, middle]] < number:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cfunc
@cython.exceptval(check=False)
def _take_out(
    at: cython.Py_ssize_t, n: cython.Py_ssize_t, order: cython.Py_ssize_t, slots: cython.longlong[:, ::1]
) -> cython.bint:
    """Take out what is at a place of one of the orders, of n slots."""
    i: cython.Py_ssize_t
    for i in range(at, n - 1):
        slots[order, i] = slots[order, i + 1]
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _insert(
    slot: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    order: cython.Py_ssize_t,
    slots: cython.longlong[:, ::1],
) -> cython.bint:
    """Insert a slot at a place of one of the orders, of n slots before."""
    i: cython.Py_ssize_t
    for i in range(n, at, -1):
        slots[order, i] = slots[order, i - 1]
    slots[order, at] = slot
    return True
