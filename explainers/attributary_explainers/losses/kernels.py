"""The arithmetic of losses, compiled: each formula once, and losses of many predictions.

A formula is called by the kernels here and, as plain Python, by the functions of `losses.losses` for one prediction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import compiled

OF_THE_USER, CROSS_ENTROPY, BRIER, ABSOLUTE, SQUARED, SCORE = range(6)
"""The losses that the kernels know, and 0 for one that is a function of the user's."""


@compiled
def cross_entropy(p: float, epsilon: float) -> float:
    """Return the loss of the probability `p` of the label that came, in nats."""
    return -math.log(min(max(p, epsilon), 1.0 - epsilon))


@compiled
def brier(p: float, squares_of_others: float) -> float:
    """Return the sum over classes of squared differences; `p` is the probability of the label that came."""
    return float((1.0 - p) * (1.0 - p) + squares_of_others)


@compiled
def absolute(prediction: float, target: float) -> float:
    """Return the absolute error."""
    return abs(target - prediction)


@compiled
def squared(prediction: float, target: float) -> float:
    """Return the squared error."""
    difference = target - prediction
    return difference * difference  # infinite where ** would raise OverflowError: a diverging model is no exception


@compiled
def loss_of(P: Any, r: int, code: int, epsilon: float, column: int, target: float) -> float:
    """Return the loss of the prediction in row r; `column` is that of the label, -1 where no prediction names it."""
    if code == CROSS_ENTROPY:
        return cross_entropy(P[r, column] if column >= 0 else 0.0, epsilon)
    if code == BRIER:
        total = 0.0
        for c in range(P.shape[1]):
            if c != column:
                total += P[r, c] * P[r, c]
        return brier(P[r, column] if column >= 0 else 0.0, total)
    if code == ABSOLUTE:
        return absolute(float(P[r, 0]), target)
    if code == SQUARED:
        return squared(float(P[r, 0]), target)
    return float(P[r, 0])  # SCORE


@compiled
def slope_of(p: float, code: int, epsilon: float, is_label: bool, target: float) -> float:
    """Return the derivative of the loss in one component of a prediction, at its value `p`."""
    if code == CROSS_ENTROPY:
        return -1.0 / max(p, epsilon) if is_label else 0.0
    if code == BRIER:
        return 2.0 * (p - (1.0 if is_label else 0.0))
    if code == ABSOLUTE:
        return float(np.sign(p - target))
    if code == SQUARED:
        return 2.0 * (p - target)
    return 1.0  # SCORE


@compiled
def are_finite(P: Any, start: int, stop: int) -> bool:
    """Return whether row 0 and the rows from `start` to `stop` are predictions, and finite."""
    for c in range(P.shape[1]):
        if not math.isfinite(P[0, c]):
            return False
    for r in range(start, stop):
        for c in range(P.shape[1]):
            if not math.isfinite(P[r, c]):
                return False
    return bool(P.shape[1] > 0)


@compiled
def losses_at(P: Any, which: Any, code: int, epsilon: float, columns: Any, targets: Any, losses: Any) -> int:
    """Write the loss of each row's prediction to `losses`; row r is of observation which[r].

    A loss of the user stands for the share of wrong labels. Returns -1, or the first row whose loss is not finite.
    """
    for r in range(len(P)):
        i = which[r]
        if code == OF_THE_USER:
            losses[r] = 1.0 - P[r, columns[i]] if columns[i] >= 0 else 1.0
        else:
            losses[r] = loss_of(P, r, code, epsilon, columns[i], targets[i])
        if not math.isfinite(losses[r]):
            return r
    return -1
