"""Streams with a known exact importance: few discrete points, all equally likely, so that it can be enumerated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np

Point = tuple[int, ...]
FEATURES = ("a", "b", "c")


@dataclass(frozen=True)
class Case:
    """A model, a loss and a stream of independent observations: a, b, c each 0, 1 or 2 with equal probability."""

    name: str
    loss: str
    predict: Callable[[dict[str, int]], Any]
    targets: Callable[[dict[str, int]], list[tuple[Any, float]]]
    """Targets of a point with their probabilities."""
    points: list[dict[str, int]] = field(
        default_factory=lambda: [dict(zip(FEATURES, point, strict=True)) for point in product(range(3), repeat=3)]
    )

    def draw(self, rng: np.random.Generator) -> tuple[dict[str, int], Any]:
        """One observation."""
        x = self.points[int(rng.integers(len(self.points)))]
        targets = self.targets(x)
        u, total = rng.random(), 0.0
        for y, probability in targets:
            total += probability
            if u < total:
                return x, y
        return x, targets[-1][0]

    def _loss(self, y: Any, prediction: Any) -> float:
        if self.loss == "cross_entropy":
            return -math.log(prediction[y])
        if self.loss == "brier":
            return math.fsum((p - (label == y)) ** 2 for label, p in prediction.items())
        return float((y - prediction) ** 2 if self.loss == "squared" else abs(y - prediction))

    def _mean(self, predictions: list[Any]) -> Any:
        n = len(predictions)
        if isinstance(predictions[0], dict):
            return {label: sum(p[label] for p in predictions) / n for label in predictions[0]}
        return sum(predictions) / n

    def exact(self, explainer: str) -> dict[str, float]:
        """The expected PFI or the SAGE values, by enumeration of all pairs of points or all coalitions."""
        return self._pfi() if explainer == "pfi" else self._sage()

    def _expected_loss(self, x: dict[str, int], prediction: Any) -> float:
        return sum(p * self._loss(y, prediction) for y, p in self.targets(x) if p)

    def _pfi(self) -> dict[str, float]:
        base = [self._expected_loss(x, self.predict(x)) for x in self.points]
        return {
            name: sum(
                self._expected_loss(x, self.predict({**x, name: z})) - b
                for x, b in zip(self.points, base, strict=True)
                for z in range(3)
            )
            / (3 * len(self.points))
            for name in FEATURES
        }

    def _sage(self) -> dict[str, float]:
        exact = dict.fromkeys(FEATURES, 0.0)
        for x in self.points:
            for y, probability in self.targets(x):
                for name, value in self.exact_one(x, y).items():
                    exact[name] += probability * value / len(self.points)
        return exact

    def exact_one(self, x: dict[str, int], y: Any) -> dict[str, float]:
        """The SAGE values of one observation: Shapley values of the exact expectations of every coalition."""
        kept = [frozenset(of_size) for size in range(4) for of_size in combinations(FEATURES, size)]
        losses = {
            names: self._loss(y, self._mean([self.predict({**z, **{f: x[f] for f in names}}) for z in self.points]))
            for names in kept
        }
        return {
            name: sum(
                (losses[names] - losses[names | {name}]) / (3 * math.comb(2, len(names)))
                for names in kept
                if name not in names
            )
            for name in FEATURES
        }


def _small_and_red(x: dict[str, int]) -> float:
    return float(x["a"] == 0 and x["b"] == 0)


def _probabilities(x: dict[str, int]) -> dict[bool, float]:
    p = 0.05 + 0.9 * _small_and_red(x)
    return {True: p, False: 1.0 - p}


def _medium_or_large(x: dict[str, int]) -> dict[bool, float]:
    p = 0.95 if x["a"] else 0.05
    return {True: p, False: 1.0 - p}


def _logistic(slope: float, shift: float) -> Callable[[dict[str, int]], dict[bool, float]]:
    def predict(x: dict[str, int]) -> dict[bool, float]:
        p = 1.0 / (1.0 + math.exp(-(slope * (2 * (x["a"] - 1) + (x["b"] - 1)) + shift)))
        return {True: p, False: 1.0 - p}

    return predict


def _truth_of(predict: Callable[[dict[str, int]], dict[bool, float]]) -> Callable[[dict[str, int]], list[Any]]:
    return lambda x: list(predict(x).items())


def _linear(x: dict[str, int]) -> float:
    return 2.0 * x["a"] + x["b"]


CASES = [
    Case("A.1, squared", "squared", _small_and_red, lambda x: [(_small_and_red(x), 1.0)]),
    Case("A.1 .95/.05, cross-entropy", "cross_entropy", _probabilities, lambda x: [(bool(_small_and_red(x)), 1.0)]),
    Case("A.2 .95/.05, cross-entropy", "cross_entropy", _medium_or_large, lambda x: [(x["a"] > 0, 1.0)]),
    Case("logistic, cross-entropy", "cross_entropy", _logistic(1.0, 0.0), _truth_of(_logistic(1.0, 0.0))),
    Case("logistic, Brier", "brier", _logistic(1.0, 0.0), _truth_of(_logistic(1.0, 0.0))),
    Case("overconfident, cross-entropy", "cross_entropy", _logistic(1.5, 0.8), _truth_of(_logistic(1.0, 0.0))),
    Case("linear, squared", "squared", _linear, lambda x: [(_linear(x) + e, 0.5) for e in (-1.0, 1.0)]),
    Case("linear, off by 2, squared", "squared", _linear, lambda x: [(_linear(x) + 2 + e, 0.5) for e in (-1.0, 1.0)]),
    Case("linear, absolute", "absolute", _linear, lambda x: [(_linear(x) + e, 0.5) for e in (-1.0, 1.0)]),
]
