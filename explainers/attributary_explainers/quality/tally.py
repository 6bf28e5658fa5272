"""Metrics of a run of observations, all alike or with weights that grow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from river import metrics, stats

from ..errors import InvalidParameterError, ModelError
from ..snapshots import Stored
from ..typing import Prediction, Snapshot
from .counts import FADED, ClassCounts
from .names import METRICS, reads_of

_LARGEST, _SMALLEST = 1e100, 1e-100
"""Of larger numbers squares may not be finite; of smaller ones quotients."""
_HEAVIEST = 1.0 / FADED
_WEIGHTS: dict[type, tuple[str, ...]] = {
    stats.Mean: ("n",),
    stats.Var: ("_S",),
    metrics.R2: ("_residual_sum_of_squares",),
}
"""Class to its attributes that are sums of weights, or of something by its weight."""
_VALUES: dict[type, tuple[str, ...]] = {stats.Mean: ("_mean",)}
"""Class to its attributes that are not."""


class Tally(Stored):
    """Metrics of a run of observations whose weights grow by `growth`.

    Weights are divided by 2^40 as soon as they are larger: a power of two changes no digit of any value.

    Parameters
    ----------
    names
        Of `QUALITY_NAMES`, all of classes or all of numbers.
    growth
        Valid range >= 1: 1 weighs all observations alike; infinity forgets all but the last.
    positive
        The positive one of two classes; None: the greater one.
    """

    _unstored = ("_running",)

    def __init__(self, names: Sequence[str], growth: float, positive: Any = None) -> None:
        self.names = tuple(names)
        self.growth, self.positive = growth, positive
        reads = [reads_of(name) for name in names]
        self.is_of_numbers = "number" in reads
        if self.is_of_numbers and set(reads) != {"number"}:
            raise InvalidParameterError("metrics", "all of classes or all of numbers", list(names))
        self.begin()

    def begin(self) -> None:
        """Forget everything."""
        self.n = 0
        self._weight = 1.0
        self._running = {
            name: METRICS[name].make() for name in self.names if reads_of(name) in ("number", "probability")
        }
        counted = [name for name in self.names if name not in self._running]
        self._counts = ClassCounts(counted, self.positive) if counted else None

    def update(self, y: Any, prediction: Prediction) -> None:
        """Take in an observation; numbers too large for a mean are left out.

        Raises
        ------
        ModelError
            The prediction is no dict of probabilities for metrics of classes, or the prediction or the target is no
            number for metrics of numbers.
        """
        read: tuple[Any, Any] | None
        if self.is_of_numbers:
            read = _numbers(y, prediction)
            if read is None:
                return
        elif not isinstance(prediction, dict):
            raise ModelError(f"metrics of classes need a dict of label to probability, got {prediction!r}")
        else:
            # A class that the model does not name has the probability 0, and not no loss, as River would say.
            read = y, {y: prediction.get(y, 0.0)}
        weight = self._weight * self.growth
        if weight > _HEAVIEST:
            weight = self._scaled(weight)
        self._weight = weight
        self.n += 1
        for metric in self._running.values():
            metric.update(*read, weight)
        if self._counts is not None:
            assert isinstance(prediction, dict)
            self._counts.update(y, prediction, weight)

    def _scaled(self, weight: float) -> float:
        if math.isinf(weight):
            self.begin()
            return 1.0
        while weight > _HEAVIEST:
            weight /= _HEAVIEST
            for metric in self._running.values():
                _scale(metric, FADED)
            if self._counts is not None:
                self._counts.scale(FADED)
        return weight

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {**super().snapshot(), "_running": {name: _dump(metric) for name, metric in self._running.items()}}

    def _complete(self) -> None:
        stored: Any = self._running
        self._running = {name: METRICS[name].make() for name in stored}
        for name, metric in self._running.items():
            _load(metric, stored[name])

    @property
    def value(self) -> dict[str, float | None]:
        """Metric by name; None while empty, undefined or not finite."""
        if self.n == 0:
            return dict.fromkeys(self.names)
        found: dict[str, float | None] = {} if self._counts is None else self._counts.value(self._weight)
        found.update({name: metric.get() for name, metric in self._running.items()})
        if self.n == 1 and "r2" in found:
            found["r2"] = None
        return {name: _finite(found[name]) for name in self.names}


def _numbers(y: Any, prediction: Any) -> tuple[float, float] | None:
    try:
        target, number = float(y), float(prediction)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"metrics of numbers need numbers, got {y!r} and {prediction!r}") from None
    if not (abs(target) < _LARGEST and abs(number) < _LARGEST):
        return None
    return (target if abs(target) > _SMALLEST else 0.0), number


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _scale(metric: Any, factor: float) -> None:
    """Multiply a metric's weights; powers of two keep its value to the bit."""
    for part in _parts(metric):
        for name in _WEIGHTS.get(type(part), ()):
            setattr(part, name, getattr(part, name) * factor)


def _dump(metric: Any) -> list[float]:
    """Return the state of a metric."""
    return [float(getattr(part, name)) for part in _parts(metric) for name in _names(part)]


def _load(metric: Any, state: list[float]) -> None:
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
