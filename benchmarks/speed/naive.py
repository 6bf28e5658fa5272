"""The least that explaining can cost without an evaluation layer: the model is asked row by row, and that is all."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.speed.kinds import Kind
from benchmarks.speed.subjects import Observation


class Naive:
    """Rows with replaced features, as many as explainers need, and the model's prediction for each; no statistics."""

    def __init__(self, predict: Callable[[dict[str, Any]], Any], kind: Kind, stored: Sequence[Observation]) -> None:
        self._predict, self._kind = predict, kind
        self._stored = [x for x, _ in stored]
        self._rng = random.Random(1)
        self.n_rows = 0

    def step(self, x: dict[str, Any], y: Any) -> None:
        """Evaluate the rows of one observation."""
        predict, stored, kind, rng = self._predict, self._stored, self._kind, self._rng
        n = len(stored)
        for _ in range(kind.copies):
            for feature in x:
                for _ in range(kind.pfi):
                    predict({**x, feature: stored[rng.randrange(n)][feature]})
            if kind.sage:
                order = rng.sample(list(x), len(x))
                kept: dict[str, Any] = {}
                for feature in order[:-1]:
                    kept[feature] = x[feature]
                    for _ in range(kind.sage):
                        predict({**stored[rng.randrange(n)], **kept})
            stored[rng.randrange(n)] = x
        self.n_rows += kind.rows(len(x))
