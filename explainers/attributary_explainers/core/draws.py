"""Draws: which stored rows replace features, and the rows made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.attributary_explainers.core.uniforms import Uniforms
else:
    from .uniforms import Uniforms


@cython.cclass
class Replacements:
    """Rows that take a feature from a stored row, stratified by its values.

    Parameters
    ----------
    columns
        Shape (players,): the column of each player's feature.
    n
        Draws of each player.
    matrix
        Shape (slots, features): the stored rows.
    order
        Shape (features, slots): by feature the slots, the least value first.
    """

    slots = cython.declare(object, visibility="readonly")
    """Shape (players, draws): the slots drawn."""
    _slots: cython.Py_ssize_t[:, ::1]
    _columns: cython.Py_ssize_t[::1]
    _matrix: cython.double[:, ::1]
    _order: cython.int[:, ::1]

    def __init__(self, columns: Any, n: int, matrix: Any, order: Any) -> None:
        self.slots = np.zeros((len(columns), n), dtype=np.intp)
        self._slots = self.slots
        self._columns, self._matrix, self._order = columns, matrix, order

    # hot
    def draw(self, draw: Uniforms, n_stored: cython.Py_ssize_t) -> None:
        """Draw slots for each player, one from each equal part of its order."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        place: cython.Py_ssize_t
        n: cython.Py_ssize_t = self._slots.shape[1]
        part: cython.double = n_stored
        part /= n
        for i in range(self._slots.shape[0]):
            for j in range(n):
                place = int((j + draw.next()) * part)
                self._slots[i, j] = self._order[self._columns[i], min(place, n_stored - 1)]

    # hot
    def fill(
        self,
        X: cython.double[:, ::1],
        start: cython.Py_ssize_t,
        first: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
    ) -> None:
        """Write row 0 with each player's drawn feature, as `rows.replace` does.

        Parameters
        ----------
        X
            Shape (rows, features): row 0 is the observation.
        start
            Where the rows begin.
        first, stop
            The players from the first one up to the last, which is left out.
        """
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        f: cython.Py_ssize_t
        r: cython.Py_ssize_t = start
        column: cython.Py_ssize_t
        for i in range(first, stop):
            column = self._columns[i]
            for j in range(self._slots.shape[1]):
                for f in range(X.shape[1]):
                    X[r, f] = X[0, f]
                X[r, column] = self._matrix[self._slots[i, j], column]
                r += 1


@cython.cclass
class Walks:
    """Stored rows that take over the features one by one, in random order.

    Parameters
    ----------
    columns
        Shape (players,): the column of each player's feature.
    orders
        Shape (orders, players): the players by number; all but the last one of an order are walked.
    slots
        Shape (draws,): the slots drawn.
    matrix
        Shape (slots, features): the stored rows.
    """

    _columns: cython.Py_ssize_t[::1]
    _orders: cython.Py_ssize_t[:, ::1]
    _slots: cython.Py_ssize_t[::1]
    _matrix: cython.double[:, ::1]

    def __init__(self, columns: Any, orders: Any, slots: Any, matrix: Any) -> None:
        self._columns, self._orders, self._slots, self._matrix = columns, orders, slots, matrix

    # hot
    def fill(
        self,
        X: cython.double[:, ::1],
        start: cython.Py_ssize_t,
        first: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
    ) -> None:
        """Write drawn rows with each coalition's features, as `rows.keep` does.

        Parameters
        ----------
        X
            Shape (rows, features): row 0 is the observation.
        start
            Where the rows begin.
        first, stop
            The coalitions from the first one up to the last, which is left out: those of all orders by number.
        """
        c: cython.Py_ssize_t
        o: cython.Py_ssize_t
        size: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        f: cython.Py_ssize_t
        column: cython.Py_ssize_t
        n: cython.Py_ssize_t = self._slots.shape[0]
        steps: cython.Py_ssize_t = self._orders.shape[1] - 1
        r: cython.Py_ssize_t = start
        for c in range(first, stop):
            o = c // steps
            size = c % steps
            for j in range(n):
                if size == 0 or c == first:
                    for f in range(X.shape[1]):
                        X[r, f] = self._matrix[self._slots[j], f]
                    for i in range(size):
                        column = self._columns[self._orders[o, i]]
                        X[r, column] = X[0, column]
                else:  # the row of the same draw, one coalition before
                    for f in range(X.shape[1]):
                        X[r, f] = X[r - n, f]
                column = self._columns[self._orders[o, size]]
                X[r, column] = X[0, column]
                r += 1
