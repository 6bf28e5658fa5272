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
class ReplacedRows:
    """Copies of the observation, each with a feature from a stored row.

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
    def draw(self, uniforms: Uniforms, n_stored: cython.Py_ssize_t) -> None:
        """Draw slots for each player, a slot from each equal part of its order."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        place: cython.Py_ssize_t
        n: cython.Py_ssize_t = self._slots.shape[1]
        part: cython.double = n_stored
        part /= n
        for i in range(self._slots.shape[0]):
            for j in range(n):
                place = int((j + uniforms.next()) * part)
                self._slots[i, j] = self._order[self._columns[i], min(place, n_stored - 1)]

    # hot
    def fill(
        self,
        X: cython.double[:, ::1],
        start: cython.Py_ssize_t,
        first: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
    ) -> None:
        """Write copies of row 0, each with a player's drawn feature.

        It is what `imputers.rows.replace` does with dicts, player by player.

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
class CoalitionRows:
    """Rows of SAGE coalitions: stored rows with features of the observation.

    Each coalition has a feature more than the coalition before it, in the order of a permutation.

    Parameters
    ----------
    columns
        Shape (players,): the column of each player's feature.
    orders
        Shape (orders, players): the players by number; the last of an order joins no coalition.
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
        """Write stored rows with the features of each coalition from row 0.

        It is what `imputers.rows.keep` does with dicts, coalition by coalition.

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
        n_before: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        f: cython.Py_ssize_t
        column: cython.Py_ssize_t
        n: cython.Py_ssize_t = self._slots.shape[0]
        steps: cython.Py_ssize_t = self._orders.shape[1] - 1
        r: cython.Py_ssize_t = start
        for c in range(first, stop):
            o = c // steps
            n_before = c % steps  # players of the coalition before this step's player joins
            for j in range(n):
                if n_before == 0 or c == first:
                    for f in range(X.shape[1]):
                        X[r, f] = self._matrix[self._slots[j], f]
                    for i in range(n_before):
                        column = self._columns[self._orders[o, i]]
                        X[r, column] = X[0, column]
                else:  # the row of the same draw, one coalition before
                    for f in range(X.shape[1]):
                        X[r, f] = X[r - n, f]
                column = self._columns[self._orders[o, n_before]]
                X[r, column] = X[0, column]
                r += 1
