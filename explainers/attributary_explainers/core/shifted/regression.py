# cython: infer_types=True
"""The regression of each feature's columns on the columns of all others."""

from __future__ import annotations

from typing import Any

from ..buffers import floats, integers
from .drawing import RIDGE, discriminant, factor, invert, square_of_inverse

try:
    import cython
except ImportError:
    from .. import _cython as cython


def regress(regression: Any, levels: Any, columns: Any) -> None:
    """Write a `Regression`'s slopes, weights and scores; see `Columns`."""
    C: cython.double[:, ::1] = memoryview(regression.covariance)
    means: cython.double[::1] = memoryview(regression.mean)
    n_levels: cython.longlong[::1] = memoryview(levels)
    start: cython.longlong[::1] = memoryview(columns.start)
    of: cython.longlong[::1] = memoryview(columns.of)
    number: cython.double[::1] = memoryview(columns.number)
    other: cython.longlong[::1] = memoryview(columns.other)
    B: cython.double[:, ::1] = memoryview(regression.B)
    weights: cython.double[::1] = memoryview(regression.weights)
    i: cython.Py_ssize_t
    d: cython.Py_ssize_t = n_levels.shape[0]
    n: cython.Py_ssize_t = C.shape[0]
    ridge: cython.double = RIDGE
    U: cython.double[:, ::1] = floats(n, n)
    omega: cython.double[:, ::1] = floats(n, n)
    own: cython.double[:, ::1] = floats(n, n)
    residual: cython.double[:, ::1] = floats(n, n)
    shares: cython.double[::1] = floats(n)
    block: cython.longlong[::1] = integers(n)
    for i in range(n):
        block[i] = i
    factor(C, block, U)
    square_of_inverse(U, n, omega)  # columns that others determine have 0 in it
    for j in range(d):
        first, k = start[j], start[j + 1] - start[j]
        size = 0
        for c in range(first, first + k):
            block[size] = c
            size += 1
        for c in range(start[d], n):  # a product that the feature is part of is not known without it
            i = int(number[c])
            if of[i] == j or of[other[c]] == j:
                block[size] = c
                size += 1
        for a in range(size):
            for b in range(size):
                own[a, b] = omega[block[a], block[b]]
        invert(own, size, residual)
        for a in range(k):
            for i in range(n):
                s: cython.double = 0.0
                for b in range(size):
                    s -= residual[a, b] * omega[block[b], i]
                B[i, first + a] = s
            for b in range(size):
                B[block[b], first + a] = 0.0
        for a in range(k):
            weights[first + a] = 1.0 / residual[a, a] if residual[a, a] > 0.0 else 0.0
        if n_levels[j] > 1:
            for a in range(k):
                shares[a] = means[first + a]
                for b in range(k):
                    i, c = max(first + a, first + b), min(first + a, first + b)
                    own[a, b] = C[i, c] * (1.0 + (ridge if a == b else 0.0)) - residual[a, b]
            discriminant(own, shares, k, memoryview(regression.scores), j)
