"""Nearest stored rows of many rows, and the classes they vote for."""

from __future__ import annotations

from typing import Any

from ..buffers import floats, integers

try:
    import cython
except ImportError:
    from .. import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import exp, sqrt
else:
    from math import exp, sqrt

_ROOM: Any = cython.declare(cython.double, 1.0 - 1e-12)
_INFINITE: Any = cython.declare(cython.double, float("inf"))


def nearest(X: Any, columns: Any, order: Any, head: int, n: int, found: Any, distances: Any) -> None:
    """Find each row's neighbours, fast where rows resemble the first row.

    The squares of the first row, corrected for the few columns that differ, leave out what cannot be near, with room
    for rounding; what remains is computed as for the first row.

    Parameters
    ----------
    X
        Shape (rows, features).
    columns
        Shape (features, places): a ring of `n` stored rows; `head` is the oldest.
    order
        The features in the order in which squares are summed.
    found, distances
        Shape (rows, neighbours): the places of the neighbours of each row, the nearest first, and how far they are.
    """
    rows: cython.double[:, ::1] = X if cython.compiled else memoryview(X)
    ring: cython.double[:, ::1] = columns if cython.compiled else memoryview(columns)
    names: cython.longlong[::1] = order if cython.compiled else memoryview(order)
    places: cython.longlong[:, ::1] = found if cython.compiled else memoryview(found)
    far: cython.double[:, ::1] = distances if cython.compiled else memoryview(distances)
    at: cython.Py_ssize_t = head
    size: cython.Py_ssize_t = n
    d: cython.Py_ssize_t = ring.shape[0]
    capacity: cython.Py_ssize_t = ring.shape[1]
    k: cython.Py_ssize_t = places.shape[1]
    first: cython.double[::1] = floats(size)  # squares of the first row
    least: cython.double[::1] = floats(size)  # of this row: not more than its squares, or just these
    changed: cython.longlong[::1] = integers(d)
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    i: cython.Py_ssize_t
    q: cython.Py_ssize_t
    age: cython.Py_ssize_t
    kept: cython.Py_ssize_t
    n_changed: cython.Py_ssize_t
    exact: cython.bint
    now: cython.double
    before: cython.double
    one: cython.double
    other: cython.double
    limit: cython.double
    distance: cython.double
    _squares(rows, 0, ring, names, first)
    for r in range(rows.shape[0]):
        n_changed = 0
        for j in range(d):
            if rows[r, j] != rows[0, j]:
                changed[n_changed] = j
                n_changed += 1
        exact = r == 0 or 2 * n_changed > d
        if exact:
            _squares(rows, r, ring, names, least)
        else:
            for i in range(size):
                least[i] = first[i] * _ROOM
            for q in range(n_changed):
                j = changed[q]
                now, before = rows[r, j], rows[0, j]
                for i in range(size):
                    one, other = now - ring[j, i], before - ring[j, i]
                    least[i] += one * one * _ROOM - other * other
        limit = _INFINITE
        if not exact and k < size:  # the neighbours of the first row are at most this far
            limit = 0.0
            for q in range(k):
                limit = max(limit, _square(rows, r, ring, names, places[0, q]))
        kept = 0
        for age in range(size):
            i = at + age
            if i >= capacity:
                i -= capacity
            if least[i] > limit:
                continue
            # River compares the roots: different squares may have the same one.
            distance = sqrt(least[i] if exact else _square(rows, r, ring, names, i))
            if kept < k:
                q = kept
                kept += 1
            elif distance < far[r, k - 1]:
                q = k - 1
            else:
                continue
            while q > 0 and far[r, q - 1] > distance:
                far[r, q] = far[r, q - 1]
                places[r, q] = places[r, q - 1]
                q -= 1
            far[r, q] = distance
            places[r, q] = i
            if kept == k:
                limit = min(limit, far[r, k - 1] * far[r, k - 1] * (2.0 - _ROOM))


@cython.cfunc
def _square(
    rows: cython.double[:, ::1],
    r: cython.Py_ssize_t,
    ring: cython.double[:, ::1],
    names: cython.longlong[::1],
    i: cython.Py_ssize_t,
) -> cython.double:
    """Return the squared distance between a row and a stored row."""
    total: cython.double = 0.0
    difference: cython.double
    t: cython.Py_ssize_t
    for t in range(names.shape[0]):
        difference = rows[r, names[t]] - ring[names[t], i]
        total += difference * difference
    return total


@cython.cfunc
def _squares(
    rows: cython.double[:, ::1],
    r: cython.Py_ssize_t,
    ring: cython.double[:, ::1],
    names: cython.longlong[::1],
    squares: cython.double[::1],
) -> cython.bint:
    """Write the squares of the distances between a row and all stored ones."""
    x: cython.double
    difference: cython.double
    t: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for i in range(squares.shape[0]):
        squares[i] = 0.0
    for t in range(names.shape[0]):
        x = rows[r, names[t]]
        for i in range(squares.shape[0]):
            difference = x - ring[names[t], i]
            squares[i] += difference * difference
    return True


def vote(codes: Any, distances: Any, weighted: bool, softmax: bool, P: Any) -> None:
    """Write class probabilities from the neighbours' classes and distances.

    Parameters
    ----------
    codes
        Shape (rows, neighbours): the column of each neighbour's class.
    P
        Shape (rows, classes), all 0.
    """
    classes: cython.longlong[:, ::1] = codes if cython.compiled else memoryview(codes)
    far: cython.double[:, ::1] = distances if cython.compiled else memoryview(distances)
    votes: cython.double[:, ::1] = P if cython.compiled else memoryview(P)
    by_distance: cython.bint = weighted
    turns: cython.bint = softmax
    k: cython.Py_ssize_t = votes.shape[1]
    r: cython.Py_ssize_t
    q: cython.Py_ssize_t
    c: cython.Py_ssize_t
    greatest: cython.double
    total: cython.double
    for r in range(votes.shape[0]):
        if far[r, 0] == 0.0:
            votes[r, classes[r, 0]] = 1.0
            continue
        for q in range(classes.shape[1]):
            votes[r, classes[r, q]] += 1.0 / far[r, q] if by_distance else 1.0
        if turns:
            greatest = votes[r, 0]
            for c in range(1, k):
                greatest = max(greatest, votes[r, c])
            for c in range(k):
                votes[r, c] = exp(votes[r, c] - greatest)
        total = 0.0
        for c in range(k):
            total += votes[r, c]
        for c in range(k):
            votes[r, c] /= total
