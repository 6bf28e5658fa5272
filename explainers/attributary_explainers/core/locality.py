"""How observations follow the means of stored rows, for `Locality`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from . import _cython as cython


def correlate(
    rate: cython.double,
    columns: cython.Py_ssize_t[::1],
    values: cython.double[::1],
    means: cython.double[::1],
    moments: cython.double[:, ::1],
) -> None:
    """Smooth each column's means, variances and covariance of two numbers."""
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
