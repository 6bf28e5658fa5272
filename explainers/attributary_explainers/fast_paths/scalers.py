"""Live parameters of scalers: each column's subtrahend and divisor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from river import preprocessing, stats

from ..core.evaluators.linear import numbers_of
from ..evaluation.evaluator import NotCoveredError

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
