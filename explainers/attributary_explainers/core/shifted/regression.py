# cython: infer_types=True
"""What the regression of each feature's columns on those of all others says of rows."""

from __future__ import annotations

from typing import Any

from ..buffers import floats

try:
    import cython
except ImportError:
    from .. import _cython as cython


def predict(columns: Any, slots: Any, slopes: Any, mean: Any, out: Any) -> None:
    """Write what all other features tell of each column, of some rows: its regression on theirs, less the mean.

    Parameters
    ----------
    columns, slots
        The columns of rows by slot, and which of them are asked for.
    slopes, mean
        Column c of `slopes` has the coefficients for column c.
    out
        Shape (columns, slots): what is needed of one column together lies together.
    """
    phi: cython.double[:, ::1] = memoryview(columns)
    at: cython.longlong[::1] = memoryview(slots)
    B: cython.double[:, ::1] = memoryview(slopes)
    means: cython.double[::1] = memoryview(mean)
    fitted: cython.double[:, ::1] = memoryview(out)
    n: cython.Py_ssize_t = means.shape[0]
    m: cython.Py_ssize_t = at.shape[0]
    deviations: cython.double[:, ::1] = floats(max(n, 1), max(m, 1))
    told: cython.double[:, ::1] = floats(max(n, 1), max(m, 1))
    for r in range(m):
        for i in range(n):
            value = phi[at[r], i] - means[i]
            deviations[i, r] = value if value == value else 0.0
    i = 0
    while i + 4 <= n:  # four at a time, in this order: the sums are the same for one row and for all
        for c in range(n):
            a, b, e, f = B[i, c], B[i + 1, c], B[i + 2, c], B[i + 3, c]
            for r in range(m):
                told[c, r] = (
                    ((told[c, r] + a * deviations[i, r]) + b * deviations[i + 1, r]) + e * deviations[i + 2, r]
                ) + f * deviations[i + 3, r]
        i += 4
    while i < n:
        for c in range(n):
            a = B[i, c]
            for r in range(m):
                told[c, r] += a * deviations[i, r]
        i += 1
    for c in range(n):
        for r in range(m):
            fitted[c, at[r]] = told[c, r]
