"""The columns that a transformer makes of columns, each with its name and the column that it comes from."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from river import compose, feature_selection, preprocessing

from ...evaluation.evaluator import NotCoveredError
from ...evaluation.schema import NUMBERS, Schema


@dataclass(frozen=True)
class Number:
    """A column that comes from one column of the rows through scalers, or as it is."""

    name: Any
    source: int
    scalers: tuple[tuple[Any, Any], ...] = ()
    """Each scaler with the name that the column has there."""
    is_required: bool = False
    """Whether a row has to have it: it is selected by its name."""
    encoder: tuple[Any, Any] | None = None
    """The ordinal encoder that gives its categories numbers, before any scaler, with the name that it has there."""

    def is_coded(self, schema: Schema) -> bool:
        """Return whether the column has codes of categories, which say nothing but which category it is."""
        return self.source in schema.codes and self.encoder is None


@dataclass(frozen=True)
class OneHot:
    """The columns that a one-hot encoder makes of one column of categories."""

    source: int
    encoder: Any
    feature: Any
    prefix: str = ""
    suffix: str = ""
    is_required: bool = False

    def name(self, value: Any) -> str:
        """Return the name of the column that is 1 for a category."""
        return self.renamed(f"{self.feature}_{value}")

    def renamed(self, name: str) -> str:
        """Return the name of an encoder's column with the prefixes and suffixes of later transformers."""
        return f"{self.prefix}{name}{self.suffix}"


Columns: TypeAlias = list[Number | OneHot]


def transformed(transformer: Any, columns: Columns, schema: Schema) -> Columns:
    """Return the columns that a transformer makes of columns.

    Raises
    ------
    NotCoveredError
        It is of another type, or gets columns that it does not take exactly.
    """
    found = _TRANSFORMERS.get(type(transformer))
    if found is None:
        raise NotCoveredError(f"there is no fast path for the transformer {type(transformer).__name__}")
    return found(transformer, columns, schema)


def _scaled(scaler: Any, columns: Columns, schema: Schema) -> Columns:
    scaled: Columns = []
    for column in columns:
        if isinstance(column, OneHot) or column.is_coded(schema):
            raise NotCoveredError("a scaler gets categories or one-hot columns")
        scaled.append(replace(column, scalers=(*column.scalers, (scaler, column.name))))
    return scaled


def _selected(select: Any, columns: Columns, schema: Schema) -> Columns:
    numbers = _numbers(columns)
    if not select.keys <= {column.name for column in numbers}:
        raise NotCoveredError("Select names a feature that is not there")
    kept = _kept(numbers, [column.name in select.keys for column in numbers], schema)
    return [replace(column, is_required=True) for column in kept]


def _discarded(discard: Any, columns: Columns, schema: Schema) -> Columns:
    numbers = _numbers(columns)
    return list(_kept(numbers, [column.name not in discard.keys for column in numbers], schema))


def _kept(columns: list[Number], are_kept: Iterable[bool], schema: Schema) -> list[Number]:
    """Return those columns that are kept.

    Raises
    ------
    NotCoveredError
        One that is not kept has to be there, and nobody would see that a row lacks it.
    """
    found = []
    for column, is_kept in zip(columns, are_kept, strict=True):
        if is_kept:
            found.append(column)
        elif column.is_required and schema.takes_gaps:
            raise NotCoveredError("a feature is selected by its name and left out by a later step")
    return found


def _numbers(columns: Columns) -> list[Number]:
    if any(isinstance(column, OneHot) for column in columns):
        raise NotCoveredError("one-hot columns are selected")
    return [column for column in columns if isinstance(column, Number)]


def _selected_by_type(select: Any, columns: Columns, schema: Schema) -> Columns:
    numbers = _numbers(columns)
    return list(_kept(numbers, [_is_selected(select, column, schema) for column in numbers], schema))


def _is_selected(select: Any, column: Number, schema: Schema) -> bool:
    if column.scalers or column.encoder:
        raise NotCoveredError("SelectType behind a scaler or an ordinal encoder")
    if any(type(kind) not in (type, ABCMeta) for kind in select.types):
        raise NotCoveredError(
            "SelectType of a type that decides by itself what belongs to it, or of a tuple: name types one by one, as "
            "SelectType(int, float) does"
        )
    decisions = {issubclass(kind, select.types) for kind in types_of(column.source, schema)}
    if len(decisions) > 1:
        raise NotCoveredError("a feature has values of several types, of which SelectType takes some")
    return decisions == {True}


def types_of(source: int, schema: Schema) -> frozenset[type]:
    """Return the types that the values of a column of the rows may have, or have had where it is coded."""
    if source not in schema.codes:
        return schema.numbers
    return frozenset(map(type, schema.values(source))) or frozenset((str,))


def like_a_float(selects: Iterable[Any]) -> frozenset[type]:
    """Return the types of numbers that each `SelectType` takes where it takes a float, and leaves where it does not."""
    kinds = [select.types for select in selects]
    return frozenset(t for t in NUMBERS if all(issubclass(t, kind) == issubclass(float, kind) for kind in kinds))


def _renamed(renamer: Any, columns: Columns, _: Schema) -> Columns:
    numbers = _numbers(columns)
    for old, new in renamer.mapping.items():
        names = {column.name for column in numbers}
        if old in names and old != new and new in names:
            raise NotCoveredError("a renamed column takes the place of another one")
        numbers = [replace(column, name=new) if column.name == old else column for column in numbers]
    return list(numbers)


def _prefixed(prefixer: Any, columns: Columns, _: Schema) -> Columns:
    prefix = prefixer.prefix
    return [
        replace(column, prefix=f"{prefix}{column.prefix}")
        if isinstance(column, OneHot)
        else replace(column, name=f"{prefix}{column.name}")
        for column in columns
    ]


def _suffixed(suffixer: Any, columns: Columns, _: Schema) -> Columns:
    suffix = suffixer.suffix
    return [
        replace(column, suffix=f"{column.suffix}{suffix}")
        if isinstance(column, OneHot)
        else replace(column, name=f"{column.name}{suffix}")
        for column in columns
    ]


def _one_hot(encoder: Any, columns: Columns, schema: Schema) -> Columns:
    made: Columns = []
    for column in columns:
        if isinstance(column, OneHot) or not column.is_coded(schema):
            raise NotCoveredError("a one-hot encoder gets numbers that have no codes")
        if encoder.categories is not None and column.name not in encoder.categories:
            raise NotCoveredError("a one-hot encoder has no categories for a feature")
        made.append(OneHot(column.source, encoder, column.name, is_required=column.is_required))
    return made


def _ordinal(encoder: Any, columns: Columns, schema: Schema) -> Columns:
    numbers = _numbers(columns)
    if not all(column.is_coded(schema) for column in numbers):
        raise NotCoveredError("an ordinal encoder gets numbers that have no codes")
    if encoder.categories is not None and not {column.name for column in numbers} <= encoder.categories.keys():
        raise NotCoveredError("an ordinal encoder has no categories for a feature")
    return [replace(column, encoder=(encoder, column.name)) for column in numbers]


def _imputed(imputer: Any, columns: Columns, _: Schema) -> Columns:
    # It replaces None, which no encoded row has; of a row that lacks the feature it raises.
    names = {column.name for column in _numbers(columns)}
    if not imputer.stats.keys() <= names:
        raise NotCoveredError("StatImputer names a feature that is not there")
    return [replace(column, is_required=True) if column.name in imputer.stats else column for column in columns]


def _chosen(part: Any, columns: Columns, schema: Schema) -> Columns:
    numbers, are_left_out = _numbers(columns), left_out(part)
    return list(_kept(numbers, [not are_left_out(column.name) for column in numbers], schema))


def left_out(part: Any) -> Callable[[Any], bool]:
    """Return which names a transformer that chooses features leaves out now."""
    if type(part) is feature_selection.SelectKBest:
        best = {name for name, _ in part.leaderboard.most_common(part.k)}
        return lambda name: bool(part.leaderboard) and name not in best
    return lambda name: not part.check_feature(name)


def choice(part: Any) -> Any:
    """Return what `left_out` follows from: equal values leave out the same names."""
    if type(part) is feature_selection.SelectKBest:
        return part.leaderboard and {name for name, _ in part.leaderboard.most_common(part.k)}
    return [name for name in part.variances if not part.check_feature(name)]


CHOOSING = frozenset((feature_selection.SelectKBest, feature_selection.VarianceThreshold))
"""Transformers that choose features by what they have learnt."""


def _united(union: Any, columns: Columns, schema: Schema) -> Columns:
    return [column for part in union.transformers.values() for column in transformed(part, columns, schema)]


def _piped(pipeline: Any, columns: Columns, schema: Schema) -> Columns:
    for step in steps_of(pipeline):
        columns = transformed(step, columns, schema)
    return columns


def steps_of(pipeline: Any) -> list[Any]:
    """Return the steps that a pipeline would take now: those of its execution plan where it has one."""
    return list(pipeline.steps.values()) if pipeline._plan is None else [item[1] for item in pipeline._plan]


_TRANSFORMERS: dict[type, Callable[[Any, Columns, Schema], Columns]] = {
    preprocessing.StandardScaler: _scaled,
    preprocessing.MinMaxScaler: _scaled,
    preprocessing.MaxAbsScaler: _scaled,
    preprocessing.RobustScaler: _scaled,
    preprocessing.AdaptiveStandardScaler: _scaled,
    preprocessing.StatImputer: _imputed,
    preprocessing.PreviousImputer: lambda _, columns, __: columns,
    feature_selection.VarianceThreshold: _chosen,
    feature_selection.SelectKBest: _chosen,
    preprocessing.OneHotEncoder: _one_hot,
    preprocessing.OrdinalEncoder: _ordinal,
    compose.Select: _selected,
    compose.SelectType: _selected_by_type,
    compose.Discard: _discarded,
    compose.Renamer: _renamed,
    compose.Prefixer: _prefixed,
    compose.Suffixer: _suffixed,
    compose.TransformerUnion: _united,
    compose.Pipeline: _piped,
}
