"""Observations as rows of floats: columns of features, codes of values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..core.rows import Columns
from ..ordering import sort_key
from ..typing import Array, Features

LARGEST_EXACT = 2.0**53
"""Up to here floats tell integers apart: 2**53 + 1 becomes 2**53."""

NUMBERS = frozenset((int, float, bool, np.float64, np.float32, np.int64, np.int32, np.bool_))
"""Types of numbers that rows may have."""

_MOST_CATEGORIES = 50_000
_OTHER_FEATURES = "the rows have different features"
_NO_NUMBER = "a value is no number"
_TOO_LARGE = "a number is too large"


class NotEncodableError(Exception):
    """A row that the schema does not hold exactly: the model itself is asked."""


class TwoTypesError(NotEncodableError):
    """A category such as 1 where True has a code; a new schema may hold it."""


class Schema:
    """Columns and codes of rows that all have the same features.

    The columns are in the order of the features' names, whatever order a row has: what is computed from them must not
    depend on what came before, because a restored process has to give the same bits.

    Parameters
    ----------
    features
        Names of the features, at least one.
    categorical
        Names of the features whose values are coded. A code says nothing but which value it is. All others are numbers.
    numbers
        The types that these may have, of `NUMBERS`: fewer for a model that tells them apart.
    """

    takes_gaps = False
    """Whether rows may lack features: NaN stands for one that is not there."""

    def __init__(
        self, features: Iterable[Any], categorical: Collection[Any] = (), numbers: frozenset[type] = NUMBERS
    ) -> None:
        self.features: tuple[Any, ...] = tuple(sorted(features, key=sort_key))
        self.position: dict[Any, int] = {feature: i for i, feature in enumerate(self.features)}
        self.keys = frozenset(self.features)
        self.categorical = frozenset(categorical)
        self.numbers = numbers
        self.plain = numbers & {float, int, bool}
        """Those of Python: a sum of numpy's integers could wrap round."""
        self.codes: dict[int, dict[Any, float]] = {
            i: {} for i, feature in enumerate(self.features) if feature in self.categorical
        }
        """By column, the code of each value seen so far."""
        self.categories: dict[int, list[Any]] = {column: [] for column in self.codes}
        """By column, those values, in the order of their codes."""
        self.get: Callable[[Features], tuple[Any, ...]] = _getter(self.features)
        """Gives the values of a row that has all features, in the order of the columns."""

    def __len__(self) -> int:
        return len(self.features)

    def encode(self, x: Features) -> Array:
        """Return a row as an array of shape (features,).

        Raises
        ------
        NotEncodableError
            The features are others; a number is NaN, infinite or not exact as a float; a category is no plain value.
        """
        # The same as encode_many((x,))[0], which takes twice as long: this is done at each observation.
        if x.keys() != self.keys:
            alone: Array = self._encode_others((x,))[0]
            return alone
        values: Sequence[Any] = self.get(x)
        if self.codes:
            values = self._coded(values)
        return self.encode_values(values)

    def reader(self) -> Columns:
        """Return a reader of usual observations: plain numbers and known texts."""
        codes = [self.codes.get(column) for column in range(len(self.features))]
        return Columns(self.features, codes, self.numbers)

    def encode_values(self, values: Sequence[Any]) -> Array:
        """Return a row's values in column order, coded: shape (features,).

        Raises
        ------
        NotEncodableError
            As for `encode`.
        """
        try:
            # As nearly always; a sum that is NaN, infinite or large shows that a value may be.
            if self.plain.issuperset(map(type, values)) and sum(map(abs, values)) < LARGEST_EXACT:
                return np.array(values, dtype=np.float64)
            if not self.numbers.issuperset(map(type, values)):
                raise NotEncodableError(_NO_NUMBER)
            numbers = list(map(float, values))  # a sum of numpy's integers could wrap round
        except OverflowError:
            raise NotEncodableError(_TOO_LARGE) from None
        if not sum(map(abs, numbers)) < LARGEST_EXACT:
            self._check_large((values,))
        return np.array(numbers)

    def encode_many(self, rows: Sequence[Features]) -> Array:
        """Return rows as an array of shape (rows, features).

        Raises
        ------
        NotEncodableError
            As for `encode`.
        """
        keys = self.keys
        for row in rows:
            if row.keys() != keys:
                return self._encode_others(rows)
        values: list[Sequence[Any]] = [self.get(row) for row in rows]
        if self.codes:
            values = [self._coded(row) for row in values]
        return self._checked(list(chain.from_iterable(values))).reshape(len(rows), len(self.features))

    def encode_known(self, rows: Sequence[Features]) -> Array:
        """Return stored rows, to take values from, as `encode_many` does.

        Raises
        ------
        NotEncodableError
            As for `encode`.
        """
        return self.encode_many(rows)

    def for_columns(
        self, features: Iterable[Any], categorical: Collection[Any] = (), numbers: frozenset[type] = NUMBERS
    ) -> Schema:
        """Return a schema for columns that are made of these ones."""
        return Schema(features, categorical, numbers)

    def _encode_others(self, rows: Sequence[Features]) -> Array:
        """Encode rows of which some have other features, if that can be."""
        raise NotEncodableError(_OTHER_FEATURES)

    def _checked(self, values: list[Any]) -> Array:
        """Return values as floats, if all are numbers that floats hold exactly."""
        if not self.numbers.issuperset(map(type, values)):
            raise NotEncodableError(_NO_NUMBER)
        try:
            encoded: Array = np.array(values, dtype=np.float64)
        except (OverflowError, ValueError, TypeError):
            raise NotEncodableError(_TOO_LARGE) from None
        # One comparison for all: NaN, infinities and what is not exact come out False.
        if not (np.abs(encoded) < LARGEST_EXACT).all():
            self._check_large((values,))
        return encoded

    def _check_large(self, values: Iterable[Iterable[Any]]) -> None:
        for value in chain.from_iterable(values):
            inexact = isinstance(value, (int, np.integer)) and abs(int(value)) > LARGEST_EXACT
            if inexact or not np.isfinite(value):
                raise NotEncodableError("a number is NaN, infinite, or an integer that is not exact as a float")

    def _coded(self, row: Sequence[Any]) -> list[Any]:
        coded = list(row)
        for column in self.codes:
            coded[column] = self.code(column, row[column])
        return coded

    def code(self, column: int, value: Any) -> float:
        """Return a category's code: 0, 1, … in the order of the first requests.

        Raises
        ------
        NotEncodableError
            The value is no string, integer, boolean or float, is NaN or -0.0, equals a known one of another type (1 and
            True), or there are too many.
        """
        if type(value) is float and value == 0.0 and str(value) != "0.0":
            raise NotEncodableError("a category is -0.0, which equals 0.0 and is written in another way")
        codes = self.codes[column]
        found = codes.get(value) if type(value) in _PLAIN else None
        if found is None:
            return self._new_code(column, value)
        if type(self.categories[column][int(found)]) is not type(value):
            raise TwoTypesError("a category is there in two types")
        return found

    def _new_code(self, column: int, value: Any) -> float:
        if type(value) not in _PLAIN or value != value:
            raise NotEncodableError("a category is no string, number or boolean")
        codes = self.codes[column]
        if len(codes) >= _MOST_CATEGORIES:
            raise NotEncodableError("a feature has too many categories")
        code = codes[value] = float(len(codes))
        self.categories[column].append(value)
        return code

    def values(self, column: int) -> list[Any]:
        """Return the categories of a column, in the order of their codes."""
        return self.categories[column]

    def share(self, column: int, other: Schema, its_column: int) -> None:
        """Share the codes of another schema's column, now and as they grow."""
        self.codes[column] = other.codes[its_column]
        self.categories[column] = other.categories[its_column]

    def decode(self, row: Array, like: Iterable[Any]) -> dict[Any, Any]:
        """Return a row as a dict in the order of `like`, with numbers as floats."""
        found = {}
        for feature in like:
            column = self.position[feature]
            value = row[column]
            found[feature] = self.categories[column][int(value)] if column in self.codes else float(value)
        return found


class GapSchema(Schema):
    """Schema of rows that may lack features, each gap encoded as NaN.

    A value that is NaN itself is refused, as by every schema: it is no absent feature. What an evaluator returns for a
    row does not depend on columns of features that the row lacks.
    """

    takes_gaps = True

    def _encode_others(self, rows: Sequence[Features]) -> Array:
        if len(rows) == 1 and not rows[0]:
            raise NotEncodableError("there is no feature")
        for row in rows:
            if not row.keys() <= self.keys:
                raise NotEncodableError("a row has a feature that the others do not have")
        return self._filled(rows)

    def encode_known(self, rows: Sequence[Features]) -> Array:
        """Return rows as `encode_many` does, less features that have no column."""
        keys = self.keys
        known = [x if x.keys() <= keys else {name: x[name] for name in x if name in keys} for x in rows]
        return self._filled(known)

    def _filled(self, rows: Sequence[Features]) -> Array:
        position, codes, d = self.position, self.codes, len(self)
        X = np.full((len(rows), d), np.nan)
        places: list[int] = []
        values: list[Any] = []
        for start, row in zip(range(0, len(rows) * d, d), rows, strict=True):
            columns = [position[name] for name in row]
            places += [start + column for column in columns]
            if codes:
                pairs = zip(columns, row.values(), strict=True)
                values += [self.code(column, value) if column in codes else value for column, value in pairs]
            else:
                values += row.values()
        X.put(places, self._checked(values))
        return X

    def decode(self, row: Array, like: Iterable[Any]) -> dict[Any, Any]:
        """Return a row as a dict in the order of `like`, without absent features."""
        there = row == row
        return super().decode(row, [feature for feature in like if there[self.position[feature]]])

    def for_columns(
        self, features: Iterable[Any], categorical: Collection[Any] = (), numbers: frozenset[type] = NUMBERS
    ) -> Schema:
        """Return a schema for columns made of these, which may lack numbers too."""
        return GapSchema(features, categorical, numbers)


class Encoded(NamedTuple):
    """An observation as an array."""

    schema: Schema
    row: Array


def categorical_features(x: Features) -> frozenset[Any]:
    """Return the features of an observation whose values are no numbers."""
    return frozenset(feature for feature, value in x.items() if type(value) not in NUMBERS)


def has_plain_values(x: Features) -> bool:
    """Return whether every value of an observation is a number or text."""
    return _NUMBERS_AND_TEXT.issuperset(map(type, x.values()))


_NUMBERS_AND_TEXT = NUMBERS | {str}
_PLAIN = frozenset((str, int, float, bool))


def _getter(features: tuple[Any, ...]) -> Callable[[Features], tuple[Any, ...]]:
    if len(features) == 1:
        (feature,) = features
        return lambda x: (x[feature],)
    getter: Callable[[Features], tuple[Any, ...]] = itemgetter(*features)
    return getter
