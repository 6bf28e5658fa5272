"""Linear models and scalers, read from River's dicts anew at each call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..buffers import floats

try:
    import cython
except ImportError:
    from .. import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import exp, sqrt
else:
    from math import exp, sqrt

IDENTITY, SIGMOID, SOFTMAX = 0, 1, 2
"""What becomes of a sum: itself, the probability of True, or that of a class among others."""


@cython.cclass
class LinearRows:
    """Predictions of linear models, alone or behind a standard scaler."""

    _P: Any
    _predictions: cython.double[:, ::1]
    _sums: cython.double[:, ::1]
    """By output and row."""
    _means: cython.double[::1]
    _roots: cython.double[::1]
    """Standard deviations."""
    _weights: cython.double[::1]
    _of_codes: cython.double[:, ::1]
    """By code of a category whether it has been met, and its weight for each output."""
    _n: cython.Py_ssize_t
    _n_columns: cython.Py_ssize_t
    _n_outputs: cython.Py_ssize_t
    _link: cython.Py_ssize_t

    def __init__(self) -> None:
        self._n = self._n_columns = self._n_outputs = self._link = -1
        self._P = None
        self._of_codes = floats(1, 1)

    def predict(
        self,
        X: Any,
        names: tuple[Any, ...],
        scaler: Any,
        weights: list[Any],
        intercepts: list[Any],
        hot: Any,
        link: int,
    ) -> Any:
        """Return predictions (rows x outputs); the next call overwrites them.

        Parameters
        ----------
        X
            Shape (rows, columns): numbers. NaN in a column that a row lacks.
        names
            The name of each column.
        scaler
            A standard scaler of all columns, without a window; None where the columns come as they are.
        weights, intercepts
            For each output a mapping from names to weights, and a number.
        hot
            For each feature that is encoded: the codes of the rows, how many codes there are, and a function from a
            code to the name of the column that it makes 1, None where it makes none.

        Raises
        ------
        ValueError
            A variance is below 0, two columns have the same name, or the sum of a class among others is not finite.
        TypeError
            A parameter of the model is no number.
        """
        rows: cython.double[:, ::1] = X if cython.compiled else memoryview(X)
        n: cython.Py_ssize_t = rows.shape[0]
        d: cython.Py_ssize_t = len(names)
        k: cython.Py_ssize_t = len(weights)
        r: cython.Py_ssize_t
        c: cython.Py_ssize_t
        j: cython.Py_ssize_t
        weight: cython.double
        if n != self._n or k != self._n_outputs or d != self._n_columns or link != self._link:
            self._make_room(n, d, k, link)
        if scaler is not None:
            means: Any = scaler.means
            variances: Any = scaler.vars
            for j in range(d):
                self._means[j] = _number_in(means, names[j])
                self._roots[j] = _root(_number_in(variances, names[j]))
        for c in range(k):
            of_output: Any = weights[c]
            if len(of_output) < 4 * d and not isinstance(of_output, dict):
                of_output = of_output.to_dict()  # in no more time than one look-up
            for j in range(d):
                weight = _number_in(of_output, names[j])
                if scaler is not None:
                    weight = weight / self._roots[j] if self._roots[j] > 0.0 else 0.0
                self._weights[j] = weight
            self._add_up(rows, c)
        if hot:
            self._add_hot(hot, names, weights)
        for c in range(k):
            weight = intercepts[c]
            for r in range(n):
                self._sums[c, r] += weight
        self._finish()
        return self._P

    @cython.cfunc
    def _make_room(
        self, n: cython.Py_ssize_t, d: cython.Py_ssize_t, k: cython.Py_ssize_t, link: cython.Py_ssize_t
    ) -> cython.bint:
        self._n, self._n_columns, self._n_outputs, self._link = n, d, k, link
        self._means, self._roots, self._weights = floats(d + 1), floats(d + 1), floats(d + 1)
        self._P = np.empty((n, 2 if link == 1 else k))
        self._predictions = self._P if cython.compiled else memoryview(self._P)
        self._sums = np.empty((k, n)) if cython.compiled else floats(k, n) if k * n else None
        return True

    @cython.cfunc
    def _add_up(self, rows: cython.double[:, ::1], c: cython.Py_ssize_t) -> cython.bint:
        """Write each row's sum for an output, four independent rows at a time."""
        last: cython.Py_ssize_t = self._n - 1
        r: cython.Py_ssize_t
        s: cython.Py_ssize_t
        t: cython.Py_ssize_t
        u: cython.Py_ssize_t
        j: cython.Py_ssize_t
        z: cython.double
        mean: cython.double
        weight: cython.double
        of_r: cython.double
        of_s: cython.double
        of_t: cython.double
        of_u: cython.double
        # Into locals, for plain Python.
        means: cython.double[::1] = self._means
        weights: cython.double[::1] = self._weights
        for r in range(0, last + 1, 4):
            s, t, u = min(r + 1, last), min(r + 2, last), min(r + 3, last)
            of_r = of_s = of_t = of_u = 0.0
            for j in range(self._n_columns):
                mean, weight = means[j], weights[j]
                z = rows[r, j]
                of_r += (z - mean) * weight if z == z else 0.0
                z = rows[s, j]
                of_s += (z - mean) * weight if z == z else 0.0
                z = rows[t, j]
                of_t += (z - mean) * weight if z == z else 0.0
                z = rows[u, j]
                of_u += (z - mean) * weight if z == z else 0.0
            self._sums[c, r], self._sums[c, s], self._sums[c, t], self._sums[c, u] = of_r, of_s, of_t, of_u
        return True

    @cython.cfunc
    def _add_hot(self, hot: Any, names: tuple[Any, ...], weights: list[Any]) -> cython.bint:
        """Add the weights of indicator columns, each weight looked up once."""
        taken: set[Any] = set(names)
        r: cython.Py_ssize_t
        c: cython.Py_ssize_t
        code: cython.Py_ssize_t
        x: cython.double
        codes: cython.double[:]
        for all_codes, size, name_of in hot:
            codes = all_codes if cython.compiled else memoryview(all_codes)
            if self._of_codes.shape[0] < size or self._of_codes.shape[1] != 1 + self._n_outputs:
                self._of_codes = floats(max(size, 1), 1 + self._n_outputs)
            table: cython.double[:, ::1] = self._of_codes
            for code in range(table.shape[0]):
                table[code, 0] = 0.0
            own: set[Any] = set()
            for r in range(self._n):
                x = codes[r]
                if x != x:
                    continue
                code = int(x)
                if table[code, 0] == 0.0:
                    table[code, 0] = 1.0
                    name: Any = name_of(code)
                    if name in taken:
                        raise ValueError("two columns have the same name")
                    if name is not None:
                        own.add(name)
                    for c in range(self._n_outputs):
                        table[code, 1 + c] = 0.0 if name is None else weights[c].get(name, 0.0)
                for c in range(self._n_outputs):
                    self._sums[c, r] += table[code, 1 + c]
            taken |= own
        return True

    @cython.cfunc
    def _finish(self) -> cython.bint:
        """Make predictions of sums."""
        r: cython.Py_ssize_t
        c: cython.Py_ssize_t
        p: cython.double
        total: cython.double
        greatest: cython.double
        if self._link == 1:
            for r in range(self._n):
                total = self._sums[0, r]
                if total < -30.0:  # as River has it
                    p = 0.0
                elif total > 30.0:
                    p = 1.0
                else:
                    p = 1.0 / (1.0 + exp(-total))
                self._predictions[r, 0] = 1.0 - p
                self._predictions[r, 1] = p
            return True
        for r in range(self._n):
            for c in range(self._n_outputs):
                self._predictions[r, c] = self._sums[c, r]
            if self._link == 2:
                greatest = -1e308
                for c in range(self._n_outputs):
                    p = self._predictions[r, c]
                    if not -1e308 < p < 1e308:
                        raise ValueError("a sum is not finite")
                    greatest = max(greatest, p)
                total = 0.0
                for c in range(self._n_outputs):
                    self._predictions[r, c] = exp(self._predictions[r, c] - greatest)
                    total += self._predictions[r, c]
                for c in range(self._n_outputs):
                    self._predictions[r, c] /= total
        return True


@cython.cfunc
def _number_in(mapping: Any, name: Any) -> cython.double:
    """Return a name's number, or 0, without adding the name to the mapping."""
    if cython.compiled and isinstance(mapping, dict):
        return cython.cast(dict, mapping).get(name, 0.0)  # no call, though River's are defaultdicts
    return mapping.get(name, 0.0)


@cython.cfunc
def _root(variance: cython.double) -> cython.double:
    if not variance >= 0.0:
        raise ValueError("the root of a variance is no number, as that is below 0")
    return sqrt(variance)


def numbers_of(mapping: Any, names: tuple[Any, ...]) -> list[Any]:
    """Return each name's number, or 0, without adding names to the mapping."""
    if cython.compiled and isinstance(mapping, dict):
        return [cython.cast(dict, mapping).get(name, 0.0) for name in names]
    return [mapping.get(name, 0.0) for name in names]


def scale(X: Any, subtracted: list[Any], divisors: list[Any], Z: Any) -> list[int]:
    """Scale columns exactly as River does; return the unscaled columns.

    River makes NaN of the columns that are left unscaled.

    Parameters
    ----------
    X, Z
        Shape (rows, columns): what is scaled, and what becomes of it. NaN stays NaN.
    subtracted, divisors
        For each column a number; a divisor of 0 makes 0 of all. Infinite is what is not known yet.

    Raises
    ------
    ValueError
        A number becomes NaN between numbers that do not.
    """
    rows: cython.double[:, ::1] = X if cython.compiled else memoryview(X)
    found: cython.double[:, ::1] = Z if cython.compiled else memoryview(Z)
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    z: cython.double
    less: cython.double
    divisor: cython.double
    is_there: cython.bint
    unknown: list[int] = []
    for j in range(len(divisors)):
        less, divisor = subtracted[j], divisors[j]
        if less - less != 0.0 or divisor - divisor != 0.0:
            is_there = False
            for r in range(rows.shape[0]):
                found[r, j] = rows[r, j]
                if rows[r, j] == rows[r, j]:
                    is_there = True
            if is_there:
                unknown.append(j)
            continue
        for r in range(rows.shape[0]):
            z = rows[r, j]
            if z == z:
                z = (z - less) / divisor if divisor != 0.0 else 0.0
                if z != z:
                    raise ValueError("a scaler makes NaN of a number")
            found[r, j] = z
    return unknown
