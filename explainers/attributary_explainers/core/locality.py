"""What `Locality` computes: means of stored rows, and how observations follow them."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from . import _cython as cython


def means_of_numbers(
    floats: cython.double[:, :],
    integers: cython.longlong[:, :],
    kinds: cython.uint[::1],
    are_integers: cython.uchar[:, ::1],
    start: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    largest: cython.double,
    exact: cython.double,
    means: cython.double[::1],
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
    c: cython.Py_ssize_t
    r: cython.Py_ssize_t
    value: cython.double
    total: cython.double
    size: cython.double
    n: cython.double
    fine: cython.bint = True
    for c in range(floats.shape[1]):
        total, size, n = 0.0, 0.0, 0.0
        for r in range(start, floats.shape[0], step):
            if are_integers[kinds[r], c]:
                value = integers[r, c]
                size += abs(value)
            else:
                value = floats[r, c]
            total += value
            n += 1.0
        means[c] = total / n
        fine = fine and abs(means[c]) < largest and size < exact
    return fine


def correlate(
    rate: cython.double,
    columns: cython.Py_ssize_t[::1],
    values: cython.double[::1],
    means: cython.double[::1],
    moments: cython.double[:, ::1],
) -> None:
    """Smooth means, variances and covariances of pairs of numbers, one pair for each column: see `Locality`."""
    i: cython.Py_ssize_t
    c: cython.Py_ssize_t
    share: cython.double
    of_x: cython.double
    of_z: cython.double
    for i in range(columns.shape[0]):
        c = columns[i]
        moments[4, c] += rate * (1.0 - moments[4, c])
        share = min(rate / moments[4, c], 1.0)
        of_x = values[i] - moments[0, c]
        of_z = means[i] - moments[2, c]
        moments[0, c] += share * of_x
        moments[2, c] += share * of_z
        moments[1, c] = (1.0 - share) * (moments[1, c] + share * of_x * of_x)
        moments[3, c] = (1.0 - share) * (moments[3, c] + share * of_x * of_z)
        moments[5, c] = (1.0 - share) * (moments[5, c] + share * of_z * of_z)
