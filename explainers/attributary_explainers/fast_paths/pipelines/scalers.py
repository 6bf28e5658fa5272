"""The live parameters of scalers: what each subtracts from a column, and what it divides the column by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, TypeAlias

from river import preprocessing, stats

from ...evaluation.evaluator import NotCoveredError
from .columns import Number

Scaled: TypeAlias = tuple[list[float], list[float]]
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
            yield READERS[type(it)](it), it, tuple(column.scalers[k][1] for column in found), zeros


def _read_none(_: Any, __: Any, zeros: tuple[float, ...]) -> Scaled:
    return list(zeros), [1.0] * len(zeros)


# `get` and not `[]`: River's scalers are defaultdicts, which would take up the name.
def _read_standard(scaler: Any, names: tuple[Any, ...], zeros: tuple[float, ...]) -> Scaled:
    return [*map(scaler.means.get, names, zeros)], [v**0.5 for v in map(scaler.vars.get, names, zeros)]


def _read_centre(scaler: Any, names: tuple[Any, ...], zeros: tuple[float, ...]) -> Scaled:
    return [*map(scaler.means.get, names, zeros)], [1.0] * len(zeros)


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


def _by_window(whole: Reader, windowed: Reader) -> Callable[[Any], Reader]:
    return lambda scaler: whole if scaler.window_size is None else windowed


READERS: dict[type, Callable[[Any], Reader]] = {
    preprocessing.StandardScaler: lambda scaler: (
        _read_windowed if scaler.window_size is not None else _read_standard if scaler.with_std else _read_centre
    ),
    preprocessing.MinMaxScaler: _by_window(_read_min_max, _read_windowed_range),
    preprocessing.MaxAbsScaler: _by_window(_read_max_abs, _read_windowed_max_abs),
    preprocessing.RobustScaler: lambda _: _read_robust,
    preprocessing.AdaptiveStandardScaler: lambda _: _read_adaptive,
}
"""How the state of a scaler is read, by the type of the scaler."""
