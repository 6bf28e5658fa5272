"""SAGE walks through coalitions of few draws, with their bias removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.increments import (
    REASONS,
    Increments,
    increments_of_losses,
    influence_of,
    loss_of_mean,
    means_of_coalition,
    without_bias,
)
from ..core.losses import NOT_IN_CORE
from ..losses.losses import Loss
from ..predictions import GivenPredictions, Predictions, is_usable
from ..smoothing.marginal import prediction_of
from ..smoothing.means import mean_prediction
from ..typing import Array, Prediction
from ..validation import LARGEST


@dataclass(slots=True)
class SageIncrements:
    """A walk's increments from the mean prediction's loss to the model's."""

    increments: Array
    """Shape (players,): each player's share of the way."""
    parts: Array
    """Shape (players, draws): each draw's part in it; no column where that is not known or not wanted."""
    losses: Iterable[float]
    """Losses on the way: all of them, or the least and the largest."""


def sage_increments_of(
    loss: Loss,
    y: Any,
    predictions: Predictions,
    orders: npt.NDArray[np.intp],
    n: int,
    marginal_loss: float,
    model_loss: float,
    *,
    in_halves: bool,
    with_parts: bool = False,
) -> SageIncrements | str:
    """Walk coalitions of `n` draws each, with the bias of losses taken out.

    The loss of a mean over few draws exceeds that of the expectation mu where the loss is convex: to second order

        E[loss(y_S)] = loss(mu) + 1/2 loss''(mu) V,      V the variance of the mean y_S.

    The first n // 2 draws and the others are independent sets of one expectation. With a and b their means and
    y_S = (a + b) / 2,

        loss_S = 2 loss(y_S) - (loss(a) + loss(b)) / 2

    has the expectation loss(mu) to second order: a and b have twice the variance of y_S, and subtracting their excess
    over y_S once takes that of y_S away. It needs no derivative, and is exact for the squared loss and Brier. What a
    and b have in common stays: the variance of the stored rows, where both are drawn from the same ones.

    Parameters
    ----------
    predictions
        For the draws of the coalitions, those of one coalition after the other; see `orders`.
    orders
        Shape (orders, players): the players by number. Each order grows by one player at a time to a coalition of all
        but one.
    marginal_loss, model_loss
        What all orders begin and end with.
    in_halves
        Whether the bias is taken out. Else the loss is that of the mean of all draws.
    with_parts
        Whether each draw's part in the increments is wanted.

    Returns
    -------
    SageIncrements
        Or the reason why there is none: a prediction is missing, or what it gives cannot be represented.
    """
    n_orders, k = orders.shape
    size = n_orders * max(k - 1, 0)
    known = with_parts and loss.slope is not None and n > 1 and size > 0
    increments, parts = np.empty(k), np.empty((k, n if known else 0))
    halves = in_halves and loss.is_smooth
    way = orders, marginal_loss, model_loss
    if loss.code != NOT_IN_CORE:
        arguments = loss.arguments(y, predictions, size * n)
        if arguments is None:
            return "no_prediction"
        find = Increments()
        status = find.sage_increments(
            predictions.array,
            predictions.start,
            n,
            *arguments,
            halves,
            loss.most_bias,
            *way,
            LARGEST,
            increments,
            parts,
        )
        return REASONS[status] or SageIncrements(increments, parts, (find.low, find.high))
    rows = predictions.rows(size * n)
    if not all(map(is_usable, rows)):
        return "no_prediction"
    plain, corrected = np.empty(size), np.empty(size)
    for s in range(size):
        means = _means(rows[s * n : (s + 1) * n], halves)
        if means is None:
            return "no_prediction"
        found = [loss(y, mean) for mean in means]
        plain[s] = corrected[s] = found[0]
        if len(found) == 3:
            corrected[s] = without_bias(found[0], found[1], found[2], loss.most_bias)
    influence = _influence(loss, y, rows, size, n, halves) if known else np.empty((size, 0))
    status = increments_of_losses(*way, corrected, influence, LARGEST, increments, parts)
    return REASONS[status] or SageIncrements(increments, parts, plain)


def loss_of_noisy_mean(
    loss: Loss, y: Any, names: tuple[Any, ...], means: Array, std_errors: Array, *, without_noise: bool
) -> float:
    """Return the loss of a mean prediction, less the part its noise adds.

    To second order that is half of loss'' times the variance, component by component. The expression

        (loss(mean + s) + loss(mean - s)) / 2 - loss(mean),      s the standard error of the component,

    gives it without a derivative, and exactly for the squared loss and Brier.

    Parameters
    ----------
    names
        Class of each component; (None,) for a number.
    means, std_errors
        Shape (components,).
    without_noise
        Whether it is taken off.
    """
    noise = std_errors if without_noise and loss.is_smooth else np.zeros(len(means))
    if loss.code != NOT_IN_CORE:
        arguments = loss.arguments_at(y, names.index(y) if y in names else -1)
        return float(loss_of_mean(means, noise, *arguments, loss.most_bias))
    plain, bias = loss(y, prediction_of(names, means)), 0.0
    for c in np.flatnonzero(noise).tolist():
        around = []
        for sign in (1.0, -1.0):
            moved = means.copy()
            moved[c] += sign * noise[c]
            around.append(loss(y, prediction_of(names, moved)))
        bias += 0.5 * (around[0] + around[1]) - plain
    return plain - min(bias, loss.most_bias)


def _means(rows: list[Prediction], in_halves: bool) -> list[Prediction] | None:
    """Return the mean, and both halves' if asked; None for mixed kinds."""
    half = len(rows) // 2
    if not in_halves or half == 0:
        means = [mean_prediction(rows)]
    else:
        halves = [mean_prediction(rows[:half]), mean_prediction(rows[half:])]
        means = [mean_prediction(halves), *halves]
    return None if any(mean is None for mean in means) else means


def _influence(loss: Loss, y: Any, rows: Sequence[Prediction], size: int, n: int, in_halves: bool) -> Array:
    """Return each draw's influence on its loss, shape (coalitions, draws)."""
    assert loss.slope is not None
    influence = np.empty((size, n))
    for s in range(size):
        given = GivenPredictions(list(rows[s * n : (s + 1) * n]), start=0)
        means = np.empty((3, given.array.shape[1]))
        means_of_coalition(given.array, 0, n, in_halves, means)
        labels = given.labels or (None,)
        slopes = np.array([loss.slope(y, label, p) for label, p in zip(labels, means[0].tolist(), strict=True)])
        influence_of(given.array, 0, n, in_halves, slopes, means, influence, s)
    return influence
