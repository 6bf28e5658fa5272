"""iPFI and iSAGE written out slowly from METHODS sections 2 to 4, on the same draws as the explainers make.

Per observation the explainer's generator is asked, in this order: iPFI for (players x draws) slots of the reservoir;
iSAGE for a permutation of the players, then for m slots; then the reservoir for the slot that is replaced, once full.
Every mean is a direct weighted sum over the whole past, and no state but the past is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.explainers.oracles import smoothing_weights

Row = dict[Any, Any]


class NaiveReservoir:
    """Section 2, as a list."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind, self.size, self.rows, self.n_seen = kind, size, [], 0

    def update(self, x: Row, rng: np.random.Generator) -> None:
        self.n_seen += 1
        if len(self.rows) < self.size:
            self.rows.append(dict(x))
        elif self.kind == "geometric":
            self.rows[rng.integers(self.size)] = dict(x)
        elif (slot := rng.integers(self.n_seen)) < self.size:
            self.rows[slot] = dict(x)


class Naive:
    """The history of increments of either method, and the sums that METHODS defines on it."""

    def __init__(
        self,
        predict: Callable[[Row], Any],
        loss: Callable[[Any, Any], float],
        *,
        alpha: float,
        n_samples: int,
        kind: str,
        size: int,
        seed: int,
    ) -> None:
        self.predict, self.loss, self.alpha, self.m = predict, loss, alpha, n_samples
        self.reservoir = NaiveReservoir(kind, size)
        self.rng = np.random.default_rng(seed)
        self.increments: list[dict[Any, float]] = []
        self.predictions: list[Any] = []
        self.marginal_losses: list[float] = []
        self.model_losses: list[float] = []

    def pfi_step(self, x: Row, y: Any) -> None:
        """Definition 4 with one draw at a time."""
        if self.reservoir.rows and self.predict(x) is not None:
            slots = self.rng.integers(len(self.reservoir.rows), size=(len(x), self.m))
            increments = {}
            for j, feature in enumerate(x):
                growth = []
                for slot in slots[j]:
                    replaced = {**x, feature: self.reservoir.rows[slot][feature]}
                    growth.append(self.loss(y, self.predict(replaced)) - self.loss(y, self.predict(x)))
                increments[feature] = float(np.mean(growth))
            self.increments.append(increments)
        self.reservoir.update(x, self.rng)

    def sage_step(self, x: Row, y: Any) -> None:
        """Algorithm 1: walk one permutation, every coalition evaluated on its own."""
        if self.reservoir.rows and self.predict(x) is not None:
            names = list(x)
            order = [names[i] for i in self.rng.permutation(len(names))]
            drawn = [self.reservoir.rows[i] for i in self.rng.integers(len(self.reservoir.rows), size=self.m)]
            self.predictions.append(self.predict(x))

            def coalition_loss(kept: list[Any]) -> float:
                if not kept:
                    weights = smoothing_weights(self.alpha, len(self.predictions))
                    return self.loss(y, weighted(self.predictions, weights))
                if len(kept) == len(names):
                    return self.loss(y, self.predict(x))
                mixed = [{f: (x if f in kept else z)[f] for f in names} for z in drawn]
                return self.loss(y, weighted([self.predict(row) for row in mixed], np.full(self.m, 1.0 / self.m)))

            self.increments.append(
                {f: coalition_loss(order[:k]) - coalition_loss(order[: k + 1]) for k, f in enumerate(order)}
            )
            self.marginal_losses.append(coalition_loss([]))
            self.model_losses.append(coalition_loss(names))
        self.reservoir.update(x, self.rng)

    def raw(self) -> dict[Any, float]:
        """phi_t = sum of alpha (1 - alpha)^(t - i) increment_i: the recursion from 0, written out."""
        n = len(self.increments)
        names = dict.fromkeys(name for step in self.increments for name in step)
        return {
            name: sum(
                self.alpha * (1 - self.alpha) ** (n - 1 - i) * step.get(name, 0.0)
                for i, step in enumerate(self.increments)
            )
            for name in names
        }

    def corrected(self) -> dict[Any, float]:
        return {name: value / (1 - (1 - self.alpha) ** len(self.increments)) for name, value in self.raw().items()}

    def smoothed(self, losses: list[float]) -> float:
        return float(np.dot(smoothing_weights(self.alpha, len(losses)), losses))


def weighted(predictions: list[Any], weights: np.ndarray) -> Any:
    """Weighted mean of numbers, or of probabilities class by class."""
    if isinstance(predictions[0], dict):
        classes = dict.fromkeys(c for p in predictions for c in p)
        return {c: sum(w * p.get(c, 0.0) for w, p in zip(weights, predictions, strict=True)) for c in classes}
    return sum(w * p for w, p in zip(weights, predictions, strict=True))
