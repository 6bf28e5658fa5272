"""Scales the weights of River's running metrics, and saves their state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from river import metrics, stats

_WEIGHTS: dict[type, tuple[str, ...]] = {
    stats.Mean: ("n",),
    stats.Var: ("_S",),
    metrics.R2: ("_residual_sum_of_squares",),
}
"""Class to its attributes that are sums of weights, or of something by its weight."""
_VALUES: dict[type, tuple[str, ...]] = {stats.Mean: ("_mean",)}
"""Class to its attributes that are not."""


def scale(metric: Any, factor: float) -> None:
    """Multiply a metric's weights; powers of two keep its value to the bit."""
    for part in _parts(metric):
        for name in _WEIGHTS.get(type(part), ()):
            setattr(part, name, getattr(part, name) * factor)


def dump(metric: Any) -> list[float]:
    """Return the state of a metric."""
    return [float(getattr(part, name)) for part in _parts(metric) for name in _names(part)]


def load(metric: Any, state: list[float]) -> None:
    """Give a new metric the state that `dump` gave."""
    fields = [(part, name) for part in _parts(metric) for name in _names(part)]
    for (part, name), value in zip(fields, state, strict=True):
        setattr(part, name, value)


def _names(part: Any) -> tuple[str, ...]:
    return _WEIGHTS.get(type(part), ()) + _VALUES.get(type(part), ())


def _parts(metric: Any) -> Iterator[Any]:
    yield metric
    for value in vars(metric).values():
        if isinstance(value, (stats.Mean, stats.Var)):
            yield from _parts(value)
