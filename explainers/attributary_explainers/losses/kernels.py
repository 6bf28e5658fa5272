"""What explainers make of predictions, compiled: losses, and coalitions of a walk.

Each is the arithmetic of a function of this package that takes predictions as dicts or numbers, which is named; the
tests compare the two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import compiled


@compiled
def loss_of(P: Any, r: int, code: int, epsilon: float, column: int, target: float) -> float:
    """`Loss` of row r; `column` is that of the label, -1 where the model does not know it."""
    if code == 1:  # cross_entropy
        p = P[r, column] if column >= 0 else 0.0
        return -math.log(min(max(p, epsilon), 1.0 - epsilon))
    if code == 2:  # brier
        p = P[r, column] if column >= 0 else 0.0
        total = 0.0
        for c in range(P.shape[1]):
            if c != column:
                total += P[r, c] * P[r, c]
        return float((1.0 - p) * (1.0 - p) + total)
    if code == 3:  # absolute
        return abs(target - float(P[r, 0]))
    if code == 4:  # squared
        return (target - float(P[r, 0])) * (target - float(P[r, 0]))
    return float(P[r, 0])  # score


@compiled
def pfi_growth(
    P: Any, start: int, code: int, epsilon: float, column: int, target: float, growth: Any, means: Any
) -> tuple[int, float, float, float]:
    """`IncrementalPFI`: losses of the rows from `start` on less that of row 0, by feature and draw, and their means.

    Returns
    -------
    0, or 1 where a row is no finite prediction, or 2 where a growth cannot be represented; then the loss of row 0, and
    the least and the largest loss.
    """
    k, n = growth.shape
    if not finite_rows(P, start, start + k * n):
        return 1, 0.0, 0.0, 0.0
    own = loss_of(P, 0, code, epsilon, column, target)
    low = high = own
    fine = True
    r = start
    for i in range(k):
        total = 0.0
        for j in range(n):
            loss = loss_of(P, r, code, epsilon, column, target)
            low, high = min(low, loss), max(high, loss)
            growth[i, j] = loss - own
            fine = fine and abs(growth[i, j]) < 1e150
            total += growth[i, j]
            r += 1
        means[i] = total / n
    return (0 if fine else 2), own, low, high


@compiled
def finite_rows(P: Any, start: int, stop: int) -> bool:
    """Whether row 0 and the rows from `start` to `stop` are predictions, and finite."""
    for c in range(P.shape[1]):
        if not math.isfinite(P[0, c]):
            return False
    for r in range(start, stop):
        for c in range(P.shape[1]):
            if not math.isfinite(P[r, c]):
                return False
    return bool(P.shape[1] > 0)


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
    sway: Any,
) -> None:
    """`coalition_losses`: per coalition of n rows its loss, that less the bias, and each draw's sway."""
    C = P.shape[1]
    mean = np.zeros((1, C))
    half = n // 2
    for s in range(plain.shape[0]):
        first = start + s * n
        for c in range(C):
            total = 0.0
            for j in range(n):
                total += P[first + j, c]
            mean[0, c] = total * (1.0 / n)
        plain[s] = loss_of(mean, 0, code, epsilon, column, target)
        bias = 0.0
        for j in range(n):
            sway[s, j] = 0.0
        for c in range(C):
            m = 0.0
            for j in range(n):
                m += P[first + j, c]
            m /= n
            slope = curvature = 0.0
            if code == 1:
                if c != column:
                    continue
                inverse = 1.0 / max(m, epsilon)
                slope, curvature = -inverse, inverse * inverse
            elif code == 2:
                slope, curvature = 2.0 * (m - (1.0 if c == column else 0.0)), 2.0
            elif code == 3:
                slope = float(np.sign(m - target))
            elif code == 4:
                slope, curvature = 2.0 * (m - target), 2.0
            else:
                slope = 1.0
            a = b = spread = 0.0
            for j in range(n):
                distance = P[first + j, c] - m
                sway[s, j] += slope * distance
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
def walked(
    orders: Any,
    marginal_loss: float,
    model_loss: float,
    losses: Any,
    sway: Any,
    increments: Any,
    parts: Any,
) -> None:
    """`sage.walk`: each player's share of the way, and each draw's part in it. `orders` holds players by number."""
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
                    parts[player, j] -= share * sway[coalition, j]
                    parts[following, j] += share * sway[coalition, j]
                coalition += 1
    for i in range(k):
        for j in range(n):
            parts[i, j] += increments[i]
