"""Review of learnt statistics: bent dependence and dependent spread."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ...core.shifted.learning import MEAN, VARIANCE
from ...snapshots import pack, unpack
from ...typing import Array, Ints, Snapshot
from .learnt import Learnt

Flags: TypeAlias = npt.NDArray[np.bool_]

BENT, STRONG, SPREAD, PRODUCT = 0.03, 0.15, 0.05, 0.05
"""From which share of a variance on hinges are used, rows are matched, rows are matched for the spread, and a product
is a column.

Half of it is enough for what is in use already. Chance gives columns / n, so that it is at least 25 / n or 40 / n.
"""

MOST_PRODUCTS = 8
"""Pairs of features of which products are columns: each pair has up to five of them."""


class Review(NamedTuple):
    """Flags of bent features, and of pairs for which rows are matched."""

    bent: Flags
    """Shape (features,)."""
    strong: Flags
    """Shape (features, features), symmetric."""

    @property
    def is_matching(self) -> bool:
        """Whether rows are matched for some features."""
        return bool(self.strong.any())

    @classmethod
    def of(cls, n: int) -> Self:
        """Return a review of n features in which nothing is bent."""
        return cls(np.zeros(n, dtype=np.bool_), np.zeros((n, n), dtype=np.bool_))

    def of_features(self, before: Sequence[Any], now: Sequence[Any]) -> Review:
        """Return the review for other features; new features are not bent."""
        position, found = {name: i for i, name in enumerate(before)}, Review.of(len(now))
        both = [(j, position[name]) for j, name in enumerate(now) if name in position]
        new, old = [j for j, _ in both], [i for _, i in both]
        found.bent[new] = self.bent[old]
        found.strong[np.ix_(new, new)] = self.strong[np.ix_(old, old)]
        return found

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"bent": pack(self.bent), "strong": pack(self.strong)}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the review that the snapshot was taken of."""
        return cls(unpack(snapshot["bent"]), unpack(snapshot["strong"]))


def products_told(learnt: Learnt, n: float) -> list[tuple[int, int]]:
    """Return new products, as pairs of features, that predict a third."""
    variance, told = learnt.product_variance, learnt.product_with
    if not len(variance):
        return []
    left = learnt.spread[MEAN]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.nan_to_num(told**2 / (left[:, None, None] * variance), nan=0.0, posinf=0.0)
    for a in range(len(variance)):
        shares[a, a, :] = shares[a, :, a] = 0.0  # a third feature
    best = shares.max(axis=0, initial=0.0)
    pairs = [(int(a), int(b)) for a, b in np.argwhere(best > max(PRODUCT, 40.0 / n))]
    taken = set(map(frozenset, learnt.products))
    new = [pair for pair in pairs if frozenset(pair) not in taken]
    return sorted(new, key=lambda pair: -best[pair])[: max(min(len(variance), MOST_PRODUCTS) - len(learnt.products), 0)]


def review(learnt: Learnt, before: Review, n: float) -> Review:
    """Return the review of the statistics of `n` observations."""
    covariance, start, is_number = learnt.symmetric(), learnt.columns.start, learnt.encoding.is_number
    told, spread = (
        _bends(covariance, start, is_number),
        _spreads(learnt.spread_with, learnt.spread[VARIANCE], covariance, start),
    )
    wide = spread > np.where(before.strong, 0.5, 1.0) * max(SPREAD, 40.0 / n)
    wide |= wide.T
    strong = told > np.where(before.strong, 0.5, 1.0) * max(STRONG, 25.0 / n)
    bent = told.max(axis=1, initial=0.0) > np.maximum(25.0 / n, np.where(before.bent, 0.5, 1.0) * BENT)
    return Review(is_number & (bent | wide.any(axis=1)), strong | strong.T | wide)


def _bends(covariance: Array, start: Ints, is_number: Flags) -> Array:
    """Return how far hinges predict other features beyond the value itself.

    Parameters
    ----------
    covariance
        Shape (columns, columns), symmetric: per number its value and hinges, per category its indicators.

    Returns
    -------
    Shape (features, features): [j, i] is the largest squared partial correlation of a hinge of j with i.
    """
    d, first = len(is_number), start[:-1]
    ends = np.where(is_number, first + 1, start[1:])
    features = np.arange(d).repeat(ends - first)
    targets = np.concatenate([np.arange(a, b) for a, b in zip(first, ends, strict=True)])
    variances, found = np.diag(covariance), np.zeros((d, d))
    for j in np.flatnonzero(is_number & (variances[first] > 0.0)):
        of_value, hinges = covariance[first[j]], np.arange(first[j] + 1, start[j + 1])
        slopes = of_value / of_value[first[j]]
        left = variances - slopes * of_value
        told = (covariance[np.ix_(hinges, targets)] - np.outer(of_value[hinges], slopes[targets])) ** 2
        told /= np.maximum(np.outer(left[hinges], left[targets]), 1e-300)
        told[~(left[hinges] > 1e-4 * variances[hinges])] = 0.0
        told[:, ~(left[targets] > 1e-6 * variances[targets]) | (features == j)] = 0.0
        np.maximum.at(found[j], features, told.max(axis=0, initial=0.0))
    return found


def _spreads(with_columns: Array, variance: Array, covariance: Array, start: Ints) -> Array:
    """Return how much each feature tells of another's squared residuals.

    Parameters
    ----------
    with_columns, variance
        Shapes (features, columns) and (features,): covariance of squared residuals with the columns; their variance.

    Returns
    -------
    Shape (features, features): [j, i] is the share of the variance of i's squared residual that j's columns tell.
    """
    found = np.zeros((len(variance), len(variance)))
    for j, (a, b) in enumerate(pairwise(start[: len(variance) + 1].tolist())):
        own = covariance[a:b, a:b]
        if not np.diag(own).max(initial=0.0) > 0.0:
            continue
        sd = np.sqrt(np.maximum(np.diag(own), 1e-300))
        scaled = with_columns[:, a:b] / sd
        told = np.linalg.solve(own / np.outer(sd, sd) + 1e-2 * np.eye(b - a), scaled.T)
        found[j] = np.where(variance > 0.0, (scaled * told.T).sum(axis=1) / np.maximum(variance, 1e-300), 0.0)
        found[j, j] = 0.0
    return found
