"""Metrics of a run of observations, all alike or with weights that grow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidParameterError, ModelError
from ..typing import Prediction, Snapshot
from . import running
from .counts import FADED, ClassCounts
from .names import METRICS, reads_of

_LARGEST, _SMALLEST = 1e100, 1e-100
"""Of larger numbers squares may not be finite; of smaller ones quotients."""
_HEAVIEST = 1.0 / FADED


class Tally:
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
                running.scale(metric, FADED)
            if self._counts is not None:
                self._counts.scale(FADED)
        return weight

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

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "n": self.n,
            "weight": self._weight,
            "running": {name: running.dump(metric) for name, metric in self._running.items()},
            "counts": None if self._counts is None else self._counts.snapshot(),
        }

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` of a tally with the same parameters gave."""
        self.begin()
        self.n, self._weight = state["n"], state["weight"]
        for name, metric in self._running.items():
            running.load(metric, state["running"][name])
        if self._counts is not None:
            self._counts.restore(state["counts"])


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
