# cython: infer_types=True
"""Observational removal: statistics, regressions and shifted rows."""

from __future__ import annotations

import math
from typing import Any

from .buffers import floats, integers

try:
    import cython
except ImportError:
    from . import _cython as cython


if cython.compiled:
    from cython.cimports.libc.math import exp, log, sqrt
else:
    from math import exp, log, sqrt

RIDGE = 1e-4
"""Added to each variance, as a share of it: what others leave of a column is not known better."""
BEYOND = 0.5
"""Draws and what is told of a feature lie no further outside of its values than this share of their range.

A regression says anything of what it has not seen. Where many features follow few influences, or one has come loose
from the others for a while, the covariance has directions of hardly any variance, and large coefficients that cancel
along all others. An observation that leaves them by a little is told a mean hundreds of spreads away, and a model whose
score is unbounded has a single one of these draws decide an importance. Of five hundred stored values of a Gaussian
the half of their range is three standard deviations: what fits is as it was, of a feature that rises all the time, too,
for the observation's own value is one of them.
"""
# Kinds of columns, as `removal.statistics` has them.
_VALUE = cython.declare(cython.longlong, 0)
_LEVEL = cython.declare(cython.longlong, 2)
_PRODUCT = cython.declare(cython.longlong, 3)
_NAN = cython.declare(cython.double, math.nan)
_INFINITY = cython.declare(cython.double, math.inf)
_FARTHEST = cython.declare(cython.double, 100.0)
"""Scaled numbers count as at most so far out: a single one would be all that a covariance knows."""
_LEAST = cython.declare(cython.double, 1e-4)
"""No level has a smaller probability: a level that has been seen can be seen again."""
_LEAST_DISTANCE = cython.declare(cython.double, 0.01)
"""Squared distances below this, in residual variances, are none."""
_LEAST_VARIANCE = cython.declare(cython.double, 0.01)
"""What is left of a column's variance counts at least as this share of it when distances are measured."""
_TINY = cython.declare(cython.double, 1e-300)
_NEAREST_OF_WALK = cython.declare(cython.int, 3)
"""The bandwidth of a walk's matching is the distance of this nearest candidate."""
_NEAREST_OF_ONE = cython.declare(cython.int, 1)
"""The same where all other features are kept: little is left of a feature given all others."""


# Columns of features.
@cython.cfunc
@cython.inline
def _column(
    kind: cython.longlong, number: cython.double, value: cython.double, center: cython.double, scale: cython.double
) -> cython.double:
    """Return a column of a feature's code, no product; NaN where missing."""
    if value != value:
        return _NAN
    if kind == _LEVEL:
        return 1.0 if value == number else 0.0
    z = min(max((value - center) / scale, -_FARTHEST), _FARTHEST)
    return z if kind == _VALUE else max(z - number, 0.0)


@cython.cclass
class Reader:
    """A reader that makes columns of encodings, NaN for missing features.

    Parameters
    ----------
    columns, encoding
        See `Columns` and `Encoding`.
    """

    _kind: cython.longlong[::1]
    _of: cython.longlong[::1]
    _number: cython.double[::1]
    _other: cython.longlong[::1]
    _center: cython.double[::1]
    _scale: cython.double[::1]

    def __init__(self, columns: Any, encoding: Any) -> None:
        self._kind, self._of = memoryview(columns.kind), memoryview(columns.of)
        self._number, self._other = memoryview(columns.number), memoryview(columns.other)
        self._center, self._scale = memoryview(encoding.center), memoryview(encoding.scale)

    def read(self, rows: Any, out: Any) -> None:
        """Write the columns (n x columns) of observations (n x features)."""
        X: cython.double[:, ::1] = memoryview(rows)
        Z: cython.double[:, ::1] = memoryview(out)
        for r in range(X.shape[0]):
            self._read(X, r, Z, r)

    @cython.cfunc
    def _read(
        self, X: cython.double[:, ::1], r: cython.Py_ssize_t, Z: cython.double[:, ::1], to: cython.Py_ssize_t
    ) -> cython.bint:
        first: cython.Py_ssize_t
        for c in range(self._kind.shape[0]):
            j = self._of[c]
            if self._kind[c] == _PRODUCT:
                first = int(self._number[c])
                Z[to, c] = Z[to, first] * Z[to, self._other[c]]
            else:
                Z[to, c] = _column(self._kind[c], self._number[c], X[r, j], self._center[j], self._scale[j])
        return True


# One covariance matrix: what some columns tell of the others.
@cython.cfunc
def _tell(
    U: cython.double[:, ::1], first: cython.Py_ssize_t, last: cython.Py_ssize_t, column: cython.Py_ssize_t,
    innovations: cython.double[:, ::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t, told: cython.double[:, ::1],
    row: cython.Py_ssize_t,
) -> cython.bint:  # fmt: skip
    """Add the effect of some innovations on a column to a row of `told`.

    They are the innovations first … last - 1 of draws begin … end - 1. Four at a time: with few draws, setting up the
    inner loop takes longer than what it does.

    Parameters
    ----------
    U
        See `factor`.
    innovations, told
        Shapes (columns, draws) and (rows, draws).
    """
    k: cython.Py_ssize_t = first
    while k + 4 <= last:
        a, b, c, d = U[k, column], U[k + 1, column], U[k + 2, column], U[k + 3, column]
        for r in range(begin, end):
            told[row, r] += (
                a * innovations[k, r]
                + b * innovations[k + 1, r]
                + c * innovations[k + 2, r]
                + d * innovations[k + 3, r]
            )
        k += 4
    while k < last:
        a = U[k, column]
        for r in range(begin, end):
            told[row, r] += a * innovations[k, r]
        k += 1
    return True


@cython.ccall
def factor(covariance: cython.double[:, ::1], columns: cython.longlong[::1], U: cython.double[:, ::1]) -> cython.bint:
    """Write the transposed Cholesky factor of the covariance in this order.

    A column that those before it determine has 0 on the diagonal: it adds nothing. Row by row, so that the compiler
    takes several columns at a time.

    Parameters
    ----------
    covariance
        The lower triangle is read.
    U
        Shape (columns, columns), written: U[k, i] is what innovation k adds to column i; the lower triangle is left.
    """
    ridge: cython.double = RIDGE
    n: cython.Py_ssize_t = columns.shape[0]
    told: cython.double[:, ::1] = floats(1, max(n, 1))
    for i in range(n):
        a = columns[i]
        for j in range(i, n):
            b = columns[j]
            U[i, j] = covariance[a, b] if a >= b else covariance[b, a]
            told[0, j] = 0.0
        own = U[i, i]
        U[i, i] += ridge * own
        _tell(U, 0, i, i, U, i, n, told, 0)
        for j in range(i, n):
            U[i, j] -= told[0, j]
        if U[i, i] > 0.5 * ridge * own and own > 0.0:
            root = sqrt(U[i, i])
            U[i, i] = root
            for j in range(i + 1, n):
                U[i, j] /= root
        else:
            for j in range(i, n):
                U[i, j] = 0.0
    return True


@cython.cfunc
def _innovate(
    told: cython.double[:, ::1], row: cython.Py_ssize_t, root: cython.double, n: cython.Py_ssize_t,
    deviations: cython.double[:, ::1], column: cython.Py_ssize_t,
) -> cython.bint:  # fmt: skip
    """Turn a column's deviations into innovations; 0 where NaN.

    An innovation is what the columns before do not tell.

    Parameters
    ----------
    told, row
        See `_tell`.
    root
        The diagonal of the factor, 0 where nothing is left.
    """
    weight: cython.double = 1.0 / root if root > 0.0 else 0.0
    for r in range(n):
        own = deviations[column, r] - told[row, r]
        deviations[column, r] = own * weight if own == own else 0.0
    return True


@cython.ccall
def square_of_inverse(U: cython.double[:, ::1], n: cython.Py_ssize_t, out: cython.double[:, ::1]) -> cython.bint:
    """Write the inverse of U' U, U upper triangular; 0 where its diagonal is."""
    inverse: cython.double[:, ::1] = floats(max(n, 1), max(n, 1))
    for i in range(n):
        for j in range(n):
            out[i, j] = 0.0
        if U[i, i] > 0.0:
            weight = -1.0 / U[i, i]
            for k in range(i):
                a = U[k, i]
                for j in range(k + 1):
                    inverse[i, j] += a * inverse[k, j]
            for j in range(i):
                inverse[i, j] *= weight
            inverse[i, i] = -weight
    for k in range(n):
        for i in range(k + 1):
            a = inverse[k, i]
            if a != 0.0:
                for j in range(k + 1):
                    out[i, j] += a * inverse[k, j]
    return True


@cython.ccall
def invert(A: cython.double[:, ::1], n: cython.Py_ssize_t, out: cython.double[:, ::1]) -> cython.bint:
    """Invert a small positive semidefinite matrix; a diagonal 0 stays 0."""
    U: cython.double[:, ::1] = floats(max(n, 1), max(n, 1))
    for i in range(n):
        for j in range(i + 1):
            s: cython.double = A[i, j]
            for k in range(j):
                s -= U[k, i] * U[k, j]
            if i == j:
                U[i, i] = sqrt(s) if s > 1e-12 * A[i, i] else 0.0
            else:
                U[j, i] = s / U[j, j] if U[j, j] > 0.0 else 0.0
    return square_of_inverse(U, n, out)


# Categories: probabilities given other columns, and draws that change as little as they can.
@cython.ccall
def discriminant(
    between: cython.double[:, ::1], shares: cython.double[::1], k: cython.Py_ssize_t, scores: cython.double[:, :, ::1],
    at: cython.Py_ssize_t,
) -> cython.bint:  # fmt: skip
    """Write `probabilities`' scores from the covariance of fitted indicators.

    With F the regression of the indicators on the columns that are known, cov(F, 1_c) = cov(F, F)_c: so the class means
    of F, and the covariance within classes, follow from cov(F, F). Linear discriminants of F are those of the columns
    (Hastie, Tibshirani, Buja, Flexible Discriminant Analysis, 1994). Their squares of F are the same for all levels,
    and left out: with S the inverse of the covariance within classes and m_c a class mean, a level has the score
    log share_c - m_c S m_c / 2 + m_c S F.

    Parameters
    ----------
    between
        Shape (levels - 1, levels - 1) or more: cov(F, F).
    shares, k
        The shares of all levels but the last one, and how many these are.
    scores, at
        Written at [at], shape (levels, levels): by level the weights m_c S and, last, what is added.
    """
    means: cython.double[:, ::1] = floats(k + 1, k)
    within: cython.double[:, ::1] = floats(k, k)
    inverse: cython.double[:, ::1] = floats(k, k)
    total: cython.double = 0.0
    for c in range(k):
        total += shares[c]
    rest: cython.double = max(1.0 - total, _LEAST)
    for i in range(k):
        total = 0.0
        for c in range(k):
            means[c, i] = between[c, i] / max(shares[c], _LEAST)
            total += between[c, i]
            within[c, i] = between[c, i]
        means[k, i] = -total / rest
    for c in range(k + 1):
        share: cython.double = max(shares[c], _LEAST) if c < k else rest
        for i in range(k):
            for j in range(k):
                within[i, j] -= share * means[c, i] * means[c, j]
    for i in range(k):
        share = min(max(shares[i], _LEAST), 1.0 - _LEAST)
        within[i, i] = max(within[i, i], 0.0) + 1e-4 * share * (1.0 - share) + 1e-3 * between[i, i]
    invert(within, k, inverse)
    for c in range(k + 1):
        square: cython.double = 0.0
        for j in range(k):
            weight: cython.double = 0.0
            for i in range(k):
                weight += inverse[i, j] * means[c, i]
            scores[at, c, j] = weight
            square += weight * means[c, j]
        share = max(shares[c], _LEAST) if c < k else rest
        scores[at, c, k] = log(share) - 0.5 * square
    return True


@cython.ccall
def probabilities(
    fitted: cython.double[::1], k: cython.Py_ssize_t, scores: cython.double[:, :, ::1], at: cython.Py_ssize_t,
    out: cython.double[::1],
) -> cython.bint:  # fmt: skip
    """Write k + 1 levels' probabilities, given fitted indicators less means."""
    total: cython.double = 0.0
    highest: cython.double = -_INFINITY
    for c in range(k + 1):
        score: cython.double = scores[at, c, k]
        for i in range(k):
            score += scores[at, c, i] * fitted[i]
        out[c] = score
        highest = max(highest, score)
    for c in range(k + 1):
        out[c] = max(exp(out[c] - highest), _LEAST)
        total += out[c]
    for c in range(k + 1):
        out[c] /= total
    return True


@cython.ccall
def couple(
    to: cython.double[::1], start: cython.double[::1], levels: cython.Py_ssize_t, now: cython.Py_ssize_t,
    u: cython.double, v: cython.double,
) -> cython.Py_ssize_t:  # fmt: skip
    """Return a draw of `to`: `now`, a draw of `start`, as often as possible.

    The maximal coupling: the result has the distribution `to`, and where both are equal nothing changes.
    """
    total: cython.double = 0.0
    last: cython.Py_ssize_t = now
    if u * start[now] < to[now]:
        return now
    for c in range(levels):
        total += max(to[c] - start[c], 0.0)
    v *= total
    for c in range(levels):
        gain = to[c] - start[c]
        if gain > 0.0:
            last = c
            if v < gain:
                return c
            v -= gain
    return last


# Numbers: draws near what has been.
@cython.cfunc
@cython.inline
def _within(value: cython.double, low: cython.double, high: cython.double) -> cython.double:
    """Return the value, or the end of the span that it lies beyond."""
    if value < low:
        return low
    if value > high:
        return high
    return value


# Matching: stored rows are chosen where what is known says the same of what is absent.
@cython.ccall
def choose(
    distances: cython.double[::1], first: cython.Py_ssize_t, last: cython.Py_ssize_t, u: cython.double[::1],
    begin: cython.Py_ssize_t, end: cython.Py_ssize_t, nearest: cython.Py_ssize_t, sums: cython.double[::1],
    chosen: cython.longlong[::1], offset: cython.Py_ssize_t,
) -> cython.bint:  # fmt: skip
    """Choose some of the candidates, the near ones more often.

    Candidates first … last - 1 have the weights exp(-D / 2 h), h the `nearest`-th smallest of their distances D. Writes
    chosen[offset + begin … offset + end - 1]; one uniform number for each. `sums` is room for as many numbers as there
    are candidates, and three at least.
    """
    total: cython.double = 0.0
    n: cython.Py_ssize_t = last - first
    for c in range(nearest):
        sums[c] = _INFINITY
    for c in range(first, last):
        if distances[c] < sums[nearest - 1]:
            at = nearest - 1
            while at > 0 and distances[c] < sums[at - 1]:
                sums[at] = sums[at - 1]
                at -= 1
            sums[at] = distances[c]
    width: cython.double = 2.0 * max(sums[min(nearest, n) - 1], _LEAST_DISTANCE)
    for c in range(n):
        e = distances[first + c] / width
        if e < 20.0:
            total += exp(-e)
        sums[c] = total
    for r in range(begin, end):
        wanted, low, high = u[r] * total, 0, n
        while low < high:
            at = (low + high) // 2
            if sums[at] <= wanted:
                low = at + 1
            else:
                high = at
        chosen[offset + r] = first + min(low, n - 1)
    return True


# Stored rows, and draws that they become.
@cython.cfunc
@cython.inline
def _widen(ends: cython.double[:, ::1], j: cython.Py_ssize_t, value: cython.double) -> cython.bint:
    """Let a feature's smallest and largest value (NaN: none) include a value."""
    if value == value:
        if not ends[0, j] <= value:
            ends[0, j] = value
        if not ends[1, j] >= value:
            ends[1, j] = value
    return True


@cython.cclass
class Draws(Reader):
    """Material of draws: stored rows by slot, and an observation.

    Parameters
    ----------
    table
        See `RowTable`.
    strong
        Shape (features, features): pairs of which rows are matched.
    """

    _rows: cython.double[:, ::1]
    _rows_phi: cython.double[:, ::1]
    _ends_of_rows: cython.double[:, ::1]
    _strong: cython.uchar[:, ::1]
    _levels: cython.longlong[::1]
    _start: cython.longlong[::1]
    _stored: cython.double[::1]
    _stored_at: cython.longlong[::1]
    _x: cython.double[:, ::1]
    _phi: cython.double[:, ::1]
    """The observation, and its columns, in one row each."""
    _span: cython.double[:, ::1]
    """The smallest and the largest value that a draw of each feature may have."""
    _d: cython.Py_ssize_t
    _n: cython.Py_ssize_t
    _most: cython.Py_ssize_t
    """Features, columns, and levels of a category at most."""

    def __init__(self, table: Any, strong: Any) -> None:
        encoding: Any = table.encoding
        Reader.__init__(self, table.columns, encoding)
        self._rows, self._rows_phi, self._ends_of_rows = (
            memoryview(table.rows),
            memoryview(table.phi),
            memoryview(table.ends),
        )
        self._strong = memoryview(strong.view("u1"))
        self._levels, self._start = memoryview(encoding.levels), memoryview(table.columns.start)
        self._stored, self._stored_at = memoryview(encoding.stored), memoryview(encoding.stored_at)
        self._d, self._n, self._most = self._levels.shape[0], self._kind.shape[0], 1
        for j in range(self._d):
            self._most = max(self._most, self._levels[j])
        self._x, self._phi = floats(1, self._d), floats(1, max(self._n, 1))
        self._span = floats(2, self._d)

    @cython.cfunc
    def _take(self, x: cython.double[::1]) -> cython.bint:
        """Take an observation, whose own values are possible ones."""
        beyond: cython.double = BEYOND
        for j in range(self._d):
            self._x[0, j] = x[j]
            for end in range(2):
                self._span[end, j] = self._ends_of_rows[end, j]
            _widen(self._span, j, x[j])
            more = beyond * (self._span[1, j] - self._span[0, j])
            self._span[0, j] -= more
            self._span[1, j] += more
        self._read(self._x, 0, self._phi, 0)
        return True

    @cython.cfunc
    def _moved(
        self, j: cython.Py_ssize_t, value: cython.double, told: cython.double, told_of_row: cython.double,
        mean: cython.double,
    ) -> cython.double:  # fmt: skip
        """Return a stored number, moved to fit the observation.

        The move is the difference between what is told of the observation and of the stored row. Where the feature has
        integers only, the moved number becomes the nearest stored one.

        Parameters
        ----------
        told, told_of_row
            What the kept features say, in units of the feature's spread, less its mean in these units.
        """
        low, high, scale = self._span[0, j], self._span[1, j], self._scale[j]
        first, last = self._stored_at[j], self._stored_at[j + 1]
        least: cython.double = (low - self._center[j]) / scale - mean
        most: cython.double = (high - self._center[j]) / scale - mean
        move: cython.double = _within(told, least, most) - _within(told_of_row, least, most)
        moved: cython.double = value if move == 0.0 else _within(value + scale * move, low, high)
        at: cython.longlong = first
        end: cython.longlong = last
        if moved == value or first == last:
            return moved
        while at < end:
            middle = (at + end) // 2
            if self._stored[middle] < moved:
                at = middle + 1
            else:
                end = middle
        if at == last or (at > first and moved - self._stored[at - 1] <= self._stored[at] - moved):
            return self._stored[at - 1]
        return self._stored[at]


@cython.cclass
class Alone(Draws):
    """Draws of single features given all others.

    Parameters
    ----------
    table, strong
        See `Draws`.
    regression
        See `Regression`.
    """

    _B: cython.double[:, ::1]
    _mean: cython.double[::1]
    _weights: cython.double[::1]
    """By column, for the distance between two rows."""
    _scores: cython.double[:, :, ::1]
    _fits: cython.double[:, ::1]
    _told: cython.double[:, ::1]
    """What all other features tell of each column: of the rows, by slot, and of the observation, in one row."""
    _deviations: cython.double[::1]
    _distances: cython.double[::1]
    _sums: cython.double[::1]
    _to: cython.double[::1]
    _back: cython.double[::1]
    _own: cython.double[::1]
    _pick: cython.double[::1]
    _chosen: cython.longlong[::1]

    def __init__(self, table: Any, strong: Any, regression: Any) -> None:
        Draws.__init__(self, table, strong)
        self._B, self._mean = memoryview(regression.B), memoryview(regression.mean)
        self._scores, self._fits = memoryview(regression.scores), memoryview(table.fits)
        size: cython.Py_ssize_t = self._rows.shape[0]
        self._told, self._deviations = floats(1, max(self._n, 1)), floats(max(self._n, 1))
        self._distances, self._sums = floats(size), floats(size + 3)
        self._to, self._back, self._own = floats(self._most), floats(self._most), floats(self._most)
        self._pick, self._chosen, self._weights = floats(1), integers(1), floats(max(self._n, 1))
        precisions: cython.double[::1] = memoryview(regression.weights)
        for j in range(self._d):
            first, last = self._start[j], self._start[j + 1]
            for c in range(first, last):
                self._weights[c] = precisions[c] / (last - first)

    def put(self, slot: cython.Py_ssize_t, row: Any) -> None:
        """Take in the encoded row of a slot."""
        own: cython.double[::1] = memoryview(row)
        for j in range(self._d):
            before = self._rows[slot, j]
            self._rows[slot, j] = own[j]
            if before == self._ends_of_rows[0, j] or before == self._ends_of_rows[1, j]:
                self._find_ends(j)
            else:
                _widen(self._ends_of_rows, j, own[j])
        self._read(self._rows, slot, self._rows_phi, slot)
        self._predict(self._rows_phi, slot, self._fits)

    def fit(self, slots: Any) -> None:
        """Take the rows in these slots, which are all, as they are."""
        at: cython.longlong[::1] = memoryview(slots)
        for j in range(self._d):
            self._find_ends(j)
        for r in range(at.shape[0]):
            self._predict(self._rows_phi, at[r], self._fits)

    @cython.cfunc
    def _find_ends(self, j: cython.Py_ssize_t) -> cython.bint:
        """Find the ends of a feature in all rows."""
        self._ends_of_rows[0, j] = self._ends_of_rows[1, j] = _NAN
        for r in range(self._rows.shape[0]):
            _widen(self._ends_of_rows, j, self._rows[r, j])
        return True

    @cython.cfunc
    def _predict(self, phi: cython.double[:, ::1], r: cython.Py_ssize_t, out: cython.double[:, ::1]) -> cython.bint:
        """Write each column's regression on other features' columns, less mean."""
        for i in range(self._n):
            value = phi[r, i] - self._mean[i]
            self._deviations[i] = value if value == value else 0.0
            out[r, i] = 0.0
        for i in range(self._n):
            a = self._deviations[i]
            for c in range(self._n):
                out[r, c] += self._B[i, c] * a
        return True

    def draw(
        self, x: Any, wanted: Any, ages: Any, split: cython.Py_ssize_t, half: cython.Py_ssize_t, uniform: Any,
        out: Any, used: Any,
    ) -> None:  # fmt: skip
        """Write draws of each of the features `wanted` of an observation.

        Parameters
        ----------
        ages, split, half
            Slots, the first `split` for the first `half` draws. Where rows are not matched, u chooses among them.
        uniform
            Shape (features wanted, draws, 3): uniform numbers.
        out, used
            Shape (features wanted, draws): the draws, and the slots they came from.
        """
        features: cython.longlong[::1] = memoryview(wanted)
        candidates: cython.longlong[::1] = memoryview(ages)
        u: cython.double[:, :, ::1] = memoryview(uniform)
        draws: cython.double[:, ::1] = memoryview(out)
        slots: cython.longlong[:, ::1] = memoryview(used)
        m: cython.Py_ssize_t = draws.shape[1]
        n: cython.Py_ssize_t = candidates.shape[0]
        i: cython.Py_ssize_t
        self._take(memoryview(x))
        self._predict(self._phi, 0, self._told)
        if self._pick.shape[0] < m:
            self._pick, self._chosen = floats(m), integers(m)
        for w in range(features.shape[0]):
            j = features[w]
            first = self._start[j]
            k: cython.Py_ssize_t = self._levels[j] - 1
            matched: cython.bint = False
            for i in range(self._d):
                matched = matched or self._strong[i, j] != 0
            for draw in range(m):
                self._pick[draw] = u[w, draw, 0]
            if matched:
                self._measure(j, candidates)
                if half > 0:
                    choose(self._distances, 0, split, self._pick, 0, half, _NEAREST_OF_ONE, self._sums, self._chosen, 0)
                choose(self._distances, split, n, self._pick, half, m, _NEAREST_OF_ONE, self._sums, self._chosen, 0)
            else:
                for draw in range(m):
                    if draw < half:
                        i = int(self._pick[draw] * split)
                        self._chosen[draw] = min(i, split - 1)
                    else:
                        i = int(self._pick[draw] * (n - split))
                        self._chosen[draw] = min(split + i, n - 1)
            if k > 0:
                for c in range(k):
                    self._own[c] = self._told[0, first + c]
                probabilities(self._own, k, self._scores, j, self._to)
            for draw in range(m):
                slot = slots[w, draw] = candidates[self._chosen[draw]]
                value = self._rows[slot, j]
                if value != value:
                    pass  # that it is missing is what was stored
                elif self._levels[j] == 0:
                    value = self._moved(j, value, self._told[0, first], self._fits[slot, first], self._mean[first])
                elif k > 0:
                    for c in range(k):
                        self._own[c] = self._fits[slot, first + c]
                    probabilities(self._own, k, self._scores, j, self._back)
                    value = couple(self._to, self._back, k + 1, int(value), u[w, draw, 1], u[w, draw, 2])
                draws[w, draw] = value

    @cython.cfunc
    def _measure(self, j: cython.Py_ssize_t, candidates: cython.longlong[::1]) -> cython.bint:
        """Compute each candidate's distance from x in the predicted feature j."""
        first, last = self._start[j], self._start[j + 1]
        for r in range(candidates.shape[0]):
            slot = candidates[r]
            distance: cython.double = 0.0
            for c in range(first, last):
                apart = self._told[0, c] - self._fits[slot, c]
                distance += self._weights[c] * apart * apart
            self._distances[r] = distance
        return True


# All features behind some places of an order, given those before.
@cython.cclass
class Walk(Draws):
    """Draws of absent features given present ones, for coalitions by order.

    A stored row r becomes r_A + E[x_A | x_S, drawn] - E[x_A | r_S, r drawn], A the absent and S the present features,
    one absent feature after the other; see `ShiftedSampler`. One factorisation in an order serves all its coalitions,
    and a feature is drawn for all of them, and all their draws, at once.

    Parameters
    ----------
    table, strong
        See `Draws`.
    learnt, used
        See `Learnt`; the numbers of the table's columns among those that are learnt. All are read as they are in each
        observation.
    split, last
        Of `last` candidates `split` are of the older half, for the first half of the draws. Where rows are not matched,
        the first ones of each part are the draws.
    draws, coalitions
        How many draws each coalition has, and how many coalitions each order.
    """

    shape = cython.declare(tuple, visibility="readonly")
    """The last four parameters."""

    _in_use: cython.longlong[::1]
    _mean: cython.double[::1]
    _covariance: cython.double[:, ::1]
    _u: cython.double[::1]
    _pick: cython.double[::1]
    _slots: cython.longlong[::1]
    _place: cython.longlong[::1]
    _columns: cython.longlong[::1]
    _learnt_columns: cython.longlong[::1]
    _ends: cython.longlong[::1]
    _U: cython.double[:, ::1]
    _told: cython.double[:, ::1]
    """What the columns of the candidates, and of x, which comes last, are told by those before."""
    _innovations: cython.double[:, ::1]
    """What the columns of the candidates, and of x, tell that those before do not."""
    _scores: cython.double[:, :, ::1]
    _between: cython.double[:, ::1]
    _shares: cython.double[::1]
    _left: cython.double[::1]
    _variance: cython.double[::1]
    _apart: cython.double[:, ::1]
    _steps: cython.double[:, ::1]
    _distances: cython.double[::1]
    _sums: cython.double[::1]
    _chosen: cython.longlong[::1]
    _drawn: cython.double[:, ::1]
    """What the columns of draws tell that those before do not. Draws by number: of the first coalition, the second …"""
    _values: cython.double[:, ::1]
    _fitted: cython.double[:, ::1]
    _found: cython.double[::1]
    _to: cython.double[::1]
    _back: cython.double[::1]
    _of_draw: cython.double[::1]
    _of_row: cython.double[::1]
    _split: cython.Py_ssize_t
    _last: cython.Py_ssize_t
    _half: cython.Py_ssize_t
    _m: cython.Py_ssize_t

    def __init__(
        self, table: Any, strong: Any, learnt: Any, used: Any, split: cython.Py_ssize_t, last: cython.Py_ssize_t,
        draws: cython.Py_ssize_t, coalitions: cython.Py_ssize_t,
    ) -> None:  # fmt: skip
        Draws.__init__(self, table, strong)
        self.shape = (split, last, draws, coalitions)
        self._split, self._last, self._m = split, last, draws
        self._half = draws // 2 if split > 0 else 0
        self._in_use, self._mean, self._covariance = (
            memoryview(used),
            memoryview(learnt.mean),
            memoryview(learnt.covariance),
        )
        d, n, most = self._d, self._n, self._most
        m: cython.Py_ssize_t = draws * coalitions
        self._pick = floats(draws)
        self._slots, self._place, self._ends = integers(last), integers(d), integers(d)
        self._columns, self._learnt_columns, self._U = integers(n), integers(n), floats(n, n)
        self._told, self._innovations = floats(n, last + 1), floats(n, last + 1)
        self._scores, self._between, self._shares = floats(d, most, most), floats(most, most), floats(most)
        self._left, self._variance = floats(n), floats(n)
        matching: cython.Py_ssize_t = last if last > draws else 1
        self._apart, self._steps = floats(n, matching), floats(n, matching)
        self._distances, self._sums = floats(matching), floats(matching + 3)
        self._chosen = integers(m)
        self._drawn, self._values = floats(n, m), floats(n, m)
        self._fitted, self._found = floats(most, m), floats(m)
        self._to, self._back, self._of_draw, self._of_row = floats(most), floats(most), floats(most), floats(most)
        self._u = self._pick

    def draw(self, x: Any, ages: Any, uniform: Any, orders: Any, stops: Any, out: Any, used: Any) -> None:
        """Write the draws of an observation's orders, by the same candidates.

        Parameters
        ----------
        ages
            The slots, that which was stored first at the beginning.
        uniform
            Shape (candidates + draws * (1 + 2 features),): uniform numbers.
        orders, stops
            Shapes (orders, features) and (orders, coalitions of each), ascending: the features by number, and how many
            of them are present in each coalition.
        out, used
            Shapes (coalitions of all orders, draws, features) and (coalitions of all orders, draws): the draws, and the
            slots they came from.
        """
        order: cython.longlong[:, ::1] = memoryview(orders)
        stop: cython.longlong[:, ::1] = memoryview(stops)
        draws: cython.double[:, :, ::1] = memoryview(out)
        slots: cython.longlong[:, ::1] = memoryview(used)
        self._u = memoryview(uniform)
        self._take(memoryview(x))
        for draw in range(self._m):
            self._pick[draw] = self._u[self._last + draw * (1 + 2 * self._d)]
        self._draw_candidates(memoryview(ages))
        for o in range(order.shape[0]):
            self._walk(order, stop, o, draws, slots)

    @cython.cfunc
    def _draw_candidates(self, ages: cython.longlong[::1]) -> cython.bint:
        """Draw the candidates' slots, with replacement, which is quick.

        A slot that is drawn twice has twice the weight. The first ones are of the older half of all slots.
        """
        at: cython.Py_ssize_t
        n_older: cython.Py_ssize_t = ages.shape[0] // 2 if self._split > 0 else 0
        for c in range(self._last):
            if c < self._split:
                first, n = 0, n_older
            else:
                first, n = n_older, ages.shape[0] - n_older
            at = int(self._u[c] * n)
            self._slots[c] = ages[first + min(at, n - 1)]
        return True

    @cython.cfunc
    def _walk(
        self, order: cython.longlong[:, ::1], stop: cython.longlong[:, ::1], o: cython.Py_ssize_t,
        draws: cython.double[:, :, ::1], slots: cython.longlong[:, ::1],
    ) -> cython.bint:  # fmt: skip
        """Write the draws of an order."""
        m: cython.Py_ssize_t = self._m
        n_stops: cython.Py_ssize_t = stop.shape[1]
        begin: cython.Py_ssize_t = o * n_stops
        now: cython.Py_ssize_t = 0
        self._arrange(order, o)
        self._factor()
        self._discriminants(order, o)
        self._choose(order, stop, o)
        for s in range(n_stops):
            for r in range(m):
                slots[begin + s, r] = self._slots[self._chosen[s * m + r]]
                for p in range(stop[o, s]):
                    draws[begin + s, r, order[o, p]] = self._x[0, order[o, p]]
        s = 0
        for p in range(stop[o, 0], self._d):
            first = self._ends[p - 1] if p > 0 else 0
            while s < n_stops and stop[o, s] == p:  # the draws of another coalition begin
                for i in range(first):
                    for a in range(now, now + m):
                        self._drawn[i, a] = self._innovations[i, self._last]
                        self._values[self._columns[i], a] = self._phi[0, self._columns[i]]
                s += 1
                now += m
            self._draw_feature(order[o, p], p, first, now)
            for a in range(now):
                draws[begin + a // m, a % m, order[o, p]] = self._found[a]
            if p < self._d - 1:
                self._take_over(order[o, p], p, first, now)
        return True

    @cython.cfunc
    def _arrange(self, order: cython.longlong[:, ::1], o: cython.Py_ssize_t) -> cython.bint:
        """Arrange the columns by the features' order, products after both parts."""
        first: cython.Py_ssize_t
        at: cython.Py_ssize_t = 0
        d: cython.Py_ssize_t = order.shape[1]
        for p in range(d):
            self._place[order[o, p]] = p
        for p in range(d):
            j = order[o, p]
            for c in range(self._start[j], self._start[j + 1]):
                self._columns[at] = c
                at += 1
            for c in range(self._start[d], self._of.shape[0]):
                first = int(self._number[c])
                if max(self._place[self._of[first]], self._place[self._of[self._other[c]]]) == p:
                    self._columns[at] = c
                    at += 1
            self._ends[p] = at
        for at in range(self._of.shape[0]):
            self._learnt_columns[at] = self._in_use[self._columns[at]]
        return True

    @cython.cfunc
    def _factor(self) -> cython.bint:
        """Compute the innovations of the candidates' and x's columns.

        An innovation is the part of a column that the columns before do not predict.
        """
        last: cython.Py_ssize_t = self._last
        factor(self._covariance, self._learnt_columns, self._U)
        for i in range(self._columns.shape[0]):
            c = self._columns[i]
            center = self._mean[self._learnt_columns[i]]
            for r in range(last):
                self._innovations[i, r] = self._rows_phi[self._slots[r], c] - center
                self._told[i, r] = 0.0
            self._innovations[i, last] = self._phi[0, c] - center
            self._told[i, last] = 0.0
            _tell(self._U, 0, i, i, self._innovations, 0, last + 1, self._told, i)
            _innovate(self._told, i, self._U[i, i], last + 1, self._innovations, i)
        return True

    @cython.cfunc
    def _discriminants(self, order: cython.longlong[:, ::1], o: cython.Py_ssize_t) -> cython.bint:
        """Find each category's `discriminant` given all features before it."""
        for p in range(1, order.shape[1]):
            k, first = self._levels[order[o, p]] - 1, self._ends[p - 1]
            if k > 0:
                for a in range(k):
                    self._shares[a] = self._mean[self._learnt_columns[first + a]]
                    for b in range(k):
                        self._between[a, b] = 0.0
                        for i in range(first):
                            self._between[a, b] += self._U[i, first + a] * self._U[i, first + b]
                discriminant(self._between, self._shares, k, self._scores, p)
        return True

    @cython.cfunc
    def _choose(
        self, order: cython.longlong[:, ::1], stop: cython.longlong[:, ::1], o: cython.Py_ssize_t
    ) -> cython.bint:
        """Choose candidates for each coalition that the order grows through."""
        done: cython.Py_ssize_t = 0
        n: cython.Py_ssize_t = self._columns.shape[0]
        last: cython.Py_ssize_t = self._last
        m: cython.Py_ssize_t = self._m
        own: cython.longlong[::1] = self._chosen
        sums: cython.double[::1] = self._sums
        if last > m:
            # What is not known so far leaves of the variance, and all of it; and what is known so far says of each
            # column: so much more of the observation than of a candidate.
            for i in range(n):
                self._variance[i] = 0.0
                for r in range(last):
                    self._apart[i, r] = 0.0
            for k in range(n):
                for i in range(k, n):
                    self._variance[i] += self._U[k, i] * self._U[k, i]
            for i in range(n):
                self._left[i] = self._variance[i]
        for s in range(stop.shape[1]):
            matched: cython.bint = False
            if last > m:
                for p in range(stop[o, s]):
                    for q in range(stop[o, s], order.shape[1]):
                        matched = matched or self._strong[order[o, p], order[o, q]] != 0
            if not matched:
                for r in range(m):
                    own[s * m + r] = r if r < self._half else self._split + r - self._half
                continue
            known = self._ends[stop[o, s] - 1]
            for t in range(done, known):
                for r in range(last):
                    self._steps[t, r] = self._innovations[t, last] - self._innovations[t, r]
            for i in range(known, n):
                for t in range(done, known):
                    self._left[i] -= self._U[t, i] * self._U[t, i]
                _tell(self._U, done, known, i, self._steps, 0, last, self._apart, i)
            done = known
            for r in range(last):
                self._distances[r] = 0.0
            for i in range(known, n):
                if self._variance[i] > 0.0:
                    spread = max(self._left[i], _LEAST_VARIANCE * self._variance[i]) * (n - known)
                    weight: cython.double = 1.0 / max(spread, _TINY)
                    for r in range(last):
                        self._distances[r] += weight * self._apart[i, r] * self._apart[i, r]
            if self._half > 0:
                choose(self._distances, 0, self._split, self._pick, 0, self._half, _NEAREST_OF_WALK, sums, own, s * m)
            choose(self._distances, self._split, last, self._pick, self._half, m, _NEAREST_OF_WALK, sums, own, s * m)
        return True

    @cython.cfunc
    def _draw_feature(
        self, j: cython.Py_ssize_t, p: cython.Py_ssize_t, first: cython.Py_ssize_t, now: cython.Py_ssize_t
    ) -> cython.bint:
        """Draw feature j (place p, columns from `first`) for all draws so far."""
        d: cython.Py_ssize_t = self._d
        k: cython.Py_ssize_t = max(self._levels[j] - 1, 0)
        for c in range(max(k, 1)):
            for a in range(now):
                self._fitted[c, a] = 0.0
            _tell(self._U, 0, first, first + c, self._drawn, 0, now, self._fitted, c)
        for a in range(now):
            r = self._chosen[a]
            value = self._rows[self._slots[r], j]
            if value != value:
                pass  # that it is missing is what was stored
            elif self._levels[j] == 0:
                mean = self._mean[self._learnt_columns[first]]
                value = self._moved(j, value, self._fitted[0, a], self._told[first, r], mean)
            elif k > 0 and p > 0:
                for c in range(k):
                    self._of_draw[c], self._of_row[c] = self._fitted[c, a], self._told[first + c, r]
                    for i in range(first, first + c):  # what is told of a row's level includes the levels before
                        self._of_row[c] -= self._U[i, first + c] * self._innovations[i, r]
                probabilities(self._of_draw, k, self._scores, p, self._to)
                probabilities(self._of_row, k, self._scores, p, self._back)
                at = self._last + a % self._m * (1 + 2 * d) + 1 + p
                value = couple(self._to, self._back, k + 1, int(value), self._u[at], self._u[at + d])
            self._found[a] = value
        return True

    @cython.cfunc
    def _take_over(
        self, j: cython.Py_ssize_t, p: cython.Py_ssize_t, first: cython.Py_ssize_t, now: cython.Py_ssize_t
    ) -> cython.bint:
        """Compute the innovations of the drawn feature's columns."""
        factor_of: cython.Py_ssize_t
        for i in range(first, self._ends[p]):
            c, center = self._columns[i], self._mean[self._learnt_columns[i]]
            for a in range(now):
                if self._kind[c] == _PRODUCT:
                    factor_of = int(self._number[c])
                    self._values[c, a] = self._values[factor_of, a] * self._values[self._other[c], a]
                else:
                    self._values[c, a] = _column(
                        self._kind[c], self._number[c], self._found[a], self._center[j], self._scale[j]
                    )
                self._drawn[i, a] = self._values[c, a] - center
            if i > first:
                for a in range(now):
                    self._fitted[0, a] = 0.0
                _tell(self._U, 0, i, i, self._drawn, 0, now, self._fitted, 0)
            _innovate(self._fitted, 0, self._U[i, i], now, self._drawn, i)
        return True


def write_rows(
    values: Any, orders: Any, stops: Any, frequent: Any, codes: Any, start: cython.Py_ssize_t, rows: Any
) -> int:  # fmt: skip
    """Write drawn codes to rows from `start` on; kept features are row 0's.

    Parameters
    ----------
    values
        Shape (sets, draws, features).
    orders, stops
        Shapes (orders, features) and (orders, sets of each): how many features of an order, the first ones, are kept.
    frequent
        Shape (features,): the number of levels that have a code, -1 for a number.
    codes
        Shape (features, levels): the code in the array of each of them.

    Returns
    -------
    The number of levels without a code, written as NaN; -1 where a value is missing, which the rows cannot hold.
    """
    V: cython.double[:, :, ::1] = memoryview(values)
    order: cython.longlong[:, ::1] = memoryview(orders)
    stop: cython.longlong[:, ::1] = memoryview(stops)
    n_levels: cython.longlong[::1] = memoryview(frequent)
    code: cython.double[:, ::1] = memoryview(codes)
    X: cython.double[:, ::1] = memoryview(rows)
    level: cython.Py_ssize_t
    s: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t = start
    n_rare: cython.Py_ssize_t = 0
    for o in range(order.shape[0]):
        for i in range(stop.shape[1]):
            for draw in range(V.shape[1]):
                for p in range(order.shape[1]):
                    j = order[o, p]
                    if p < stop[o, i]:
                        X[r, j] = X[0, j]
                        continue
                    value = V[s, draw, j]
                    if value != value:
                        return -1
                    if n_levels[j] >= 0:
                        if value >= n_levels[j]:
                            n_rare += 1
                            value = _NAN
                        else:
                            level = int(value)
                            value = code[j, level]
                    X[r, j] = value
                r += 1
            s += 1
    return n_rare


MEAN, SQUARE, VARIANCE = range(3)
"""Rows of the moments of squared residuals: of a residual's square, of the capped share, and the variance of that."""
_MOST = cython.declare(cython.double, 9.0)
"""Squared residuals count up to so many times their mean: a few far out say nothing of the others."""


@cython.ccall
def learn(
    values: cython.double[:, ::1], at: cython.Py_ssize_t, feature: cython.longlong[::1], alpha: cython.double,
    counts: cython.double[::1], mean: cython.double[::1], covariance: cython.double[:, ::1],
    rate: cython.double[::1], step: cython.double[::1],
) -> cython.bint:  # fmt: skip
    """Add a row to the exponentially weighted mean and covariance, in place.

    A column whose value is NaN teaches nothing, nor do its pairs. Each feature has its own count of observations, so
    that one which comes late starts as the others did: its rate is max(1 / count, alpha).

    Parameters
    ----------
    values, at
        Rows of columns, and which of them is added.
    feature
        Shape (columns,): which count a column has.
    counts
        Shape (features + products,): raised by one where the value is there.
    covariance
        Its lower triangle is kept.
    rate, step
        Room for a number of each column.
    """
    last: cython.longlong = -1
    are_alike: cython.bint = True
    n: cython.Py_ssize_t = values.shape[1]
    for i in range(n):
        if values[at, i] != values[at, i]:
            are_alike, rate[i] = False, 0.0
            continue
        if feature[i] != last:
            last = feature[i]
            counts[last] += 1.0
        rate[i] = max(1.0 / counts[last], alpha)
        step[i] = values[at, i] - mean[i]
        mean[i] += rate[i] * step[i]
        are_alike = are_alike and rate[i] == rate[0]
    if are_alike:  # as nearly always: the compiler takes several columns at a time
        for i in range(n):
            keep, own = 1.0 - rate[0], rate[0] * step[i]
            for j in range(i + 1):
                covariance[i, j] = keep * (covariance[i, j] + own * step[j])
        return True
    for i in range(n):
        if rate[i] == 0.0:
            continue
        for j in range(i + 1):
            if rate[j] > 0.0:
                r = max(rate[i], rate[j])
                covariance[i, j] = (1.0 - r) * (covariance[i, j] + r * step[i] * step[j])
    return True


def learn_all(values: Any, learnt: Any) -> None:
    """Add rows of columns to the learnt statistics, all with equal weight."""
    rows: cython.double[:, ::1] = memoryview(values)
    counted: cython.longlong[::1] = memoryview(learnt.counted)
    counts: cython.double[::1] = memoryview(learnt.counts)
    mean: cython.double[::1] = memoryview(learnt.mean)
    covariance: cython.double[:, ::1] = memoryview(learnt.covariance)
    rate: cython.double[::1] = floats(max(mean.shape[0], 1))
    step: cython.double[::1] = floats(max(mean.shape[0], 1))
    for r in range(rows.shape[0]):
        learn(rows, r, counted, 0.0, counts, mean, covariance, rate, step)


@cython.cclass
class Moments:
    """Adds observations to all moments that are learnt, in place.

    Parameters
    ----------
    learnt
        See `Learnt`.
    used, start
        The columns that the regression has, by their numbers among all, and where those of each feature begin.
    slopes, means
        The regression's, of these columns.
    """

    _reader: object
    _values: cython.double[:, ::1]
    """All columns of the observation that is added, in one row."""
    _levels: cython.longlong[::1]
    _counted: cython.longlong[::1]
    _counts: cython.double[::1]
    _mean: cython.double[::1]
    _covariance: cython.double[:, ::1]
    _spread: cython.double[:, ::1]
    _spread_with: cython.double[:, ::1]
    _products: cython.double[:, ::1]
    _with_products: cython.double[:, :, ::1]
    _in_use: cython.longlong[::1]
    _start: cython.longlong[::1]
    _B: cython.double[:, ::1]
    _regression_mean: cython.double[::1]
    _deviations: cython.double[::1]
    _residuals: cython.double[::1]
    """Shape (features,): what all other features leave of a number; NaN for what is none."""
    _apart: cython.double[::1]
    """Shape (features,): how far the numbers' values are from their means; NaN for what is none."""
    _rate: cython.double[::1]
    _step: cython.double[::1]

    def __init__(self, learnt: Any, used: Any, start: Any, slopes: Any, means: Any) -> None:
        self._reader, self._levels = Reader(learnt.columns, learnt.encoding), memoryview(learnt.encoding.levels)
        self._counted, self._counts = memoryview(learnt.counted), memoryview(learnt.counts)
        self._mean, self._covariance = memoryview(learnt.mean), memoryview(learnt.covariance)
        self._spread, self._spread_with = memoryview(learnt.spread), memoryview(learnt.spread_with)
        self._products, self._with_products = memoryview(learnt.product_variance), memoryview(learnt.product_with)
        self._in_use, self._start = memoryview(used), memoryview(start)
        self._B, self._regression_mean = memoryview(slopes), memoryview(means)
        n: cython.Py_ssize_t = max(self._mean.shape[0], 1)
        d: cython.Py_ssize_t = self._levels.shape[0]
        self._values = floats(1, n)
        self._deviations, self._rate, self._step = floats(n), floats(n), floats(n)
        self._residuals, self._apart = floats(d), floats(d)

    def add(self, row: Any, rate: cython.double, alpha: cython.double) -> None:
        """Add an encoded observation, shape (1, features).

        The moments of squared residuals and of products come first; the rate is theirs, `alpha` that of the others.
        """
        self._reader.read(row, self._values)
        n: cython.Py_ssize_t = self._in_use.shape[0]
        for i in range(n):
            own = self._values[0, self._in_use[i]] - self._regression_mean[i]
            self._deviations[i] = own if own == own else 0.0
        for j in range(self._levels.shape[0]):
            self._residuals[j] = self._apart[j] = _NAN
            if self._levels[j] == 0:
                at = self._start[j]
                left: cython.double = self._values[0, self._in_use[at]]
                self._apart[j] = left - self._mean[self._in_use[at]]
                left -= self._regression_mean[at]
                for i in range(n):
                    left -= self._B[i, at] * self._deviations[i]
                self._residuals[j] = left
        self._add_spread(rate)
        if self._products.shape[0] > 0:
            self._add_products(rate)
        learn(self._values, 0, self._counted, alpha, self._counts, self._mean, self._covariance, self._rate, self._step)

    @cython.cfunc
    def _add_spread(self, rate: cython.double) -> cython.bint:
        """Add an observation to covariances of squared residuals with columns."""
        are_there: cython.bint = True
        keep: cython.double = 1.0 - rate
        n: cython.Py_ssize_t = self._mean.shape[0]
        for c in range(n):
            self._deviations[c] = self._values[0, c] - self._mean[c]
            are_there = are_there and self._deviations[c] == self._deviations[c]
        for j in range(self._residuals.shape[0]):
            e = self._residuals[j]
            if e != e:
                continue
            self._spread[0, j] += rate * (e * e - self._spread[0, j])
            share = min(e * e / self._spread[0, j], _MOST) if self._spread[0, j] > 0.0 else 0.0
            step: cython.double = share - self._spread[1, j]
            self._spread[1, j] += rate * step
            self._spread[2, j] = keep * (self._spread[2, j] + rate * step * step)
            step *= rate
            for c in range(n):
                if are_there or self._deviations[c] == self._deviations[c]:
                    self._spread_with[j, c] = keep * (self._spread_with[j, c] + step * self._deviations[c])
        return True

    @cython.cfunc
    def _add_products(self, rate: cython.double) -> cython.bint:
        """Add an observation to covariances of residuals with pairs' products."""
        keep: cython.double = 1.0 - rate
        for a in range(self._residuals.shape[0]):
            for b in range(a):
                product = self._apart[a] * self._apart[b]
                if product != product:
                    continue
                self._products[a, b] += rate * (product * product - self._products[a, b])
                for j in range(self._residuals.shape[0]):
                    if self._residuals[j] == self._residuals[j]:
                        self._with_products[j, a, b] = (
                            keep * self._with_products[j, a, b] + rate * self._residuals[j] * product
                        )
        return True


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
