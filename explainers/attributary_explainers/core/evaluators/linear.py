"""Linear models and scalers, read from River's dicts anew with each call: nothing is kept, nothing can be stale."""

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
    """Evaluates linear models, alone or behind a standard scaler; it has room for as many rows as the last time."""

    _P: Any
    _predictions: cython.double[:, ::1]
    _sums: cython.double[:, ::1]
    """By output and row."""
    _n: cython.Py_ssize_t
    _n_outputs: cython.Py_ssize_t
    _link: cython.Py_ssize_t

    def __init__(self) -> None:
        self._n = self._n_outputs = self._link = -1
        self._P = None

    def predict(
        self, X: Any, names: tuple[Any, ...], scaler: Any, weights: list[Any], intercepts: list[Any], hot: Any, link: int
    ) -> Any:
        """Return the predictions, shape (rows, outputs), in memory that the next call overwrites.

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
        k: cython.Py_ssize_t = len(weights)
        r: cython.Py_ssize_t
        c: cython.Py_ssize_t
        j: cython.Py_ssize_t
        z: cython.double
        mean: cython.double
        weight: cython.double
        if n != self._n or k != self._n_outputs or link != self._link:
            self._make_room(n, k, link)
        sums: cython.double[:, ::1] = self._sums
        means: Any = None if scaler is None else scaler.means
        variances: Any = None if scaler is None else scaler.vars
        for c in range(k):
            of_output: Any = weights[c]
            for r in range(n):
                sums[c, r] = 0.0
            # Column by column: each row's sum is added up in the order of the columns, and rows do not wait for it.
            for j in range(len(names)):
                name: Any = names[j]
                mean = 0.0
                weight = of_output.get(name, 0.0)
                if scaler is not None:
                    mean = means.get(name, 0.0)
                    weight = _by_deviation(weight, variances.get(name, 0.0))
                for r in range(n):
                    z = rows[r, j]
                    sums[c, r] += (z - mean) * weight if z == z else 0.0
        if hot:
            self._add_hot(hot, names, weights)
        for c in range(k):
            weight = intercepts[c]
            for r in range(n):
                sums[c, r] += weight
        self._finish()
        return self._P

    @cython.cfunc
    def _make_room(self, n: cython.Py_ssize_t, k: cython.Py_ssize_t, link: cython.Py_ssize_t) -> cython.bint:
        self._n, self._n_outputs, self._link = n, k, link
        self._P = np.empty((n, 2 if link == 1 else k))
        self._predictions = self._P if cython.compiled else memoryview(self._P)
        self._sums = np.empty((k, n)) if cython.compiled else floats(k, n) if k * n else None
        return True

    @cython.cfunc
    def _add_hot(self, hot: Any, names: tuple[Any, ...], weights: list[Any]) -> cython.bint:
        """Add the weights of one-hot columns, each looked up once."""
        taken: set[Any] = set(names)
        r: cython.Py_ssize_t
        c: cython.Py_ssize_t
        code: cython.Py_ssize_t
        x: cython.double
        codes: cython.double[:]
        for all_codes, size, name_of in hot:
            codes = all_codes if cython.compiled else memoryview(all_codes)
            table: cython.double[:, ::1] = floats(max(size, 1), 1 + self._n_outputs)  # the first column: whether it is read
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
                            table[code, 1 + c] = weights[c].get(name, 0.0)
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
def _by_deviation(weight: cython.double, variance: cython.double) -> cython.double:
    """Return a weight for numbers that are not divided by their standard deviation; 0 where there is none."""
    if not variance >= 0.0:
        raise ValueError("the root of a variance is no number, as that is below 0")
    return weight / sqrt(variance) if variance > 0.0 else 0.0


def scale(X: Any, subtracted: list[Any], divisors: list[Any], Z: Any) -> bool:
    """Write scaled columns, to the bit as River does; return whether a number became NaN.

    Parameters
    ----------
    X, Z
        Shape (rows, columns): what is scaled, and what becomes of it. NaN stays NaN.
    subtracted, divisors
        For each column a number; a divisor of 0 makes 0 of all.
    """
    rows: cython.double[:, ::1] = X if cython.compiled else memoryview(X)
    found: cython.double[:, ::1] = Z if cython.compiled else memoryview(Z)
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    z: cython.double
    less: cython.double
    divisor: cython.double
    is_made: cython.bint = False
    for j in range(len(divisors)):
        less, divisor = subtracted[j], divisors[j]
        for r in range(rows.shape[0]):
            z = rows[r, j]
            if z == z:
                z = (z - less) / divisor if divisor != 0.0 else 0.0
                if z != z:
                    is_made = True
            found[r, j] = z
    return bool(is_made)
