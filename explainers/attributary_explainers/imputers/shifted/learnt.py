"""Learnt statistics of the sampler: means, covariances, residual spread."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ...core.shifted.drawing import Reader
from ...core.shifted.learning import Moments, learn_all
from ...snapshots import pack, pack_symmetric, unpack, unpack_symmetric
from ...typing import Array, Ints, Snapshot
from .columns import Columns, columns_of
from .encoding import Encoding

MOST_NUMBERS = 20
"""With more numbers than this it is not looked for products: there would be too many."""
RIDGE = 0.01
"""As a share of each variance: stored rows do not say more precisely what new columns have to do with known ones."""


class Learnt:
    """Exponential moments of columns and residuals: `core.shifted.learning`."""

    def __init__(self, encoding: Encoding, products: list[tuple[int, int]]) -> None:
        self.encoding = encoding
        self.products = products
        """Pairs of features of which products are columns."""
        self.columns: Columns = columns_of(
            [np.array(f.knots) for f in encoding.features], encoding.levels.tolist(), products
        )
        d, n = len(encoding), len(self.columns.kind)
        self.n = 0
        """Observations learnt."""
        base = int(self.columns.start[-1])
        factors = [self.columns.of[c[base:].astype(np.int64)] for c in (self.columns.number, self.columns.other)]
        self.of_products = [base + np.flatnonzero((factors[0] == a) & (factors[1] == b)) for a, b in products]
        """The columns of each product."""
        # A product has a count of its own: it is there where both its features are.
        self.counted: Any = np.concatenate([self.columns.of[:base], d + np.arange(n - base)])
        self.counts = np.zeros(d + n - base)
        self.mean, self.covariance = np.zeros(n), np.zeros((n, n))
        self.spread, self.spread_with = np.zeros((3, d)), np.zeros((d, n))
        k = d if encoding.is_number.sum() <= MOST_NUMBERS else 0
        self.product_variance, self.product_with = np.zeros((k, k)), np.zeros((k, k, k))

    def _join(self, known: Ints, mean: Array, covariance: Array) -> None:
        """Take over the known columns' moments, and fit new columns' to them.

        The stored rows tell the new columns given the known ones, so that the whole remains a covariance matrix: with
        moments of two samples side by side, nearly collinear columns could have any regression.
        """
        new = np.setdiff1d(np.arange(len(self.mean)), known)
        of_rows = self.symmetric()
        own = of_rows[np.ix_(known, known)]
        variances = np.diag(own)
        slopes = np.linalg.solve(
            own + np.diag(np.where(variances > 0.0, RIDGE * variances, 1.0)), of_rows[known][:, new]
        )
        left = of_rows[np.ix_(new, new)] - of_rows[new][:, known] @ slopes
        self.mean[new] += (mean - self.mean[known]) @ slopes
        self.mean[known] = mean
        both = np.empty_like(of_rows)
        both[np.ix_(known, known)] = covariance
        both[np.ix_(known, new)] = covariance @ slopes
        both[np.ix_(new, known)] = both[np.ix_(known, new)].T
        both[np.ix_(new, new)] = left + slopes.T @ covariance @ slopes
        self.covariance[:] = np.tril(both)

    def update(self, row: Array, moments: Moments, alpha: float) -> None:
        """Learn an encoded row and its residuals; `moments` are bound to this."""
        moments.add(row[None], max(1.0 / (self.n + 1.0), alpha), alpha)
        self.n += 1

    def symmetric(self) -> Array:
        """Return the covariance with both triangles."""
        lower: Array = np.tril(self.covariance)
        return lower + np.tril(lower, -1).T

    def start(self, rows: Array, before: Learnt | None) -> None:
        """Learn the encoded rows, and take over equal columns from `before`."""
        values = np.empty((len(rows), len(self.mean)))
        Reader(self.columns, self.encoding).read(rows, values)
        learn_all(values, self)
        self.n = len(rows)
        if before is None:
            return
        self.n = before.n
        mine, its = _shared(self, before)
        self.counts[self.counted[mine]] = before.counts[before.counted[its]]
        for pair, columns in zip(self.products, self.of_products, strict=True):
            self.counts[self.counted[columns]] = self.counts[list(pair)].min()
        self._join(np.array(mine, dtype=np.int64), before.mean[its], before.symmetric()[np.ix_(its, its)])
        features = [
            (j, before.encoding.position[name])
            for j, name in enumerate(self.encoding.names)
            if j in set(self.columns.of[mine].tolist())
        ]
        for j, i in features:
            self.spread[:, j] = before.spread[:, i]
            self.spread_with[j, mine] = before.spread_with[i, its]
        if len(features) == len(self.encoding) == len(before.encoding) and len(self.product_variance):
            self.product_variance, self.product_with = before.product_variance, before.product_with

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "n": self.n,
            "encoding": self.encoding.snapshot(),
            "products": [list(pair) for pair in self.products],
            "counts": pack(self.counts),
            "mean": pack(self.mean),
            "covariance": pack_symmetric(self.covariance),
            "spread": pack(self.spread),
            "spread_with": pack(self.spread_with),
            "product_variance": pack(self.product_variance),
            "product_with": pack(self.product_with),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Restore from a snapshot."""
        learnt = cls(Encoding.from_snapshot(snapshot["encoding"]), [(a, b) for a, b in snapshot["products"]])
        learnt.n = snapshot["n"]
        learnt.counts, learnt.mean = unpack(snapshot["counts"]), unpack(snapshot["mean"])
        learnt.covariance = unpack_symmetric(snapshot["covariance"])
        learnt.spread, learnt.spread_with = unpack(snapshot["spread"]), unpack(snapshot["spread_with"])
        learnt.product_variance, learnt.product_with = (
            unpack(snapshot[f"product_{of}"]) for of in ("variance", "with")
        )
        return learnt


def _shared(new: Learnt, old: Learnt) -> tuple[list[int], list[int]]:
    """Return the columns that mean the same in both, by their numbers in each."""
    mine: list[int] = []
    its: list[int] = []
    same = {
        name: old.encoding.position[name]
        for name, feature in zip(new.encoding.names, new.encoding.features, strict=True)
        if name in old.encoding.position and feature.same(old.encoding.features[old.encoding.position[name]])
    }
    for name, i in same.items():
        j = new.encoding.position[name]
        mine += range(new.columns.start[j], new.columns.start[j + 1])
        its += range(old.columns.start[i], old.columns.start[i + 1])
    known = {(old.encoding.names[a], old.encoding.names[b]): k for k, (a, b) in enumerate(old.products)}
    for k, (a, b) in enumerate(new.products):
        pair = new.encoding.names[a], new.encoding.names[b]
        if pair in known and set(pair) <= same.keys():
            mine += new.of_products[k].tolist()
            its += old.of_products[known[pair]].tolist()
    return mine, its
