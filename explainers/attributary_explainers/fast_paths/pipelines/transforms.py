"""The transformers of a pipeline as a plan: every column that they give, and the one that it comes from."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from river import preprocessing

from ...compiled import compiled
from ...evaluation.evaluator import NotCoveredError
from ...evaluation.schema import NUMBERS, Schema
from ...ordering import sort_key
from ...typing import Array, Ints
from .columns import Columns, Number, OneHot, transformed
from .one_hot import OneHotColumns
from .ordinal import OrdinalColumns
from .scalers import runs


class Parameters:
    """An array of floats that is filled anew at each call: faster than numpy from a list."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.array: Array = np.zeros(size)
        self._bytes = self.array.data.cast("B") if size else memoryview(bytearray())
        self._pack = struct.Struct(f"{size}d").pack_into

    def fill(self, values: Sequence[Any]) -> None:
        """Set all entries.

        Raises
        ------
        NotCoveredError
            A value is no number: a variance below 0, whose root is complex.
        """
        try:
            self._pack(self._bytes, 0, *values)
        except (struct.error, OverflowError):
            raise NotCoveredError("a parameter of the model is no number") from None


class Plan:
    """Columns that transformers make of the rows of a schema, and the live parameters of scalers.

    Parameters
    ----------
    schema
        The schema of the rows that are transformed.
    transformers
        The transformers of a pipeline, in their order; none gives the columns of the schema.

    Raises
    ------
    NotCoveredError
        A transformer is of another type, or gets columns that it does not take exactly.
    """

    def __init__(self, schema: Schema, transformers: Iterable[Any] = ()) -> None:
        columns: Columns = [Number(name, i) for i, name in enumerate(schema.features)]
        for transformer in transformers:
            columns = transformed(transformer, columns, schema)
        self.schema = schema
        self.numbers = sorted((c for c in columns if isinstance(c, Number)), key=lambda c: sort_key(c.name))
        self.one_hot = [c for c in columns if isinstance(c, OneHot)]
        if len({column.name for column in self.numbers}) < len(self.numbers):
            raise NotCoveredError("two columns have the same name")
        self.has_codes = any(column.is_coded(schema) for column in self.numbers)
        encoded = [column for column in self.numbers if column.encoder is not None]
        behind = {id(column): len(schema) + q for q, column in enumerate(encoded)}
        self.source = np.array([behind.get(id(column), column.source) for column in self.numbers], dtype=np.int64)
        self._ordinal = OrdinalColumns(encoded, schema) if encoded else None
        self.depth = max((len(column.scalers) for column in self.numbers), default=0)
        self._runs = [list(runs(self.numbers, k)) for k in range(self.depth)]
        self._only_run = self._runs[0][0] if self.depth == 1 and len(self._runs[0]) == 1 else None
        self._same = not self.depth and self.source.tolist() == list(range(len(schema)))
        self._parameters = Parameters(2 * self.depth * len(self.numbers))
        self._Z = np.empty((0, len(self.numbers)))
        self._expanded: OneHotColumns | None = None
        required = {column.source for column in columns if column.is_required} if schema.takes_gaps else ()
        self._required: Ints = np.array(sorted(required), dtype=np.int64)
        self.checks = bool(required) or self._ordinal is not None
        """Whether `checked` does anything."""

    @property
    def only_standard_scaler(self) -> Any:
        """The scaler of all columns, where it divides by a standard deviation and the columns are nothing else."""
        if self.one_hot or self.checks or self._only_run is None:
            return None
        _, scaler, names, _ = self._only_run
        is_standard = type(scaler) is preprocessing.StandardScaler and scaler.with_std and scaler.window_size is None
        return scaler if is_standard and names == tuple(column.name for column in self.numbers) else None

    @property
    def has_numbers_alone(self) -> bool:
        """Whether the columns are numbers as they come, without a scaler or an encoder."""
        return not self.depth and not self.one_hot and not self.checks

    def parameters(self) -> list[float]:
        """Return what each scaler subtracts from each column, scaler by scaler; then all divisors."""
        if self._only_run is not None:  # as nearly always
            read, scaler, names, defaults = self._only_run
            of_scaler = read(scaler, names, defaults)
            return [*of_scaler[0], *of_scaler[1]]
        subtracted: list[float] = []
        divisors: list[float] = []
        for of_depth in self._runs:
            for read, scaler, names, defaults in of_depth:
                one, other = read(scaler, names, defaults)
                subtracted += one
                divisors += other
        return subtracted + divisors

    def inner_schema(self) -> Schema:
        """Return the schema of the transformed rows, in which categories keep their codes.

        It holds as long as the plan is not stale.

        Raises
        ------
        NotCoveredError
            There is no column, or which ones there are depends on the row.
        """
        names = [column.name for column in self.numbers]
        if self.one_hot:
            self._expanded = OneHotColumns(self.one_hot, self.schema)
            names += self._expanded.names
            if len(set(names)) < len(names):
                raise NotCoveredError("two columns have the same name")
        if not names:
            raise NotCoveredError("the transformers leave no column")
        coded = [column for column in self.numbers if column.is_coded(self.schema)]
        # What comes out of a scaler or an encoder has types of its own.
        numbers = NUMBERS if self.depth or self.one_hot or self._ordinal else self.schema.numbers
        schema = self.schema.for_columns(names, [column.name for column in coded], numbers)
        for column in coded:
            schema.share(schema.position[column.name], self.schema, column.source)
        self._places = np.array([schema.position[name] for name in names], dtype=np.int64)
        return schema

    def is_stale(self) -> bool:
        """Return whether the columns have changed since `inner_schema` was called."""
        return self._expanded is not None and self._expanded.is_stale()

    def apply(self, X: Array) -> Array:
        """Return the transformed rows, to the bit as River's transformers give them; overwritten by the next call.

        Raises
        ------
        NotCoveredError
            A row has a category that a one-hot encoder has not learnt, lacks a feature that is selected by its name, or
            has a number of which a scaler makes NaN.
        """
        Z = self._scale(self.checked(X))
        if self._expanded is None:
            return Z
        n = len(self.numbers)
        whole = np.empty((len(X), len(self._places)))
        whole[:, self._places[:n]] = Z
        self._expanded.fill(X, self._places[n:], whole)
        return whole

    def checked(self, X: Array) -> Array:
        """Return rows with the columns of ordinal encoders behind their own.

        Raises
        ------
        NotCoveredError
            A row lacks a feature that is selected by its name, so that the model raises; or has a category that an
            encoder gives no number.
        """
        if len(self._required) and _lacks(X, self._required):
            raise NotCoveredError("a row lacks a feature that is selected by its name")
        return X if self._ordinal is None else self._ordinal.behind(X)

    def _scale(self, X: Array) -> Array:
        if self._same:
            return X
        if self.depth:
            self._parameters.fill(self.parameters())
        if len(self._Z) < len(X):
            self._Z = np.empty((len(X), len(self.numbers)))
        Z = self._Z[: len(X)]
        if _transform(X, self.source, self._parameters.array, self.depth, Z):
            raise NotCoveredError("a scaler makes NaN of a number")
        return Z


@compiled
def _transform(X: Array, source: Ints, parameters: Array, depth: int, Z: Array) -> bool:
    """Scale all rows; return whether NaN, which says that a feature is absent, comes of one that is there."""
    n = source.shape[0]
    is_made = False
    for r in range(X.shape[0]):
        for t in range(n):
            z = X[r, source[t]]
            if z == z:
                for k in range(depth):
                    divisor = parameters[(depth + k) * n + t]
                    z = (z - parameters[k * n + t]) / divisor if divisor != 0.0 else 0.0
                is_made |= z != z
            Z[r, t] = z
    return is_made


@compiled
def _lacks(X: Array, columns: Ints) -> bool:
    for r in range(X.shape[0]):
        for j in columns:
            if X[r, j] != X[r, j]:
                return True
    return False
