"""Fast reader of an observation into a row of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from . import _cython as cython

_EXACT = cython.declare(cython.double, 2.0**53)
"""Whole numbers below it are the same as floats."""
_FLOAT64: Any = np.float64


@cython.cclass
class Columns:
    """Writes observations with the same features to a row of float64.

    Parameters
    ----------
    names
        The features, in the order of their columns.
    codes
        By column a dict of texts to their codes, which may grow, or None where all values are numbers.
    numbers
        The types of numbers that are read here: of float, int, bool and numpy.float64. `Schema.encode` reads others.
    """

    row = cython.declare(object, visibility="readonly")
    """Shape (features,): the last observation that was read; written over by the next one."""
    _row: cython.double[::1]
    _names: tuple[Any, ...]
    _codes: list[Any]
    _n: cython.Py_ssize_t
    _integers: cython.bint
    _booleans: cython.bint
    _of_numpy: cython.bint

    def __init__(self, names: tuple[Any, ...], codes: list[Any], numbers: Any) -> None:
        self._names, self._codes, self._n = names, codes, len(names)
        self._integers, self._booleans, self._of_numpy = int in numbers, bool in numbers, _FLOAT64 in numbers
        self.row = np.zeros(len(names))
        self._row = self.row

    def __reduce__(self) -> Any:
        numbers = [float]
        for kind, is_plain in ((int, self._integers), (bool, self._booleans), (_FLOAT64, self._of_numpy)):
            if is_plain:
                numbers.append(kind)
        return Columns, (self._names, self._codes, numbers)

    def read(self, x: dict[Any, Any]) -> cython.bint:
        """Write the observation to `row` and return True, or return False.

        False is returned where it has other features, or a value that is no finite number of a known type that a float
        holds exactly, and in a column of codes no text that has a code.
        """
        j: cython.Py_ssize_t
        number: cython.double
        if len(x) != self._n:
            return False
        names: tuple[Any, ...] = self._names
        codes: list[Any] = self._codes
        for j in range(self._n):
            value: Any = x.get(names[j])
            kind: Any = type(value)
            if codes[j] is not None:
                if kind is not str:
                    return False
                value = codes[j].get(value)
                if value is None:
                    return False
                number = value
            elif kind is float or (kind is _FLOAT64 and self._of_numpy):
                number = value
                # NaN or infinite; the first test is only faster.
                if not -_EXACT < number < _EXACT and number - number != 0.0:
                    return False
            elif (kind is int and self._integers) or (kind is bool and self._booleans):
                if not -9007199254740992 < value < 9007199254740992:
                    return False
                number = value
            else:
                return False
            self._row[j] = number
        return True
