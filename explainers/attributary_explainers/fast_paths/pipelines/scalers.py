"""The live parameters of scalers: what each subtracts from a column, and what it divides the column by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from river import preprocessing, stats

from ...evaluation.evaluator import NotCoveredError
from .columns import Number
from .names import Names

Scaled: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""The number to subtract from each column, and the one to divide it by then; 0 stands for a result of 0."""

Reader: TypeAlias = Callable[[Any, Any, Any], Scaled]
"""From a scaler, the names of columns and as many zeros."""

Run: TypeAlias = tuple[Reader, Any, tuple[Any, ...], tuple[float, ...]]


def runs(columns: list[Number], k: int) -> Iterable[Run]:
    """Yield runs of neighbouring columns that have the same k-th scaler."""

    def scaler(column: Number) -> Any:
        return column.scalers[k][0] if k < len(column.scalers) else None

    for _, group in groupby(columns, key=lambda column: id(scaler(column))):
        found = list(group)
        zeros = (0.0,) * len(found)
        it = scaler(found[0])
        if it is None:
            yield _read_none, None, (), zeros
        else:
            names = tuple(column.scalers[k][1] for column in found)
            yield READERS[type(it)](it, names), it, names, zeros


def _read_none(_: Any, __: Any, zeros: tuple[float, ...]) -> Scaled:
    return list(zeros), [1.0] * len(zeros)


def _standard(names: tuple[Any, ...]) -> Reader:
    means, variances, halves = Names(names), Names(names), (0.5,) * len(names)

    def read(scaler: Any, _: Any, __: Any) -> Scaled:
        found = variances.read(scaler.vars)
        if type(sum(found)) is float and min(found) >= 0.0:
            # As `**` to the bit, and faster: this is about floats alone, since numpy's would make the sum numpy's.
            return means.read(scaler.means), [*map(math.pow, found, halves)]
        return means.read(scaler.means), [v**0.5 for v in found]

    return read


def _centre(names: tuple[Any, ...]) -> Reader:
    means, ones = Names(names), (1.0,) * len(names)
    return lambda scaler, _, __: (means.read(scaler.means), ones)


_MIN, _MAX, _ABS_MAX = stats.Min(), stats.Max(), stats.AbsMax()


def _read_min_max(scaler: Any, names: tuple[Any, ...], _: Any) -> Scaled:
    low = [scaler.min.get(name, _MIN).min for name in names]
    return low, [scaler.max.get(name, _MAX).max - least for name, least in zip(names, low, strict=True)]


def _read_max_abs(scaler: Any, names: tuple[Any, ...], zeros: tuple[float, ...]) -> Scaled:
    return list(zeros), [scaler.abs_max.get(name, _ABS_MAX).abs_max for name in names]


def _read_windowed(scaler: Any, names: tuple[Any, ...], zeros: tuple[float, ...]) -> Scaled:
    means = _values(scaler.means, names, 0.0)
    return means, [v**0.5 for v in _values(scaler.vars, names, 0.0)] if scaler.with_std else [1.0] * len(zeros)


def _read_windowed_range(scaler: Any, names: tuple[Any, ...], _: Any) -> Scaled:
    low, high = _values(scaler.min, names, None), _values(scaler.max, names, None)
    if None in low or None in high:
        raise NotCoveredError("a feature whose range is not known yet")
    return low, [most - least for least, most in zip(low, high, strict=True)]


def _read_windowed_max_abs(scaler: Any, names: tuple[Any, ...], zeros: tuple[float, ...]) -> Scaled:
    return list(zeros), [value or 0.0 for value in _values(scaler.abs_max, names, None)]


def _read_robust(scaler: Any, names: tuple[Any, ...], zeros: tuple[float, ...]) -> Scaled:
    medians = _values(scaler.median, names, None) if scaler.with_centering else zeros
    widths = _values(scaler.iqr, names, None) if scaler.with_scaling else [1.0] * len(zeros)
    return [value or 0.0 for value in medians], [value or 0.0 for value in widths]


def _read_adaptive(scaler: Any, names: tuple[Any, ...], _: Any) -> Scaled:
    variances = _values(scaler.vars, names, 0.0)
    return _values(scaler.means, names, 0.0), [v**0.5 if v > 0 else 0.0 for v in variances]


def _values(statistics: Any, names: tuple[Any, ...], unknown: Any) -> list[Any]:
    """Return the value of each name's statistic, without making one for a name that has none."""
    return [unknown if (found := statistics.get(name)) is None else found.get() for name in names]


def _by_window(whole: Reader, windowed: Reader) -> Callable[[Any, tuple[Any, ...]], Reader]:
    return lambda scaler, _: whole if scaler.window_size is None else windowed


def _of_standard(scaler: Any, names: tuple[Any, ...]) -> Reader:
    if scaler.window_size is not None:
        return _read_windowed
    return (_standard if scaler.with_std else _centre)(names)


READERS: dict[type, Callable[[Any, tuple[Any, ...]], Reader]] = {
    preprocessing.StandardScaler: _of_standard,
    preprocessing.MinMaxScaler: _by_window(_read_min_max, _read_windowed_range),
    preprocessing.MaxAbsScaler: _by_window(_read_max_abs, _read_windowed_max_abs),
    preprocessing.RobustScaler: lambda _, __: _read_robust,
    preprocessing.AdaptiveStandardScaler: lambda _, __: _read_adaptive,
}
"""Gives what reads the state of a scaler for these names, by the type of the scaler."""
