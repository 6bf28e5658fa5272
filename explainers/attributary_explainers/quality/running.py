"""River's metrics that take each observation: how their weights are scaled, and their state kept as plain data."""

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
    """Multiply the weights of all that a metric has seen; by a power of two, its value is the same to the bit."""
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
