"""PFI over all pairs and SAGE over all coalitions, of any model, by asking it for every row: plain numpy, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np

Array = Any
Predict = Callable[[Array], Array]
"""Rows, an array of objects, to predictions: shape (rows, classes) of probabilities, or (rows,)."""


def losses(loss: str, P: Array, y: Array, classes: Sequence[Any]) -> Array:
    """The loss of each prediction; a label that is no class has probability 0."""
    if loss == "squared":
        return (P - y) ** 2
    if loss == "absolute":
        return np.abs(P - y)
    hit = np.array([[label == c for c in classes] for label in y], dtype=float)
    if loss == "cross_entropy":
        return -np.log(np.clip((hit * P).sum(axis=1), 1e-15, 1.0 - 1e-15))
    if loss == "brier":
        return ((hit - P) ** 2).sum(axis=1) + (hit.sum(axis=1) == 0)
    named = np.array([[c == P[r].argmax() for c in range(len(classes))] for r in range(len(P))], dtype=float)
    return 1.0 - (hit * named).sum(axis=1)


def pfi(predict: Predict, X: Array, y: Array, loss: str, players: Sequence[Sequence[int]], classes: Any = ()) -> Array:
    """Mean growth of the loss over all ordered pairs of different rows, by player."""
    n = len(X)
    base = losses(loss, predict(X), y, classes)
    found = []
    for columns in players:
        rows = np.repeat(X, n, axis=0)
        rows[:, list(columns)] = np.tile(X[:, list(columns)], (n, 1))
        grown = losses(loss, predict(rows), np.repeat(y, n), classes).reshape(n, n) - base[:, None]
        found.append((grown.sum() - np.trace(grown)) / (n * (n - 1)))
    return np.array(found)


def sage(predict: Predict, X: Array, y: Array, loss: str, players: Sequence[Sequence[int]], classes: Any = ()) -> Array:
    """Mean over all orders of the players of the drop in loss with each, by player."""
    n = len(X)
    worth = {}

    def of(kept: frozenset[int]) -> float:
        if kept not in worth:
            rows = np.tile(X, (n, 1))
            columns = [c for p in kept for c in players[p]]
            rows[:, columns] = np.repeat(X[:, columns], n, axis=0)
            P = predict(rows)
            worth[kept] = losses(loss, P.reshape(n, n, *P.shape[1:]).mean(axis=1), y, classes).mean()
        return worth[kept]

    total, orders = np.zeros(len(players)), list(permutations(range(len(players))))
    for order in orders:
        for size, player in enumerate(order):
            total[player] += of(frozenset(order[:size])) - of(frozenset(order[: size + 1]))
    return total / len(orders)
