"""River's transformers in their present state, applied to columns."""

from __future__ import annotations

import math
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import compress
from operator import is_
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from river import compose, feature_selection, preprocessing, stats

from ..core.evaluators.linear import numbers_of, scale
from ..evaluation.evaluator import NotCoveredError, check_instance
from ..evaluation.schema import NUMBERS, Schema
from ..typing import Array

Scaled: TypeAlias = tuple[list[Any], list[Any]]
"""The number to subtract from each column, and the one to divide it by then; 0 stands for a result of 0."""

_MIN, _MAX, _ABS_MAX = stats.Min(), stats.Max(), stats.AbsMax()


def is_plain_standard(scaler: Any) -> bool:
    """Return whether a transformer is a standard scaler without a window."""
    return type(scaler) is preprocessing.StandardScaler and scaler.with_std and scaler.window_size is None


def _standard(scaler: Any, names: tuple[Any, ...]) -> Scaled:
    if scaler.window_size is None:
        # `get` and not `[]`: these are defaultdicts, which would take up the name.
        means = numbers_of(scaler.means, names)
        variances = numbers_of(scaler.vars, names) if scaler.with_std else None
    else:
        means = _values(scaler.means, names, 0.0)
        variances = _values(scaler.vars, names, 0.0) if scaler.with_std else None
    return means, [1.0] * len(names) if variances is None else [v**0.5 for v in variances]


def _min_max(scaler: Any, names: tuple[Any, ...]) -> Scaled:
    if scaler.window_size is None:
        low = [scaler.min.get(name, _MIN).min for name in names]
        return low, [scaler.max.get(name, _MAX).max - least for name, least in zip(names, low, strict=True)]
    low, high = _values(scaler.min, names, None), _values(scaler.max, names, None)
    if None in low or None in high:
        raise NotCoveredError("a feature whose range is not known yet")
    return low, [most - least for least, most in zip(low, high, strict=True)]


def _max_abs(scaler: Any, names: tuple[Any, ...]) -> Scaled:
    zeros = [0.0] * len(names)
    if scaler.window_size is None:
        return zeros, [scaler.abs_max.get(name, _ABS_MAX).abs_max for name in names]
    return zeros, [value or 0.0 for value in _values(scaler.abs_max, names, None)]


def _robust(scaler: Any, names: tuple[Any, ...]) -> Scaled:
    medians = _values(scaler.median, names, None) if scaler.with_centering else [0.0] * len(names)
    widths = _values(scaler.iqr, names, None) if scaler.with_scaling else [1.0] * len(names)
    return [value or 0.0 for value in medians], [value or 0.0 for value in widths]


def _adaptive(scaler: Any, names: tuple[Any, ...]) -> Scaled:
    variances = _values(scaler.vars, names, 0.0)
    return _values(scaler.means, names, 0.0), [v**0.5 if v > 0 else 0.0 for v in variances]


def _values(statistics: Any, names: tuple[Any, ...], unknown: Any) -> list[Any]:
    """Return each name's statistic, or `unknown`, without creating any."""
    return [unknown if (found := statistics.get(name)) is None else found.get() for name in names]


SCALERS: dict[type, Callable[[Any, tuple[Any, ...]], Scaled]] = {
    preprocessing.StandardScaler: _standard,
    preprocessing.MinMaxScaler: _min_max,
    preprocessing.MaxAbsScaler: _max_abs,
    preprocessing.RobustScaler: _robust,
    preprocessing.AdaptiveStandardScaler: _adaptive,
}
"""Reads the state of a scaler for columns of these names, by the type of the scaler."""


class OneHot(NamedTuple):
    """Indicator columns that `OneHotEncoder` makes of a categorical column."""

    encoder: Any
    feature: Any
    values: list[Any]
    """The categories by code."""
    codes: Array
    """Those of the rows."""
    prefix: str = ""
    suffix: str = ""

    def name(self, code: int) -> str | None:
        """Return the name of a category's column; None if it is ignored."""
        value, kept = self.values[code], self.encoder.categories
        return None if kept is not None and value not in kept[self.feature] else self.named(f"{self.feature}_{value}")

    def named(self, name: str) -> str:
        """Return an encoder's column name with later prefixes and suffixes."""
        return f"{self.prefix}{name}{self.suffix}"


class Columns(NamedTuple):
    """Rows as named columns, with facts about the columns."""

    schema: Schema
    """That of the rows before all transformers."""
    names: tuple[Any, ...]
    Z: Array
    """Shape (rows, columns); NaN where a row lacks a feature."""
    sources: tuple[int | None, ...]
    """For each column the one of the schema that it is, by its values; None where they are others."""
    hot: tuple[OneHot, ...] = ()
    lost: frozenset[Any] = frozenset()
    """The names of columns that a scaler makes NaN, whatever their values are."""

    @classmethod
    def of(cls, schema: Schema, X: Array) -> Columns:
        """Return rows as they come."""
        return cls(schema, schema.features, X, _up_to(len(schema)))

    def types_of(self, source: Any) -> frozenset[type]:
        """Return the types that the values of a coded column have had."""
        return frozenset(map(type, self.schema.values(source))) or frozenset((str,))

    @property
    def are_coded(self) -> list[bool]:
        """For each column, whether it has codes of categories."""
        codes = self.schema.codes
        return [source in codes for source in self.sources] if codes else [False] * len(self.sources)

    @property
    def has_codes(self) -> bool:
        """Whether some columns have codes of categories."""
        return bool(self.schema.codes) and not self.schema.codes.keys().isdisjoint(self.sources)

    def kept(self, are_kept: Sequence[bool | None]) -> Columns:
        """Return the columns marked as kept."""
        if all(are_kept):
            return self
        Z = self.Z.take(_places(tuple(are_kept)), axis=1)
        names, sources = tuple(compress(self.names, are_kept)), tuple(compress(self.sources, are_kept))
        return Columns(self.schema, names, Z, sources, self.hot, self.lost)

    def require(self, names: Iterable[Any], what: str) -> None:
        """Refuse rows that lack a feature, of which the model raises."""
        if not self.schema.takes_gaps:
            return
        at = [self.names.index(name) for name in names]
        if np.isnan(self.Z[:, at]).any():
            raise NotCoveredError(f"a row lacks a feature that is {what} by its name")

    def refuse_twins(self) -> None:
        """Refuse columns of which two have the same name."""
        if len(set(self.names)) < len(self.names):
            raise NotCoveredError("two columns have the same name")

    def without_one_hot(self) -> Columns:
        """Return the columns; raise if any comes from a `OneHotEncoder`."""
        if self.hot:
            raise NotCoveredError("one-hot columns are selected")
        return self

    def expanded(self) -> Columns:
        """Return the columns with a column per category of each `OneHotEncoder`.

        These are the categories that the encoders have learnt.

        Raises
        ------
        NotCoveredError
            Which columns a row has depends on its categories.
        """
        names: list[Any] = []
        dropped = set()
        for encoder, column in {id(column.encoder): (column.encoder, column) for column in self.hot}.values():
            if encoder.drop_zeros:
                raise NotCoveredError("a one-hot encoder with drop_zeros before a model that is not linear")
            made = list(encoder._zero_dict)
            if encoder.drop_first:
                if not made:
                    raise NotCoveredError("a one-hot encoder with drop_first knows no category yet")
                made.remove(first := min(made))
                dropped.add((id(encoder), column.named(first)))
            names += map(column.named, made)
        Z = np.zeros((len(self.Z), len(names)))
        place = {name: i for i, name in enumerate(names)}
        for column in self.hot:
            places: dict[float, int] = {}
            for row, code in zip(Z, column.codes.tolist(), strict=True):
                if code != code:
                    continue
                if code not in places:
                    name = column.name(int(code))
                    is_none = name is None or (id(column.encoder), name) in dropped
                    places[code] = -1 if is_none else place.get(name, -2)
                if places[code] == -2:
                    raise NotCoveredError("a category that the one-hot encoder has not learnt")
                if places[code] >= 0:
                    row[places[code]] = 1.0
        whole = np.concatenate((self.Z, Z), axis=1)
        sources = (*self.sources, *[None] * len(names))
        columns = self._replace(names=(*self.names, *names), Z=whole, sources=sources, hot=())
        columns.refuse_twins()
        return columns


@lru_cache
def _up_to(n: int) -> tuple[int, ...]:
    return tuple(range(n))


@lru_cache
def _places(are_kept: tuple[bool | None, ...]) -> Any:
    return np.flatnonzero(np.array(are_kept, dtype=bool))


class Transformers:
    """Applies transformers; each is looked at when it is first met."""

    def __init__(self) -> None:
        self._met: dict[int, Any] = {}
        self._known: dict[int, Any] = {}
        """Of selections by type and of unions: what they were given the last time, and which columns came of it."""

    def apply(self, part: Any, columns: Columns) -> Columns:
        """Apply a transformer to columns; return the result.

        Raises
        ------
        NotCoveredError
            It is of another type, or gets columns that it does not take exactly.
        """
        if self._met.get(id(part)) is not part:
            check_instance(part)
            if len(self._met) > 1000:
                self._met.clear()
                self._known.clear()
            self._met[id(part)] = part
            self._known.pop(id(part), None)
        kind = type(part)
        if kind is compose.SelectType:
            return self._selected_by_type(part, columns)
        if kind is compose.Pipeline:
            for step in steps_of(part):
                columns = self.apply(step, columns)
            return columns
        if kind is compose.TransformerUnion:
            return self._united(part, [self.apply(inner, columns) for inner in part.transformers.values()])
        found = _TRANSFORMERS.get(kind)
        if found is None:
            raise NotCoveredError(f"there is no fast path for the transformer {kind.__name__}")
        return found(part, columns)

    def _selected_by_type(self, select: Any, columns: Columns) -> Columns:
        schema, names, sources = columns.without_one_hot().schema, columns.names, columns.sources
        given = select.types, schema.numbers, [columns.types_of(source) for source in schema.codes]
        known = self._known.get(id(select))
        # Names by identity: 1 and True are equal.
        if known is None or known[0] is not names or known[1] != sources or known[2] != given:
            are_kept = _of_types(select.types, columns)
            kept, places = columns.kept(are_kept), None if all(are_kept) else _places(tuple(are_kept))
            self._known[id(select)] = names, sources, given, places, kept.names, kept.sources
            return kept
        *_, places, kept_names, kept_sources = known
        Z = columns.Z if places is None else columns.Z.take(places, axis=1)
        return Columns(schema, kept_names, Z, kept_sources, (), columns.lost)

    def _united(self, union: Any, parts: list[Columns]) -> Columns:
        one = parts[0]
        if len(parts) == 1:
            return one
        given, before = [part.names for part in parts], [part.sources for part in parts]
        known = self._known.get(id(union))
        if known is not None and known[1] == before and all(map(is_, known[0], given)) and len(known[0]) == len(given):
            *_, names, sources = known
        else:
            names = tuple(name for part in given for name in part)
            sources = tuple(source for part in before for source in part)
            if len(set(names)) == len(names):  # else it is refused below, each time
                self._known[id(union)] = given, before, names, sources
        filled = [part.Z for part in parts if part.names] or [one.Z]
        Z = filled[0] if len(filled) == 1 else np.concatenate(filled, axis=1)
        hot = tuple(column for part in parts for column in part.hot)
        columns = Columns(one.schema, names, Z, sources, hot, one.lost.union(*[part.lost for part in parts]))
        if known is None or names is not known[2]:
            columns.refuse_twins()
        return columns


def _scaled(scaler: Any, columns: Columns) -> Columns:
    if columns.hot or columns.has_codes:
        raise NotCoveredError("a scaler gets categories or one-hot columns")
    names, X, lost = columns.names, columns.Z, columns.lost
    Z = np.empty(X.shape)
    if len(X):
        subtracted, divisors = SCALERS[type(scaler)](scaler, names)
        try:
            unknown = scale(X, subtracted, divisors, Z)
        except ValueError as error:
            raise NotCoveredError(str(error)) from None
        except TypeError:
            raise NotCoveredError("a parameter of the model is no number") from None
        if unknown:
            lost = lost.union([names[j] for j in unknown])
    return Columns(columns.schema, names, Z, (None,) * len(names), (), lost)


def _selected(select: Any, columns: Columns) -> Columns:
    if not select.keys <= set(columns.without_one_hot().names):
        raise NotCoveredError("Select names a feature that is not there")
    columns.require(select.keys, "selected")
    return columns.kept([name in select.keys for name in columns.names])


def _discarded(discard: Any, columns: Columns) -> Columns:
    return columns.without_one_hot().kept([name not in discard.keys for name in columns.names])


def _of_types(types: tuple[type, ...], columns: Columns) -> list[bool | None]:
    """Return for each column whether `SelectType` of these types takes it."""
    if None in columns.sources:
        raise NotCoveredError("SelectType behind a scaler or an ordinal encoder")
    takes_numbers, codes = _takes(columns.schema.numbers, types), columns.schema.codes
    are_kept = [
        _takes(columns.types_of(source), types) if source in codes else takes_numbers for source in columns.sources
    ]
    if None in are_kept:
        raise NotCoveredError("a feature has values of several types, of which SelectType takes some")
    return are_kept


@lru_cache
def _takes(kinds: frozenset[type], types: tuple[type, ...]) -> bool | None:
    """Return whether `SelectType` takes these types; None if only some."""
    if any(type(kind) not in (type, ABCMeta) for kind in types):
        raise NotCoveredError(
            "SelectType of a type that decides by itself what belongs to it, or of a tuple: name types one by one, as "
            "SelectType(int, float) does"
        )
    found = {issubclass(kind, types) for kind in kinds}
    return None if len(found) > 1 else True in found


def _renamed(renamer: Any, columns: Columns) -> Columns:
    names = list(columns.without_one_hot().names)
    for old, new in renamer.mapping.items():
        if old in names and old != new and new in names:
            raise NotCoveredError("a renamed column takes the place of another one")
        names = [new if name == old else name for name in names]
    lost = frozenset(new for name, new in zip(columns.names, names, strict=True) if name in columns.lost)
    return columns._replace(names=tuple(names), lost=lost)


def _affixed(part: Any, columns: Columns, *, before: bool) -> Columns:
    prefix, suffix = (part.prefix, "") if before else ("", part.suffix)
    return columns._replace(
        names=tuple(f"{prefix}{name}{suffix}" for name in columns.names),
        hot=tuple(one._replace(prefix=f"{prefix}{one.prefix}", suffix=f"{one.suffix}{suffix}") for one in columns.hot),
        lost=frozenset(f"{prefix}{name}{suffix}" for name in columns.lost),
    )


def _one_hot(encoder: Any, columns: Columns) -> Columns:
    schema, made = columns.schema, []
    if columns.hot or not all(columns.are_coded):
        raise NotCoveredError("a one-hot encoder gets numbers that have no codes")
    for i, (name, source) in enumerate(zip(columns.names, columns.sources, strict=True)):
        if encoder.categories is not None and name not in encoder.categories:
            raise NotCoveredError("a one-hot encoder has no categories for a feature")
        made.append(OneHot(encoder, name, schema.values(source), columns.Z[:, i]))  # type: ignore[arg-type]
    return Columns(schema, (), columns.Z[:, :0], (), tuple(made), columns.lost)


def _ordinal(encoder: Any, columns: Columns) -> Columns:
    names, given = columns.without_one_hot().names, encoder.categories
    if not all(columns.are_coded):
        raise NotCoveredError("an ordinal encoder gets numbers that have no codes")
    if given is not None and not given.keys() >= set(names):
        raise NotCoveredError("an ordinal encoder has no categories for a feature")
    Z = columns.Z.copy()
    for i, (name, source) in enumerate(zip(names, columns.sources, strict=True)):
        known, values = encoder.values.get(name, {}), columns.schema.values(source)  # type: ignore[arg-type]
        numbers = {
            code: known.get(values[int(code)], encoder.unknown_value) for code in set(Z[:, i].tolist()) if code == code
        }
        if not NUMBERS.issuperset(map(type, numbers.values())):
            raise NotCoveredError("a category without a number")
        Z[:, i] = [numbers.get(code, math.nan) for code in Z[:, i].tolist()]
        if any(number != number for number in numbers.values()):
            raise NotCoveredError("a category without a number")
    return columns._replace(Z=Z, sources=(None,) * len(names))


def _imputed(imputer: Any, columns: Columns) -> Columns:
    # It replaces None, which no encoded row has; of a row that lacks the feature it raises.
    if not imputer.stats.keys() <= set(columns.without_one_hot().names):
        raise NotCoveredError("StatImputer names a feature that is not there")
    columns.require(imputer.stats, "imputed")
    return columns


def _best(part: Any, columns: Columns) -> Columns:
    best = {name for name, _ in part.leaderboard.most_common(part.k)}
    return columns.without_one_hot().kept([not part.leaderboard or name in best for name in columns.names])


def _varying(part: Any, columns: Columns) -> Columns:
    return columns.without_one_hot().kept([part.check_feature(name) for name in columns.names])


_TRANSFORMERS: dict[type, Callable[[Any, Columns], Columns]] = {
    **dict.fromkeys(SCALERS, _scaled),
    preprocessing.StatImputer: _imputed,
    preprocessing.PreviousImputer: lambda _, columns: columns,
    feature_selection.VarianceThreshold: _varying,
    feature_selection.SelectKBest: _best,
    preprocessing.OneHotEncoder: _one_hot,
    preprocessing.OrdinalEncoder: _ordinal,
    compose.Select: _selected,
    compose.Discard: _discarded,
    compose.Renamer: _renamed,
    compose.Prefixer: partial(_affixed, before=True),
    compose.Suffixer: partial(_affixed, before=False),
}


def steps_of(pipeline: Any) -> list[Any]:
    """Return the steps a pipeline takes now, by its execution plan if any."""
    return list(pipeline.steps.values()) if pipeline._plan is None else [item[1] for item in pipeline._plan]


def parts_of(part: Any) -> Iterator[Any]:
    """Yield the transformers and the model that a pipeline is made of."""
    if type(part) is compose.Pipeline:
        for step in steps_of(part):
            yield from parts_of(step)
    elif type(part) is compose.TransformerUnion:
        for inner in part.transformers.values():
            yield from parts_of(inner)
    else:
        yield part


ENCODERS = (preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder)


def encoded(part: Any) -> set[Any]:
    """Return the features that encoders get: seen, to be known, selected."""
    if type(part) in ENCODERS:
        return set(part.values)
    if type(part) is compose.TransformerUnion:
        return {feature for inner in part.transformers.values() for feature in encoded(inner)}
    if type(part) is compose.Pipeline:
        steps = steps_of(part)
        found = {feature for step in steps for feature in encoded(step)}
        if steps and type(steps[0]) is compose.Select and any(type(s) in ENCODERS for s in steps):
            found |= steps[0].keys
        return found
    return set()


def like_a_float(parts: Iterable[Any]) -> frozenset[type]:
    """Return the types of numbers that every `SelectType` treats as floats."""
    kinds = [part.types for part in parts if type(part) is compose.SelectType]
    return frozenset(t for t in NUMBERS if all(issubclass(t, kind) == issubclass(float, kind) for kind in kinds))
