"""What explainers by removal make of losses, compiled: increments of PFI, losses of coalitions, and SAGE's walk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import compiled
from ..losses.kernels import are_finite, loss_of, slope_and_curvature

DONE, NO_PREDICTION, NOT_FINITE = range(3)
"""What has become of an observation; where it is not done, nothing that was written is of use."""
REASONS = ("", "no_prediction", "not_finite")
"""Why an observation is not explained, by what has become of it."""


@compiled
def growth(losses: Any, largest: float, parts: Any, increments: Any) -> int:
    """Write by how much each draw's loss exceeds the first one, shape (players, draws), and the mean by player.

    A mean of differences, not a difference of means: exactly 0 where no draw changes the prediction.

    Returns
    -------
    NOT_FINITE where a part is as large as `largest`.
    """
    k, n = parts.shape
    fine = True
    r = 1
    for i in range(k):
        total = 0.0
        for j in range(n):
            part = losses[r] - losses[0]
            fine = fine and abs(part) < largest
            parts[i, j] = part
            total += part
            r += 1
        increments[i] = total / n
    return DONE if fine else NOT_FINITE


@compiled
def growth_of_known(
    P: Any,
    start: int,
    code: int,
    epsilon: float,
    column: int,
    target: float,
    largest: float,
    parts: Any,
    increments: Any,
) -> tuple[int, float, float, float]:
    """Write the `growth` of a loss that the kernels know, for the rows from `start` on: one call takes less time.

    Returns
    -------
    What has become of it; the loss of row 0; the least and the largest loss.
    """
    size = parts.size
    if not are_finite(P, start, start + size):
        return NO_PREDICTION, 0.0, 0.0, 0.0
    losses = np.empty(1 + size)
    losses[0] = low = high = loss_of(P, 0, code, epsilon, column, target)
    for i in range(size):
        loss = losses[1 + i] = loss_of(P, start + i, code, epsilon, column, target)
        low, high = min(low, loss), max(high, loss)
    return growth(losses, largest, parts, increments), losses[0], low, high


@compiled
def coalitions(
    P: Any,
    start: int,
    n: int,
    code: int,
    epsilon: float,
    column: int,
    target: float,
    correct: bool,
    variance_of_rows: float,
    most_bias: float,
    plain: Any,
    losses: Any,
    influence: Any,
) -> bool:
    """Write the losses of coalitions of `n` rows each, from `start` on, of a loss that the kernels know.

    Returns
    -------
    False where one of the rows is no finite prediction.
    """
    size, n_columns = len(plain), P.shape[1]
    if not are_finite(P, start, start + size * n):
        return False
    mean = np.empty((1, n_columns))
    slopes, curvatures = np.empty((size, n_columns)), np.empty((size, n_columns))
    for s in range(size):
        for c in range(n_columns):
            total = 0.0
            for j in range(n):
                total += P[start + s * n + j, c]
            mean[0, c] = total * (1.0 / n)
            slopes[s, c], curvatures[s, c] = slope_and_curvature(total / n, code, epsilon, c == column, target)
        plain[s] = loss_of(mean, 0, code, epsilon, column, target)
    corrected(P, start, n, slopes, curvatures, correct, variance_of_rows, most_bias, plain, losses, influence)
    return True


@compiled
def corrected(
    P: Any,
    start: int,
    n: int,
    slopes: Any,
    curvatures: Any,
    correct: bool,
    variance_of_rows: float,
    most_bias: float,
    plain: Any,
    losses: Any,
    influence: Any,
) -> None:
    """Write the losses of coalitions less their bias, and each draw's influence on them.

    `slopes` and `curvatures` are those of the loss at the mean prediction, shape (coalitions, columns of P). Where they
    are not known `influence` has no column, and the losses are left as they are.
    """
    half = n // 2
    for s in range(len(plain)):
        losses[s] = plain[s]
        if influence.shape[1] == 0:
            continue
        first = start + s * n
        bias = 0.0
        for j in range(n):
            influence[s, j] = 0.0
        for c in range(P.shape[1]):
            slope, curvature = slopes[s, c], curvatures[s, c]
            mean = 0.0
            for j in range(n):
                mean += P[first + j, c]
            mean /= n
            a = b = spread = 0.0
            for j in range(n):
                distance = P[first + j, c] - mean
                influence[s, j] += slope * distance
                spread += distance * distance
                if j < half:
                    a += P[first + j, c]
                elif j < 2 * half:
                    b += P[first + j, c]
            if not correct or curvature == 0.0:
                continue
            apart = (a / half - b / half) ** 2
            spread /= n
            variance = apart / 4.0 if n % 2 == 0 else (half * half * apart + spread) / (n * n - 1)
            if 0.0 < variance_of_rows < 1.0:
                variance += variance_of_rows / (1.0 - variance_of_rows) * (spread + variance)
            bias += 0.5 * curvature * variance
        losses[s] = plain[s] - min(bias, most_bias)


@compiled
def walk(
    orders: Any,
    marginal_loss: float,
    model_loss: float,
    losses: Any,
    influence: Any,
    largest: float,
    increments: Any,
    parts: Any,
) -> int:
    """Write each player's share of the way from the marginal loss to the model's, and each draw's part in it.

    Parameters
    ----------
    orders
        Shape (orders, players): the players by number, as each order walks them.
    losses, influence
        Shapes (coalitions,) and (coalitions, draws): of the coalitions of all orders, one after the other.
    increments, parts
        Shapes (players,) and (players, draws).

    Returns
    -------
    NOT_FINITE where an increment is as large as `largest`.
    """
    n_orders, k = orders.shape
    n = parts.shape[1]
    share = 1.0 / n_orders
    for i in range(k):
        increments[i] = 0.0
        for j in range(n):
            parts[i, j] = 0.0
    coalition = 0
    for o in range(n_orders):
        previous = marginal_loss
        for step in range(k):
            player = orders[o, step]
            last = step == k - 1
            loss = model_loss if last else losses[coalition]
            increments[player] += share * (previous - loss)
            previous = loss
            if not last:
                # The coalition's loss ends this player's step and starts the next one's.
                following = orders[o, step + 1]
                for j in range(n):
                    parts[player, j] -= share * influence[coalition, j]
                    parts[following, j] += share * influence[coalition, j]
                coalition += 1
    fine = True
    for i in range(k):
        fine = fine and abs(increments[i]) < largest
        for j in range(n):
            parts[i, j] += increments[i]
    return DONE if fine else NOT_FINITE


@compiled
def walk_of_known(
    P: Any,
    start: int,
    n: int,
    code: int,
    epsilon: float,
    column: int,
    target: float,
    correct: bool,
    variance_of_rows: float,
    most_bias: float,
    orders: Any,
    marginal_loss: float,
    model_loss: float,
    largest: float,
    increments: Any,
    parts: Any,
) -> tuple[int, float, float]:
    """Write the `walk` through the `coalitions` of a loss that the kernels know: one call takes less time.

    Returns
    -------
    What has become of it; the least and the largest loss.
    """
    size = orders.shape[0] * max(orders.shape[1] - 1, 0)
    low, high = min(marginal_loss, model_loss), max(marginal_loss, model_loss)
    plain, losses, influence = np.empty(size), np.empty(size), np.empty((size, parts.shape[1]))
    correction = (correct, variance_of_rows, most_bias)
    if size > 0 and not coalitions(P, start, n, code, epsilon, column, target, *correction, plain, losses, influence):
        return NO_PREDICTION, low, high
    for loss in plain:
        low, high = min(low, loss), max(high, loss)
    return walk(orders, marginal_loss, model_loss, losses, influence, largest, increments, parts), low, high
