"""Encodes observations for the sampler: numbers, and numbers of levels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self

import numpy as np

from ..missing import is_missing
from ..ordering import sort_key
from ..typing import Array, Features, Snapshot

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
