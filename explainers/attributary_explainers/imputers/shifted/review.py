"""Queries of what has been learnt: which dependence is bent, and of which the spread depends on another feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ...compiled import compiled
from ...keeping.arrays import pack, unpack
from ...typing import Snapshot
from .learnt import Learnt
from .spread import MEAN, VARIANCE

Flags: TypeAlias = npt.NDArray[np.bool_]

BENT, STRONG, SPREAD, PRODUCT = 0.03, 0.15, 0.05, 0.05
"""From which share of a variance on hinges are used, rows are matched, rows are matched for the spread, and a product
is a column.

Half of it is enough for what is in use already. Chance gives columns / n, so that it is at least 25 / n or 40 / n.
"""

MOST_PRODUCTS = 8
"""Pairs of features of which products are columns: each pair has up to five of them."""


class Review(NamedTuple):
    """Which features are bent, and which pairs so strongly that rows are matched."""

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
        """Return that nothing is bent, for n features."""
        return cls(np.zeros(n, dtype=np.bool_), np.zeros((n, n), dtype=np.bool_))

    def of_features(self, before: Sequence[Any], now: Sequence[Any]) -> Review:
        """Return the same for other features: what is new is not bent."""
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
    """Return the products, as pairs of features, that tell enough of a third feature and are no columns yet."""
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
    """Return what is bent by what `n` observations say."""
    covariance, start, is_number = learnt.symmetric(), learnt.columns.start, learnt.encoding.is_number
    told, spread = (
        bends(covariance, start, is_number),
        spreads(learnt.spread_with, learnt.spread[VARIANCE], covariance, start),
    )
    wide = spread > np.where(before.strong, 0.5, 1.0) * max(SPREAD, 40.0 / n)
    wide |= wide.T
    strong = told > np.where(before.strong, 0.5, 1.0) * max(STRONG, 25.0 / n)
    bent = told.max(axis=1, initial=0.0) > np.maximum(25.0 / n, np.where(before.bent, 0.5, 1.0) * BENT)
    return Review(is_number & (bent | wide.any(axis=1)), strong | strong.T | wide)


@compiled
def bends(covariance: Any, start: Any, is_number: Any) -> Any:
    """Return how much hinges of one feature say of another's value or levels that its own value does not say.

    Parameters
    ----------
    covariance
        Shape (columns, columns), symmetric: per number its value and hinges, per category its indicators.

    Returns
    -------
    Shape (features, features): [j, i] is the largest squared partial correlation of a hinge of j with i.
    """
    d = len(is_number)
    found = np.zeros((d, d))
    for j in range(d):
        value = start[j]
        if not is_number[j] or not covariance[value, value] > 0.0:
            continue
        of_value = covariance[value]
        for i in range(d):
            if i == j:
                continue
            for target in range(start[i], start[i] + 1 if is_number[i] else start[i + 1]):
                slope, variance = of_value[target] / of_value[value], covariance[target, target]
                left = variance - slope * of_value[target]
                if not left > 1e-6 * variance:
                    continue
                for hinge in range(start[j] + 1, start[j + 1]):
                    own = covariance[hinge, hinge]
                    left_of_hinge = own - of_value[hinge] / of_value[value] * of_value[hinge]
                    if left_of_hinge > 1e-4 * own:
                        both = covariance[hinge, target] - covariance[hinge, value] * slope
                        found[j, i] = max(found[j, i], both * both / max(left_of_hinge * left, 1e-300))
    return found


@compiled
def spreads(with_columns: Any, variance: Any, covariance: Any, start: Any) -> Any:
    """Return how much each feature says of the squared residuals of another one.

    Parameters
    ----------
    with_columns, variance
        Shapes (features, columns) and (features,): covariance of squared residuals with the columns; their variance.

    Returns
    -------
    Shape (features, features): [j, i] is the share of the variance of i's squared residual that j's columns tell.
    """
    d = len(variance)
    found = np.zeros((d, d))
    for j in range(d):
        first, k = start[j], start[j + 1] - start[j]
        sd, most = np.empty(k), 0.0
        for a in range(k):
            own = covariance[first + a, first + a]
            sd[a], most = np.sqrt(max(own, 1e-300)), max(most, own)
        if not most > 0.0:
            continue
        correlation, scaled = np.empty((k, k)), np.empty((k, d))
        for a in range(k):
            for b in range(k):
                correlation[a, b] = covariance[first + a, first + b] / (sd[a] * sd[b])
            correlation[a, a] += 1e-2
            for i in range(d):
                scaled[a, i] = with_columns[i, first + a] / sd[a]
        told = scaled.copy()
        solve(correlation, told)
        for i in range(d):
            if i != j and variance[i] > 0.0:
                total = 0.0
                for a in range(k):
                    total += scaled[a, i] * told[a, i]
                found[j, i] = total / max(variance[i], 1e-300)
    return found


@compiled
def solve(A: Any, b: Any) -> None:
    """Write the solution x of A x = b to b, by elimination with partial pivots; A is used up."""
    n = len(A)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            for j in range(b.shape[1]):
                b[k, j], b[pivot, j] = b[pivot, j], b[k, j]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= factor * A[k, j]
            for j in range(b.shape[1]):
                b[i, j] -= factor * b[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(b.shape[1]):
            for i in range(k + 1, n):
                b[k, j] -= A[k, i] * b[i, j]
            b[k, j] /= A[k, k]
