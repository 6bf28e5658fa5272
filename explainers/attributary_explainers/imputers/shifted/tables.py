"""What follows from stored rows and moments: rows as columns, and the regression of each feature on all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled
from ...typing import Array, Ints
from .columns import PRODUCT, Columns, expand, expand_all
from .drawing.singles import predict, predict_all, regress
from .drawing.spans import ends
from .encoding import Encoding
from .learnt import Learnt


@compiled
def put(
    slot: int, row: Any, kind: Any, of: Any, number: Any, other: Any, center: Any, scale: Any, B: Any, mean: Any,
    phi: Any, fits: Any,
) -> None:  # fmt: skip
    """Write the columns of a row, and what the regression says of them; see `expand` and `predict`."""
    expand(row, kind, of, number, other, center, scale, phi[slot])
    fitted = np.empty(len(mean))
    predict(phi[slot], B, mean, fitted)
    for c in range(len(fitted)):
        fits[c, slot] = fitted[c]


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
        self.scores = np.zeros((d, most, most))
        start, _, of, number, other = columns
        regress(covariance, mean, encoding.levels, start, of, number, other, self.B, self.weights, self.scores)


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
        self._ends: tuple[Array, Array] | None = None
        self.phi, self.fits = np.zeros((size, len(used))), np.zeros((len(used), size))

    def put(self, slot: int, row: Array, regression: Regression) -> None:
        """Take in the encoded row of a slot."""
        self.rows[slot], self._ends = row, None
        encoding = self.encoding
        put(
            slot, row, *self.columns[1:], encoding.center, encoding.scale, regression.B, regression.mean, self.phi,
            self.fits,
        )  # fmt: skip

    def put_all(self, rows: Array) -> None:
        """Take in the encoded rows of the first slots."""
        n = len(rows)
        self.rows[:n], self._ends = rows, None
        expand_all(rows, *self.columns[1:], self.encoding.center, self.encoding.scale, self.phi[:n])

    def ends(self, slots: Ints) -> tuple[Array, Array]:
        """Return the smallest and the largest value of each feature in all slots that there are; see `spans.ends`."""
        if self._ends is None:
            self._ends = ends(self.rows, slots)
        return self._ends

    def fit(self, regression: Regression, slots: Ints) -> None:
        """Take what a new regression says of the rows in these slots."""
        predict_all(self.phi, slots, regression.B, regression.mean, self.fits)
