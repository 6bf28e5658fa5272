"""Blocks of labelled predictions: predicted and observed counts by bin."""

from __future__ import annotations

from typing import Any

import numpy as np

from .buffers import floats

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import log
else:
    from math import log

P_LEAST = 1e-9
"""Least probability: far below the smallest base rate that is watched."""
_P_LEAST = cython.declare(cython.double, P_LEAST)
N_BOOKS = 5
"""Sums over all rows: their number, loss, squared loss, excess, squared excess."""


@cython.cclass
class Block:
    """Predicted and observed positives by bin, until there are enough.

    Parameters
    ----------
    edges
        Shape (bins - 1,): logits between the bins.
    """

    n = cython.declare(cython.Py_ssize_t, visibility="readonly")
    information = cython.declare(cython.double, visibility="readonly")
    """Sum of p (1 - p)."""
    off = cython.declare(cython.double, visibility="readonly")
    """Sum of |y - p|."""
    _edges: cython.double[::1]
    _table: cython.double[:, ::1]
    """Shape (3, bins): rows, sum of p, positives."""
    _books: cython.double[::1]
    _enough: cython.double
    _least_rows: cython.double
    _most_rows: cython.double
    _flood: cython.double
    _waits: cython.bint
    _lacks_positives: cython.longlong
    _lacks_negatives: cython.longlong

    def __init__(self, edges: Any) -> None:
        self._edges = floats(max(len(edges), 1))
        for i, edge in enumerate(edges):
            self._edges[i] = edge
        self._table, self._books = floats(3, len(edges) + 1), floats(N_BOOKS)
        self.n, self.information, self.off = 0, 0.0, 0.0
        self.end_at(0.0, 0.0)

    def end_at(
        self,
        enough: cython.double,
        least_rows: cython.double,
        most_rows: cython.double = float("inf"),
        flood: cython.double = float("inf"),
        lacks: Any = None,
    ) -> None:
        """Set the limits that end the block.

        Parameters
        ----------
        least_rows
            Rows before which nothing ends it.
        enough, most_rows, flood
            Information, rows, and sum of |y - p| that end it, whichever comes first.
        lacks
            Positives and negatives that end it when all have come; None: they do not.
        """
        self._enough, self._least_rows, self._most_rows, self._flood = enough, least_rows, most_rows, flood
        self._waits = lacks is not None
        self._lacks_positives, self._lacks_negatives = (0, 0) if lacks is None else lacks

    # hot
    @cython.ccall
    @cython.exceptval(check=False)
    def book(self, loss: cython.double, excess: cython.double) -> cython.bint:
        """Add a row's loss and excess to the books."""
        self._books[0] += 1.0
        self._books[1] += loss
        self._books[2] += loss * loss
        self._books[3] += excess
        self._books[4] += excess * excess
        return True

    # hot
    @cython.ccall
    @cython.exceptval(check=False)
    def add(self, p: cython.double, y: cython.bint) -> cython.bint:
        """Take in a prediction and its outcome; return whether the block is full."""
        k: cython.Py_ssize_t = 0
        n_edges: cython.Py_ssize_t = self._table.shape[1] - 1
        p = min(max(p, _P_LEAST), 1.0 - _P_LEAST)
        x: cython.double = log(p / (1.0 - p))
        while k < n_edges and self._edges[k] <= x:
            k += 1
        self._table[0, k] += 1.0
        self._table[1, k] += p
        self.n += 1
        self.information += p * (1.0 - p)
        if y:
            self._table[2, k] += 1.0
            self.off += 1.0 - p
            self._lacks_positives -= 1
        else:
            self.off += p
            self._lacks_negatives -= 1
        if self.n < self._least_rows:
            return False
        if self._waits and self._lacks_positives <= 0 and self._lacks_negatives <= 0:
            return True
        return self.information >= self._enough or self.n >= self._most_rows or self.off >= self._flood

    @property
    def table(self) -> Any:
        """Rows, sum of p, and positives by bin: a copy of shape (3, bins)."""
        return np.array(self._table)

    @property
    def books(self) -> Any:
        """Rows, loss, its square, excess and its square: a copy of shape (5,)."""
        return np.array(self._books)

    def empty(self) -> None:
        """Begin the next block."""
        self._table, self._books = floats(3, self._table.shape[1]), floats(N_BOOKS)
        self.n, self.information, self.off = 0, 0.0, 0.0

    def __reduce__(self) -> Any:
        edges = np.array(self._edges)[: self._table.shape[1] - 1]
        lacks = (self._lacks_positives, self._lacks_negatives) if self._waits else None
        ends = self._enough, self._least_rows, self._most_rows, self._flood, lacks
        return _copied, (edges, ends, self.snapshot())

    def snapshot(self) -> dict[str, Any]:
        """Return the sums as plain data, without the limits of the block."""
        return {
            "table": self.table.tobytes(),
            "books": self.books.tobytes(),
            "sums": [self.n, self.information, self.off],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take the sums of a snapshot."""
        self._table = np.frombuffer(snapshot["table"]).reshape(3, -1).copy()
        self._books = np.frombuffer(snapshot["books"]).copy()
        self.n, self.information, self.off = snapshot["sums"]


def _copied(edges: Any, ends: Any, snapshot: dict[str, Any]) -> Block:
    block = Block(edges)
    block.restore(snapshot)
    block.end_at(*ends)
    return block


def log_loss_of(y_pred: Any, y: Any) -> tuple[float, float]:
    """Return a prediction's log loss, and its excess over the expected loss.

    In nats, for a dict of label to probability and the label that came.
    """
    p: cython.double = y_pred.get(y, 0.0)
    loss: cython.double = -log(min(max(p, _P_LEAST), 1.0))
    excess: cython.double = loss
    for value in y_pred.values():
        p = value
        if p > 0.0:
            excess += p * log(p)
    return loss, excess
