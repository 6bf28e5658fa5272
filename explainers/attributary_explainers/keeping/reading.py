"""Observations and predictions whose numbers compiled code reads as they come, out of their dicts, to be kept together.

Python would make a copy of each, and read it later, when it is no longer in the processor's cache.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..compiled import array_at, compiled, is_compiling
from ..objects import addresses_of, dict_size, has_failed, is_a, is_equal, next_entry, number, type_of, value_of, whole
from ..typing import Features
from .kept import Kept, Layout, layout_of

_N, _MOST, _F, _K, _GOES_ON, _KEY, _VALUE, _HERE = range(8)
"""How many observations have been read, and how many there is room for; how many features and classes they have;
numbers for `next_entry`, and the address of the first."""

_NAMES = addresses_of(float, int, str)
_FLOAT, _INT, _STR = range(8, 11)
"""Addresses of types."""

_VALUES, _PROBABILITIES, _WHICH = range(11, 14)
"""Addresses of the numbers that have been read, by observation: the values, the probabilities, and which of the values
are integers, as bits. The addresses of the names of the features and of the classes follow."""
_FIRST = 14

_MOST_FEATURES = 62
_PLAIN = frozenset((bool, int, str))
"""Types of classes that are looked up without code of the user's."""


class Reader:
    """Reads observations with the same features, all of them floats or integers, and probabilities of the same classes.

    Parameters
    ----------
    names
        The features, in order: texts.
    labels
        The classes, in any order.
    most
        So many observations are read at most before they are taken out.
    """

    def __init__(self, names: tuple[str, ...], labels: tuple[Any, ...], most: int) -> None:
        self.names, self.labels = names, labels
        self._layouts: dict[int, Layout] = {}
        self._values = np.empty((most, len(names)))
        self._probabilities = np.empty((most, len(labels)))
        self._which = np.zeros(most, np.int64)
        arrays = self._values, self._probabilities, self._which
        known = [0, most, len(names), len(labels), 0, 0, 0, 0, *_NAMES.tolist(), *(one.ctypes.data for one in arrays)]
        self.known = np.array([*known, *map(id, names), *map(id, labels)], np.int64)
        """What `read` takes."""
        self.known[_HERE] = self.known.ctypes.data + 8 * _GOES_ON

    @classmethod
    def of(cls, x: Features, labels: tuple[Any, ...], most: int) -> Reader | None:
        """Return what reads observations like this one; None where compiled code cannot."""
        names = tuple(x)
        is_plain = all(type(name) is str for name in names) and {*map(type, x.values())} <= {float, int}
        is_plain = is_plain and len(labels) > 0 and _PLAIN.issuperset(map(type, labels))
        if not (is_compiling() and is_plain and 0 < len(names) <= _MOST_FEATURES and sys.byteorder == "little"):
            return None
        return cls(names, labels, most)

    def taken_out(self) -> tuple[list[Kept], list[list[float]]]:
        """Take out what has been read: the observations as they are kept, and the probabilities by class."""
        n, self.known[_N] = int(self.known[_N]), 0
        data, length = self._values[:n].tobytes(), 8 * len(self.names)
        rows = [
            Kept(self._layouts.get(which) or self._layout(which), data[i * length : (i + 1) * length])
            for i, which in enumerate(self._which[:n].tolist())
        ]
        return rows, self._probabilities[:n].tolist()

    def _layout(self, which: int) -> Layout:
        codes = "".join("q" if which >> i & 1 else "d" for i in range(len(self.names)))
        found = self._layouts[which] = layout_of(self.names, codes)
        return found

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()  # addresses are of this process


@compiled(reads_objects=True)
def read(known: Any, x: int, y_pred: int) -> int:
    """Read an observation and its prediction, both dicts; return 0 where Python is to keep them."""
    n = known[_N]
    is_read = n < known[_MOST] and _has_read_values(known, x) and _has_read_probabilities(known, y_pred)
    if has_failed() or not is_read:
        return 0
    known[_N] = n + 1
    return 1


@compiled(reads_objects=True)
def _has_read_values(known: Any, x: int) -> bool:
    """Return whether an observation has the features, and numbers alone, which are written."""
    n, f = known[_N], known[_F]
    if dict_size(x) != f:
        return False
    values = array_at(known[_VALUES] + 8 * n * f, (f,), np.float64)
    integers = array_at(known[_VALUES] + 8 * n * f, (f,), np.int64)
    which = 0
    known[_GOES_ON] = 0
    for i in range(f):
        if not next_entry(x, known[_HERE]):
            return False
        key, name = known[_KEY], known[_FIRST + i]
        if key != name and not (is_a(key, known[_STR]) and is_equal(key, name)):
            return False
        kind = type_of(known[_VALUE])
        if kind == known[_FLOAT]:
            values[i] = number(known[_VALUE])
        elif kind == known[_INT]:
            integers[i] = whole(known[_VALUE])
            if integers[i] == -1 and has_failed():  # beyond 64 bits
                return False
            which |= 1 << i
        else:
            return False
    array_at(known[_WHICH], (known[_MOST],), np.int64)[n] = which
    return True


@compiled(reads_objects=True)
def _has_read_probabilities(known: Any, y_pred: int) -> bool:
    """Return whether a prediction has the classes, and finite floats alone, which are written."""
    n, f, k = known[_N], known[_F], known[_K]
    if dict_size(y_pred) != k:
        return False
    probabilities, total = array_at(known[_PROBABILITIES] + 8 * n * k, (k,), np.float64), 0.0
    for j in range(k):
        found = value_of(y_pred, known[_FIRST + f + j])
        if not is_a(found, known[_FLOAT]):
            return False
        probabilities[j] = number(found)
        total += probabilities[j]
    return total * 0.0 == 0.0
