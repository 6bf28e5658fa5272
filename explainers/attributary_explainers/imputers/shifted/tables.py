"""What follows from stored rows and moments: rows as columns, and the regression of each feature on all others."""

from __future__ import annotations

import numpy as np

from ...typing import Array, Ints
from .columns import PRODUCT, Columns, expand, expand_all
from .drawing.singles import predict, predict_all, regress
from .encoding import Encoding
from .learnt import Learnt


class Regression:
    """The regression of each feature's columns on the columns of all others; see `singles.regress`.

    Parameters
    ----------
    mean, covariance
        Of the columns in use; kept, as they are what a snapshot needs.
    """

    def __init__(self, mean: Array, covariance: Array, encoding: Encoding, columns: Columns) -> None:
        self.mean, self.covariance = mean, covariance
        n, d = len(mean), len(encoding)
        most = max(2, int(encoding.levels.max(initial=0)))
        self.B, self.weights = np.zeros((n, n)), np.zeros(n)
        self.means, self.inverses = np.zeros((d, most, most)), np.zeros((d, most, most))
        start, _, of, number, other = columns
        regress(
            covariance, mean, encoding.levels, start, of, number, other, self.B, self.weights, self.means, self.inverses
        )

    def fitted(self, phi: Array) -> Array:
        """Return what all other features say of each column, less its mean."""
        found = np.empty(len(phi))
        predict(phi, self.B, self.mean, found)
        return found


class RowTable:
    """The stored rows by slot: encoded, as the columns in use, and what the regression says of them."""

    def __init__(self, size: int, learnt: Learnt, used: Ints) -> None:
        self.encoding: Encoding = learnt.encoding
        full = learnt.columns
        place = np.zeros(len(full.kind), dtype=np.int64)
        place[used] = np.arange(len(used))
        start = np.concatenate([np.searchsorted(used, full.start[:-1]), [np.searchsorted(used, full.start[-1])]])
        kind, of, number, other = full.kind[used], full.of[used], full.number[used].copy(), full.other[used].copy()
        products = np.flatnonzero(kind == PRODUCT)
        number[products] = place[number[products].astype(np.int64)]
        other[products] = place[other[products]]
        self.columns = Columns(start.astype(np.int64), kind, of, number, other)
        self.rows = np.full((size, len(learnt.encoding)), np.nan)
        self.phi, self.fits = np.zeros((size, len(used))), np.zeros((len(used), size))

    def expand(self, row: Array) -> Array:
        """Return the columns in use of an encoded observation."""
        phi = np.empty(self.phi.shape[1])
        expand(row, *self.columns[1:], self.encoding.center, self.encoding.scale, phi)
        return phi

    def put(self, slot: int, row: Array, regression: Regression | None) -> None:
        """Take in the encoded row of a slot."""
        self.rows[slot] = row
        self.phi[slot] = self.expand(row)
        if regression is not None:
            self.fits[:, slot] = regression.fitted(self.phi[slot])

    def put_all(self, rows: Array) -> None:
        """Take in the encoded rows of the first slots."""
        n = len(rows)
        self.rows[:n] = rows
        expand_all(rows, *self.columns[1:], self.encoding.center, self.encoding.scale, self.phi[:n])

    def fit(self, regression: Regression, slots: Ints) -> None:
        """Take what a new regression says of the rows in these slots."""
        predict_all(self.phi, slots, regression.B, regression.mean, self.fits)
