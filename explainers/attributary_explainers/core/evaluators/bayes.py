"""Naive Bayes, read from River's objects anew with each call."""

from __future__ import annotations

from typing import Any

from ..buffers import floats

try:
    import cython
except ImportError:
    from .. import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import exp, log, sqrt
else:
    from math import exp, log, sqrt

_EPS: Any = cython.declare(cython.double, 10e-10)
"""River adds this to every density."""
_NORM: Any = cython.declare(cython.double, 1.0 / sqrt(2.0 * 3.141592653589793))


def gaussian(X: Any, features: tuple[Any, ...], labels: tuple[Any, ...], counts: Any, gaussians: Any, P: Any) -> None:
    """Write the probabilities of classes by Gaussian naive Bayes.

    Parameters
    ----------
    X
        Shape (rows, features): numbers; NaN where a row lacks a feature, which has no density then. Often most rows
        share most values with the first one, whose terms are not computed again.
    labels
        The classes, by column of `P`.
    counts, gaussians
        What the model has learnt: how often it met each class, and by class and feature a Gaussian.
    P
        Shape (rows, classes).
    """
    rows: cython.double[:, ::1] = X if cython.compiled else memoryview(X)
    scores: cython.double[:, ::1] = P if cython.compiled else memoryview(P)
    n: cython.Py_ssize_t = rows.shape[0]
    d: cython.Py_ssize_t = rows.shape[1]
    c: cython.Py_ssize_t
    j: cython.Py_ssize_t
    r: cython.Py_ssize_t
    mean: cython.double
    deviation: cython.double
    first: cython.double
    x: cython.double
    total: cython.double = sum(counts.values())
    score: cython.double
    share: cython.double
    terms: cython.double[::1] = floats(n)
    for c in range(len(labels)):
        known: Any = gaussians.get(labels[c])
        share = counts[labels[c]]
        for r in range(n):
            terms[r] = 0.0
        for j in range(d):
            one: Any = None if known is None else known.get(features[j])
            mean = 0.0 if one is None else float(one._var.mean._mean)  # of a model that has learnt numpy's float32, too
            deviation = 0.0 if one is None else _deviation(one._var)
            x = rows[0, j]
            first = _term(x, mean, deviation)
            for r in range(n):
                if rows[r, j] == x:
                    terms[r] += first
                elif rows[r, j] == rows[r, j]:
                    terms[r] += _term(rows[r, j], mean, deviation)
        score = log(share / total)
        for r in range(n):
            scores[r, c] = score + terms[r]
    _normalise(scores)


@cython.cfunc
def _deviation(variable: Any) -> cython.double:
    """Return a variable's standard deviation; 0 while it has no variance."""
    n: cython.double = variable.mean.n
    ddof: cython.double = variable.ddof
    squares: cython.double = float(variable._S)
    if n <= ddof:
        return 0.0
    squares = squares / (n - ddof)
    return sqrt(squares) if squares > 0.0 else 0.0


@cython.cfunc
def _term(x: cython.double, mean: cython.double, deviation: cython.double) -> cython.double:
    if deviation <= 0.0:
        return log(_EPS)
    z: cython.double = (x - mean) / deviation
    return log(_EPS + _NORM * exp(-0.5 * z * z) / deviation)


@cython.cfunc
def _normalise(scores: cython.double[:, ::1]) -> cython.bint:
    """Make probabilities of their logarithms, which may lack a common summand."""
    r: cython.Py_ssize_t
    c: cython.Py_ssize_t
    k: cython.Py_ssize_t = scores.shape[1]
    greatest: cython.double
    total: cython.double
    for r in range(scores.shape[0]):
        greatest = scores[r, 0]
        for c in range(1, k):
            greatest = max(greatest, scores[r, c])
        total = 0.0
        for c in range(k):
            scores[r, c] = exp(scores[r, c] - greatest)
            total += scores[r, c]
        for c in range(k):
            scores[r, c] /= total
    return True


def counting(
    X: Any, sources: list[int], priors: list[Any], above: list[Any], below: Any, threshold: Any, P: Any
) -> None:
    """Write the probabilities of classes by naive Bayes that counts.

    Parameters
    ----------
    X, P
        As for `gaussian`.
    sources
        For each feature its column; -1 where it has none.
    priors, above, below
        By class, the score before its features, and the terms of each feature.
    threshold
        With one, a feature adds `above` or, where it is not larger or not there, `below`. Without one (None), it adds
        its number times `above`, and nothing where it is not there.
    """
    rows: cython.double[:, ::1] = X if cython.compiled else memoryview(X)
    scores: cython.double[:, ::1] = P if cython.compiled else memoryview(P)
    n: cython.Py_ssize_t = rows.shape[0]
    c: cython.Py_ssize_t
    j: cython.Py_ssize_t
    r: cython.Py_ssize_t
    source: cython.Py_ssize_t
    is_binary: cython.bint = threshold is not None
    limit: cython.double = threshold if is_binary else 0.0
    more: cython.double
    less: cython.double
    x: cython.double
    for c in range(len(priors)):
        more = priors[c]
        for r in range(n):
            scores[r, c] = more
        of_class: Any = above[c]
        others: Any = below[c] if is_binary else of_class
        for j in range(len(sources)):
            source, more, less = sources[j], of_class[j], others[j]
            for r in range(n):
                if is_binary:
                    scores[r, c] += more if source >= 0 and rows[r, source] > limit else less
                else:
                    x = rows[r, source]
                    if x == x:
                        scores[r, c] += x * more
    _normalise(scores)
