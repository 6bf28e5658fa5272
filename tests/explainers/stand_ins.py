"""Models that do one thing, picklable, so that what an explainer makes of them can be worked out by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from tests.explainers.oracles import medium_or_large, small_and_red


def fed(explainer: Any, stream: Iterable[tuple[Any, Any]]) -> Any:
    """The explainer, which has explained all of the stream."""
    for x, y in stream:
        explainer.explain_one(x, y)
    return explainer


class Recording:
    """Predicts a constant and keeps a copy of every row that it was asked about."""

    def __init__(self, prediction: Any = 0.0) -> None:
        self.prediction = prediction
        self.rows: list[dict[Any, Any]] = []

    def __call__(self, x: dict[Any, Any]) -> Any:
        self.rows.append(dict(x))
        return self.prediction


class Linear:
    """Weighted sum of the features that it knows; what is absent counts as 0."""

    def __init__(self, weights: dict[Any, float], intercept: float = 0.0) -> None:
        self.weights, self.intercept = weights, intercept

    def __call__(self, x: dict[Any, Any]) -> float:
        return self.intercept + sum(weight * x.get(f, 0.0) for f, weight in self.weights.items())


class HoldingALock:
    """A model that cannot be copied or saved."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, _x: dict[Any, Any]) -> float:
        return 0.0


class Counting:
    """Predicts the number of observations that it has learnt: any copy of it tells when it was taken."""

    def __init__(self) -> None:
        self.n_learnt = 0

    def __call__(self, _x: dict[Any, Any]) -> float:
        return float(self.n_learnt)

    def learn_one(self, _x: dict[Any, Any], _y: Any) -> None:
        self.n_learnt += 1


class SwitchingConcept:
    """The STAGGER concept A.1, and A.2 from the observation on that `switch_at` have been learnt."""

    def __init__(self, switch_at: int) -> None:
        self.switch_at = switch_at
        self.n_learnt = 0

    def __call__(self, x: dict[str, int]) -> int:
        return (small_and_red if self.n_learnt < self.switch_at else medium_or_large)(x)

    def learn_one(self, _x: dict[Any, Any], _y: Any) -> None:
        self.n_learnt += 1


class ScriptedDetector:
    """Raises its alarm with the values of the given numbers, counted from 1, and remembers what it was fed."""

    def __init__(self, alarms: tuple[int, ...] = ()) -> None:
        self.alarms, self.fed = alarms, []

    def update(self, value: float) -> None:
        self.fed.append(value)

    @property
    def drift_detected(self) -> bool:
        return len(self.fed) in self.alarms
