"""What explainers by removal make of losses, compiled: increments of PFI, losses of coalitions, and SAGE's walk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import compiled
from ..losses.kernels import are_finite, loss_of, slope_of
from ..smoothing.kernels import smooth

DONE, NO_PREDICTION, NOT_FINITE = range(3)
"""What has become of an observation; where it is not done, nothing that was written is of use."""
REASONS = ("", "no_prediction", "not_finite")
"""Why an observation is not explained, by what has become of it."""


@compiled
def growth(losses: Any, largest: float, increments: Any) -> int:
    """Write by how much the draws' losses exceed the first one, the mean by player: shape (players,).

    A mean of differences, not a difference of means: exactly 0 where no draw changes the prediction.

    Returns
    -------
    NOT_FINITE where a difference is as large as `largest`.
    """
    k = len(increments)
    n = (len(losses) - 1) // max(k, 1)
    fine = True
    r = 1
    for i in range(k):
        total = 0.0
        for _ in range(n):
            difference = losses[r] - losses[0]
            fine = fine and abs(difference) < largest
            total += difference
            r += 1
        increments[i] = total / n
    return DONE if fine else NOT_FINITE


@compiled
def growth_of_known(
    P: Any,
    start: int,
    size: int,
    code: int,
    epsilon: float,
    column: int,
    target: float,
    largest: float,
    increments: Any,
) -> tuple[int, float, float, float]:
    """Write the `growth` of a loss that the kernels know, for `size` rows from `start` on: one call takes less time.

    Returns
    -------
    What has become of it; the loss of row 0; the least and the largest loss.
    """
    if not are_finite(P, start, start + size):
        return NO_PREDICTION, 0.0, 0.0, 0.0
    losses = np.empty(1 + size)
    losses[0] = low = high = loss_of(P, 0, code, epsilon, column, target)
    for i in range(size):
        loss = losses[1 + i] = loss_of(P, start + i, code, epsilon, column, target)
        low, high = min(low, loss), max(high, loss)
    return growth(losses, largest, increments), losses[0], low, high


@compiled
def smooth_growth(
    P: Any,
    start: int,
    size: int,
    code: int,
    epsilon: float,
    column: int,
    target: float,
    largest: float,
    increments: Any,
    alpha: float,
    slower: float,
    rate: float,
    times: int,
    columns: Any,
    n: int,
    weights: Any,
    moments: Any,
) -> tuple[int, float, float, float]:
    """Write the `growth` of a loss that the kernels know, and smooth it: from predictions to importance in one call.

    Returns
    -------
    What `growth_of_known` does. Where it is not done, nothing has been smoothed.
    """
    found = growth_of_known(P, start, size, code, epsilon, column, target, largest, increments)
    if found[0] == DONE:
        smooth(alpha, slower, rate, times, columns, increments, n, weights, moments)
    return found


@compiled
def means_of_coalition(P: Any, first: int, n: int, in_halves: bool, means: Any) -> None:
    """Write the mean prediction of the `n` rows from `first` on, and those of its two halves: shape (3, columns).

    In halves the mean is that of the two halves, whatever their sizes are; else it is that of all rows. A single row is
    its own mean.
    """
    half = n // 2
    for c in range(P.shape[1]):
        a = b = 0.0
        for j in range(half):
            a += P[first + j, c]
        for j in range(half, n):
            b += P[first + j, c]
        if in_halves and half > 0:
            means[1, c], means[2, c] = a * (1.0 / half), b * (1.0 / (n - half))
            means[0, c] = (means[1, c] + means[2, c]) * 0.5
        else:
            means[0, c] = (a + b) * (1.0 / n)


@compiled
def less_bias(plain: float, of_one_half: float, of_other_half: float, most_bias: float) -> float:
    """Return the loss of the mean of two independent halves, less its bias: 2 loss(mean) - (loss(a) + loss(b)) / 2."""
    return plain - min(0.5 * (of_one_half + of_other_half) - plain, most_bias)


@compiled
def loss_of_mean(
    means: Any, std_errors: Any, code: int, epsilon: float, column: int, target: float, most_bias: float
) -> float:
    """Return the loss of a mean prediction, less what its noise adds to it: see `coalitions.loss_beside`."""
    n_columns = len(means)
    rows = np.empty((1, n_columns))
    for c in range(n_columns):
        rows[0, c] = means[c]
    plain = loss_of(rows, 0, code, epsilon, column, target)
    bias = 0.0
    for c in range(n_columns):
        if std_errors[c] > 0.0:
            rows[0, c] = means[c] + std_errors[c]
            above = loss_of(rows, 0, code, epsilon, column, target)
            rows[0, c] = means[c] - std_errors[c]
            below = loss_of(rows, 0, code, epsilon, column, target)
            rows[0, c] = means[c]
            bias += 0.5 * (above + below) - plain
    return plain - min(bias, most_bias)


@compiled
def coalitions(
    P: Any,
    start: int,
    n: int,
    code: int,
    epsilon: float,
    column: int,
    target: float,
    in_halves: bool,
    most_bias: float,
    plain: Any,
    losses: Any,
    influence: Any,
) -> bool:
    """Write the losses of coalitions of `n` rows each, from `start` on, of a loss that the kernels know.

    `influence`, of shape (coalitions, draws) or without a column, is written where it is wanted: see `influence_of`.

    Returns
    -------
    False where one of the rows is no finite prediction.
    """
    size, n_columns = len(plain), P.shape[1]
    if not are_finite(P, start, start + size * n):
        return False
    means, slopes = np.empty((3, n_columns)), np.empty(n_columns)
    for s in range(size):
        means_of_coalition(P, start + s * n, n, in_halves, means)
        losses[s] = plain[s] = loss_of(means, 0, code, epsilon, column, target)
        if in_halves and n > 1:
            of_halves = (
                loss_of(means, 1, code, epsilon, column, target),
                loss_of(means, 2, code, epsilon, column, target),
            )
            losses[s] = less_bias(plain[s], of_halves[0], of_halves[1], most_bias)
        if influence.shape[1] > 0:
            for c in range(n_columns):
                slopes[c] = slope_of(means[0, c], code, epsilon, c == column, target)
            influence_of(P, start + s * n, n, in_halves, slopes, means, influence[s])
    return True


@compiled
def influence_of(P: Any, first: int, n: int, in_halves: bool, slopes: Any, means: Any, influence: Any) -> None:
    """Write what each draw moves of its coalition's loss to first order: slope at the mean times its own deviation.

    They sum to 0. Of two halves of different sizes a draw of the smaller one has the larger share in the mean.
    """
    half = n // 2
    for j in range(n):
        influence[j] = 0.0
        for c in range(P.shape[1]):
            influence[j] += slopes[c] * (P[first + j, c] - means[0, c])
        if in_halves and half > 0:
            influence[j] *= 0.5 * n / (half if j < half else n - half)


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
    in_halves: bool,
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
    correction = (in_halves, most_bias)
    if size > 0 and not coalitions(P, start, n, code, epsilon, column, target, *correction, plain, losses, influence):
        return NO_PREDICTION, low, high
    for loss in plain:
        low, high = min(low, loss), max(high, loss)
    return walk(orders, marginal_loss, model_loss, losses, influence, largest, increments, parts), low, high


@compiled
def smooth_walk(
    P: Any,
    start: int,
    draws: int,
    code: int,
    epsilon: float,
    column: int,
    target: float,
    in_halves: bool,
    most_bias: float,
    orders: Any,
    marginal_loss: float,
    largest: float,
    increments: Any,
    alpha: float,
    slower: float,
    rate: float,
    times: int,
    columns: Any,
    n: int,
    weights: Any,
    moments: Any,
) -> tuple[int, float, float, float]:
    """Write the `walk` to the loss of row 0, and smooth it: from predictions to importance in one call.

    Returns
    -------
    What has become of it; the least and the largest loss, and that of row 0. Where it is not done, nothing has been
    smoothed.
    """
    if not are_finite(P, 0, 0):
        return NO_PREDICTION, 0.0, 0.0, 0.0
    model_loss = loss_of(P, 0, code, epsilon, column, target)
    if not (abs(model_loss) < largest and abs(marginal_loss) < largest):
        return NOT_FINITE, 0.0, 0.0, 0.0
    way = orders, marginal_loss, model_loss, largest, increments, np.empty((orders.shape[1], 0))
    status, low, high = walk_of_known(P, start, draws, code, epsilon, column, target, in_halves, most_bias, *way)
    if status == DONE:
        smooth(alpha, slower, rate, times, columns, increments, n, weights, moments)
    return status, low, high, model_loss
