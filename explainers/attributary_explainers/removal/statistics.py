"""Statistics of the sampler: encoded rows, columns, moments, a review."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ..core.observational import MEAN, VARIANCE, Moments, Reader, learn_all
from ..missing import is_missing
from ..ordering import sort_key
from ..snapshots import pack, pack_symmetric, unpack, unpack_symmetric
from ..typing import Array, Features, Ints, Snapshot

MOST_FEATURES = 256
"""Further features are not drawn given others: what they tell would cost more than all else."""
LEAST_ROWS = 5
"""So many stored rows have to have a level, for it to have an indicator of its own."""


def is_number(value: Any) -> bool:
    """Return whether a value is a number; a truth value is a category."""
    kind = type(value)
    return kind is float or kind is int or (isinstance(value, Real) and kind.__name__ != "bool")


def number_of(value: Any) -> float:
    """Return a value as a float; NaN if it is not a finite number."""
    try:
        number = float(value) if is_number(value) else math.nan
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


@dataclass(slots=True)
class Feature:
    """Facts about a feature: a number's center and scale, or levels."""

    name: Any
    is_number: bool
    levels: list[Any] = field(default_factory=list)
    """A category's levels by number; those that are rare share one more."""
    has_rare: bool = False
    center: float = 0.0
    scale: float = 1.0
    knots: list[float] = field(default_factory=list)
    """Where a number's hinges are, in units of the scaled value."""
    stored: list[Any] = field(default_factory=list)
    """A number's values, ascending, where all are integers: no other is drawn. A category's rare levels."""

    @property
    def n_levels(self) -> int:
        """The number of levels, 0 for a number."""
        return 0 if self.is_number else len(self.levels) + self.has_rare

    def same(self, other: Feature) -> bool:
        """Return whether columns mean the same as another's."""
        mine, its = ((f.is_number, f.levels, f.has_rare, f.center, f.scale, f.knots) for f in (self, other))
        return mine == its


class Encoding:
    """Encodes observations as floats; NaN is a missing or unseen value.

    A feature is a number where all its stored values are, truth values apart, and a category otherwise.
    """

    def __init__(self, features: Sequence[Feature] = ()) -> None:
        self.features = list(features)
        self.names = tuple(feature.name for feature in features)
        self.position = {name: i for i, name in enumerate(self.names)}
        self.levels = np.array([feature.n_levels for feature in features], dtype=np.int64)
        self.center = np.array([feature.center for feature in features], dtype=np.float64)
        self.scale = np.array([feature.scale for feature in features], dtype=np.float64)
        self.is_number = self.levels == 0
        self.n_frequent = {j: len(feature.levels) for j, feature in enumerate(features) if not feature.is_number}
        """Of each category, by number: how many levels are not rare."""
        self.frequent = np.array([self.n_frequent.get(j, -1) for j in range(len(features))], dtype=np.int64)
        """The same by feature, -1 for a number."""
        self._codes = [_codes(feature) for feature in features]
        stored = [[float(v) for v in feature.stored] if feature.is_number else [] for feature in features]
        self.stored = np.array([value for values in stored for value in values], dtype=np.float64)
        self.stored_at = np.concatenate([[0], np.cumsum([len(values) for values in stored])]).astype(np.int64)
        self._objects: list[dict[float, Any]] = [
            dict(zip(values, feature.stored, strict=False)) for values, feature in zip(stored, features, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, x: Features) -> Array:
        """Return an observation, shape (features,)."""
        return np.array([*map(self.encode_one, range(len(self)), map(x.get, self.names))], dtype=np.float64)

    def encode_all(self, rows: Sequence[Features]) -> Array:
        """Return observations, shape (observations, features)."""
        return np.array([self.encode(row) for row in rows], dtype=np.float64).reshape(len(rows), len(self))

    def encode_one(self, j: int, value: Any) -> float:
        """Return the code of a value of feature j."""
        codes = self._codes[j]
        if codes is None:
            return value if type(value) is float and math.isfinite(value) else number_of(value)
        try:
            code = codes.get((type(value), value))
        except TypeError:  # no hash
            return math.nan
        return math.nan if code is None else code

    def value(self, j: int, code: float, own: float, drawn: Any) -> Any:
        """Return the value that a code stands for.

        `drawn` is the stored value, and `own` its code. A rare level that the stored row does not have stands for all
        rare ones (`RARE`): the caller asks for a row.
        """
        if code == own or math.isnan(code):
            return drawn
        feature = self.features[j]
        if feature.is_number:
            return self._objects[j].get(code, code)
        return feature.levels[int(code)] if code < len(feature.levels) else RARE

    def snapshot(self) -> list[Snapshot]:
        """Return plain data to restore from."""
        return [_copied({name: getattr(feature, name) for name in Feature.__slots__}) for feature in self.features]

    @classmethod
    def from_snapshot(cls, snapshot: Sequence[Snapshot]) -> Self:
        """Return the encoding that the snapshot was taken of."""
        return cls([Feature(**_copied(of)) for of in snapshot])


def _copied(of: Snapshot) -> Snapshot:
    return {name: list(value) if isinstance(value, list) else value for name, value in of.items()}


RARE = object()
"""Stands for one of the rare levels of a category."""


def _codes(feature: Feature) -> dict[Any, float] | None:
    """Return a category's codes by type and value (1 is not True), or None."""
    if feature.is_number:
        return None
    rare = [(value, len(feature.levels)) for value in feature.stored]
    return {
        (type(v), v): float(code) for v, code in [*zip(feature.levels, range(len(feature.levels)), strict=True), *rare]
    }


def encoding_of(rows: Sequence[Features], hinges: int, most_levels: int, now: Encoding) -> Encoding:
    """Return the encoding of stored rows, and keep parts of `now` that fit."""
    least = max(LEAST_ROWS, len(rows) // 20)
    found = _columns(rows)
    names = sorted((name for name, values in found.items() if len(values) >= least), key=sort_key)[:MOST_FEATURES]
    known = {name: now.features[j] for name, j in now.position.items()}
    return Encoding([_feature(name, found[name], hinges, most_levels, known.get(name)) for name in names])


def _columns(rows: Sequence[Features]) -> dict[Any, list[Any]]:
    """Return each feature's values, without the missing ones."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            if not is_missing(value):
                found.setdefault(name, []).append(value)
    return found


def _feature(name: Any, values: Sequence[Any], hinges: int, most_levels: int, known: Feature | None) -> Feature:
    feature = Feature(name, True)
    numbers = list(map(number_of, values))
    array = np.array([number for number in numbers if number == number])
    if not len(array) or not all(map(is_number, values)):
        return _category(name, values, most_levels, known)
    if np.all(array == np.rint(array)):
        stored = {number: value for number, value in zip(numbers, values, strict=True) if number == number}
        feature.stored = [stored[number] for number in sorted(stored)]
    if known is not None and known.is_number and _fits(known, array):
        feature.center, feature.scale, feature.knots = known.center, known.scale, known.knots
        return feature
    feature.center = float(np.median(array))
    low, high = np.quantile(array, [0.1, 0.9])
    scale = float(high / 2.56 - low / 2.56) or float(np.std(array / 4.0)) * 4.0
    feature.scale = scale if math.isfinite(scale) and scale > 1e-300 else 1.0
    at = (
        (np.quantile(array, (np.arange(hinges) + 0.5) / hinges) - feature.center) / feature.scale
        if hinges
        else array[:0]
    )
    ends = (array.min() - feature.center) / feature.scale, (array.max() - feature.center) / feature.scale
    feature.knots = [float(k) for k in np.unique(at) if ends[0] < k < ends[1]]
    return feature


def _fits(known: Feature, values: Array) -> bool:
    """Return whether a number's center, scale and knots still fit its values."""
    z = (values - known.center) / known.scale
    if not known.knots:
        return (
            bool(abs(np.median(z)) < 3.0 and 0.1 < np.ptp(np.quantile(z, [0.1, 0.9])) / 2.56 < 10.0)
            or np.ptp(values) == 0
        )
    share = 0.5 / len(known.knots)
    return bool((z < known.knots[0]).mean() < share + 0.1 and (z > known.knots[-1]).mean() < share + 0.1)


def _category(name: Any, values: Sequence[Any], most_levels: int, known: Feature | None) -> Feature:
    """Return a category that keeps its levels' order and appends new ones."""
    counts = Counter((type(value), value) for value in values if isinstance(value, Hashable))
    by_count = sorted(counts, key=lambda key: (-counts[key], sort_key(key[1]), key[0].__name__))
    order = [] if known is None else [(type(value), value) for value in known.levels]
    # What has an indicator keeps it until it is half as frequent as a level has to be for one.
    frequent = [key for key in by_count if counts[key] >= (LEAST_ROWS // 2 if key in order else LEAST_ROWS)]
    frequent = frequent[: most_levels - 1] or by_count[:1]
    rare = [key[1] for key in by_count if key not in frequent]
    kept = [key for key in order if key in frequent]
    levels = [key[1] for key in (*kept, *(key for key in frequent if key not in kept))]
    return Feature(name, False, levels=levels, has_rare=bool(rare), stored=rare)


VALUE, HINGE, LEVEL, PRODUCT = range(4)
"""Kinds of columns, as `core.observational` has them."""


class Columns(NamedTuple):
    """Which columns there are, as the arrays that the core reads."""

    start: Ints
    """Shape (features + 1,): where the columns of each feature begin. Products follow behind the last one."""
    kind: Ints
    """Shape (columns,), as all that follow: what a column is."""
    of: Ints
    """The feature that a column is of; of a product, that of its first column."""
    number: Array
    """The knot of a hinge, in units of the scaled value; the level of an indicator; the first column of a product."""
    other: Ints
    """The second column of a product."""


def columns_of(knots: list[Array], levels: list[int], products: list[tuple[int, int]]) -> Columns:
    """Return the columns of numbers and categories, and their products.

    A number has its value and a hinge at each knot, a category an indicator for all levels but one.

    Parameters
    ----------
    knots, levels
        By feature: its knots; its number of levels, 0 for a number.
    products
        Pairs of features, whose values, or first indicators, are multiplied; also the value of each with two hinges of
        the other one, so that what one tells may depend on where the other one is.
    """
    kind, of, number, start = [], [], [], [0]
    for j, (own, n) in enumerate(zip(knots, levels, strict=True)):
        numbers = [0.0, *own] if n == 0 else [float(level) for level in range(n - 1)]
        number += numbers
        kind += [VALUE, *[HINGE] * len(own)] if n == 0 else [LEVEL] * len(numbers)
        of += [j] * len(numbers)
        start.append(len(kind))
    other = [0] * len(kind)
    for a, b in products:
        if start[a] < start[a + 1] and start[b] < start[b + 1]:
            factors = [(start[a], start[b])]
            factors += [(hinge, start[b]) for hinge in _inner(start[a], len(knots[a]))]
            factors += [(start[a], hinge) for hinge in _inner(start[b], len(knots[b]))]
            kind += [PRODUCT] * len(factors)
            of += [a] * len(factors)
            number += [float(first) for first, _ in factors]
            other += [second for _, second in factors]
    ints = [np.array(values, dtype=np.int64) for values in (start, kind, of, other)]
    return Columns(ints[0], ints[1], ints[2], np.array(number, dtype=np.float64), ints[3])


def _inner(value: int, n: int) -> list[int]:
    """Return the columns of two inner hinges, a quarter of n from either end."""
    return sorted({value + 1 + n // 4, value + n - n // 4}) if n else []


MOST_NUMBERS = 20
"""With more numbers than this it is not looked for products: there would be too many."""
RIDGE = 0.01
"""As a share of each variance: stored rows do not say more precisely what new columns have to do with known ones."""


class Learnt:
    """Exponential moments of columns and residuals, as `Moments` has them."""

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


Flags: TypeAlias = npt.NDArray[np.bool_]

BENT, STRONG, SPREAD, TOLD_BY_PRODUCT = 0.03, 0.15, 0.05, 0.05
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
    pairs = [(int(a), int(b)) for a, b in np.argwhere(best > max(TOLD_BY_PRODUCT, 40.0 / n))]
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
