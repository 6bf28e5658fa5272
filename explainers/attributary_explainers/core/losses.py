"""Losses: each formula once, for a prediction and for rows of many.

The formulas are called by the other modules of the core, and by `attributary_explainers.losses` for one prediction.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import isfinite, log
else:
    from math import isfinite, log

NOT_IN_CORE, CROSS_ENTROPY, BRIER, ABSOLUTE, SQUARED, SCORE = range(6)
"""The losses whose formulas are here; 0 is any other, which is computed in Python: the user's own, or a named loss."""

# The same as C knows them.
_NOT_IN_CORE = cython.declare(cython.int, 0)
_CROSS_ENTROPY = cython.declare(cython.int, 1)
_BRIER = cython.declare(cython.int, 2)
_ABSOLUTE = cython.declare(cython.int, 3)
_SQUARED = cython.declare(cython.int, 4)


@cython.ccall
@cython.exceptval(check=False)
def cross_entropy(p: cython.double, epsilon: cython.double) -> cython.double:
    """Return the loss of the probability `p` of the label that came, in nats."""
    return -log(min(max(p, epsilon), 1.0 - epsilon))


@cython.ccall
@cython.exceptval(check=False)
def brier(p: cython.double, squares_of_others: cython.double) -> cython.double:
    """Return (1 - p)^2 plus the others' squares; p is the label's probability."""
    return (1.0 - p) * (1.0 - p) + squares_of_others


def brier_of(y: object, prediction: Any) -> float:
    """Return `brier` of probabilities by label; p is 0 for a missing label."""
    squares: cython.double = 0.0
    p: cython.double
    for label, p in prediction.items():
        if label != y:
            squares += p * p
    return brier(prediction.get(y, 0.0), squares)


@cython.ccall
@cython.exceptval(check=False)
def absolute(prediction: cython.double, target: cython.double) -> cython.double:
    """Return the absolute error."""
    return abs(target - prediction)


@cython.ccall
@cython.exceptval(check=False)
def squared(prediction: cython.double, target: cython.double) -> cython.double:
    """Return the squared error."""
    difference: cython.double = target - prediction
    return difference * difference  # infinite where ** would raise OverflowError: a diverging model is no exception


@cython.ccall
@cython.exceptval(check=False)
def loss_of(
    P: cython.double[:, ::1],
    r: cython.Py_ssize_t,
    code: cython.int,
    epsilon: cython.double,
    column: cython.Py_ssize_t,
    target: cython.double,
) -> cython.double:
    """Return the loss of row r; `column` is the label's, or -1 for none."""
    c: cython.Py_ssize_t
    total: cython.double
    p: cython.double
    if code == _CROSS_ENTROPY:
        p = P[r, column] if column >= 0 else 0.0
        return cross_entropy(p, epsilon)
    if code == _BRIER:
        total = 0.0
        for c in range(P.shape[1]):
            if c != column:
                total += P[r, c] * P[r, c]
        p = P[r, column] if column >= 0 else 0.0
        return brier(p, total)
    if code == _ABSOLUTE:
        return absolute(P[r, 0], target)
    if code == _SQUARED:
        return squared(P[r, 0], target)
    return P[r, 0]  # the score itself


@cython.ccall
@cython.exceptval(check=False)
def slope_of(
    p: cython.double, code: cython.int, epsilon: cython.double, is_label: cython.bint, target: cython.double
) -> cython.double:
    """Return the derivative of the loss in a component of value `p`."""
    if code == _CROSS_ENTROPY:
        return -1.0 / max(p, epsilon) if is_label else 0.0
    if code == _BRIER:
        return 2.0 * (p - 1.0) if is_label else 2.0 * p
    if code == _ABSOLUTE:
        if p > target:
            return 1.0
        if p < target:
            return -1.0
        return 0.0 if p == target else p  # NaN stays
    if code == _SQUARED:
        return 2.0 * (p - target)
    return 1.0  # of the score


@cython.ccall
@cython.exceptval(check=False)
def are_finite(P: cython.double[:, ::1], start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> cython.bint:
    """Return whether row 0 and rows `start` to `stop` are finite predictions."""
    r: cython.Py_ssize_t
    c: cython.Py_ssize_t
    for c in range(P.shape[1]):
        if not isfinite(P[0, c]):
            return False
    for r in range(start, stop):
        for c in range(P.shape[1]):
            if not isfinite(P[r, c]):
                return False
    return P.shape[1] > 0


def losses_at(
    P: cython.double[:, ::1],
    which: cython.Py_ssize_t[::1],
    code: cython.int,
    epsilon: cython.double,
    columns: cython.Py_ssize_t[::1],
    targets: cython.double[::1],
    losses: cython.double[::1],
) -> int:
    """Write each row's loss; row r belongs to observation which[r].

    Code 0 stands for the expected share of wrong labels, 1 minus the probability of the label: callers give no other
    loss whose formula is not here. Returns -1, or the first row whose loss is not finite.
    """
    r: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for r in range(P.shape[0]):
        i = which[r]
        if code == _NOT_IN_CORE:
            losses[r] = 1.0 - P[r, columns[i]] if columns[i] >= 0 else 1.0
        else:
            losses[r] = loss_of(P, r, code, epsilon, columns[i], targets[i])
        if not isfinite(losses[r]):
            return r
    return -1
