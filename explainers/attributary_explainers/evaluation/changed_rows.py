"""Rows that are said by what changes from one to the next, where an array of them all would be large."""

from __future__ import annotations

import abc

import numpy as np
import numpy.typing as npt

from ..compiled import compiled
from ..typing import Array

LARGE = 1 << 16
"""Numbers in the rows of one request from which on they are not written down: half a megabyte of them."""

Columns = npt.NDArray[np.intp]


class ChangedRows(abc.ABC):
    """Holds rows by what changes in them; row 0 is the observation itself, and `n_rows` others follow.

    Parameters
    ----------
    x
        Shape (features,): the observation.
    n_rows
        The number of the others.
    """

    def __init__(self, x: Array, n_rows: int) -> None:
        self.x, self.n_rows = x, n_rows

    @abc.abstractmethod
    def write(self, numbers: Columns, X: Array) -> None:
        """Write the rows of these numbers, each 0 or above, to X, shape (numbers, features)."""

    def row(self, number: int) -> Array:
        """Return one row, as an array of shape (features,)."""
        X: Array = np.empty((1, len(self.x)))
        self.write(np.array([number]), X)
        return X.ravel()


class OneReplaced(ChangedRows):
    """Holds the observation with one value replaced at a time, as permutation importance asks for it.

    Parameters
    ----------
    x
        Shape (features,): the observation.
    columns
        Shape (players,): the column that is replaced, by player.
    values
        Shape (players, draws): by what. The rows of one player follow each other.
    """

    def __init__(self, x: Array, columns: Columns, values: Array) -> None:
        super().__init__(x, values.size)
        self.columns, self.values = columns, values

    def write(self, numbers: Columns, X: Array) -> None:
        """Write the rows of these numbers."""
        write_replaced(self.x, self.columns, self.values, numbers, X)


class Walked(ChangedRows):
    """Holds drawn rows that take over the observation's values one after the other, as a walk of SAGE asks for them.

    Parameters
    ----------
    x
        Shape (features,): the observation.
    orders
        Shape (orders, features): the columns as each order takes them; all but the last one are taken.
    drawn
        Shape (draws, features): the rows that each order begins with. The rows of one coalition follow each other.
    """

    def __init__(self, x: Array, orders: Columns, drawn: Array) -> None:
        super().__init__(x, len(orders) * (orders.shape[1] - 1) * len(drawn))
        self.orders, self.drawn = orders, drawn

    def write(self, numbers: Columns, X: Array) -> None:
        """Write the rows of these numbers."""
        write_walked(self.x, self.orders, self.drawn, numbers, X)


@compiled
def write_replaced(x: Array, columns: Columns, values: Array, numbers: Columns, X: Array) -> None:
    """Write the rows of `OneReplaced` with these numbers to X."""
    n = values.shape[1]
    for q in range(len(numbers)):
        for f in range(len(x)):
            X[q, f] = x[f]
        if numbers[q] > 0:
            i = (numbers[q] - 1) // n
            X[q, columns[i]] = values[i, (numbers[q] - 1) % n]


@compiled
def write_walked(x: Array, orders: Columns, drawn: Array, numbers: Columns, X: Array) -> None:
    """Write the rows of `Walked` with these numbers to X."""
    m, steps = len(drawn), orders.shape[1] - 1
    for q in range(len(numbers)):
        if numbers[q] == 0:
            for f in range(len(x)):
                X[q, f] = x[f]
            continue
        coalition, j = (numbers[q] - 1) // m, (numbers[q] - 1) % m
        for f in range(len(x)):
            X[q, f] = drawn[j, f]
        for i in range(coalition % steps + 1):
            f = orders[coalition // steps, i]
            X[q, f] = x[f]
