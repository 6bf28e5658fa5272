"""Walks of SAGE through coalitions of which each has a few draws: their bias, and the influence of single draws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..losses.kernels import OF_THE_USER
from ..losses.losses import Loss
from ..predictions import Predictions, is_usable
from ..smoothing.means import mean_prediction
from ..validation import LARGEST
from .kernels import REASONS, corrected, walk, walk_of_known

Array = npt.NDArray[np.float64]


@dataclass(slots=True)
class Walk:
    """The way from the loss of the mean prediction to that of the model, as some orders of the players walk it."""

    increments: Array
    """Shape (players,): each player's share of the way."""
    parts: Array
    """Shape (players, draws): each draw's part in it; no column where that is not known."""
    losses: Iterable[float]
    """Losses on the way: all of them, or the least and the largest."""


def walk_of(
    loss: Loss,
    y: Any,
    predictions: Predictions,
    orders: npt.NDArray[np.intp],
    n: int,
    variance_of_rows: float | None,
    marginal_loss: float,
    model_loss: float,
) -> Walk | str:
    """Walk through coalitions whose losses are those of the mean prediction over `n` draws each, less their bias.

    To second order, with mu the expectation over draws and observations stored, and V the variance of the mean y_S,

        E[loss(y_S)] = loss(mu) + 1/2 loss''(mu) V,      V = D + R / L,

    D the variance over the draws given the L rows, R that of one draw over all rows there could be. The first
    k = n // 2 draws and the next k are independent sets of one expectation, with means a and b, and a last draw where n
    is odd is on its own. With v the mean square of the n draws less the square of their mean, and E[v] + D the variance
    of one draw over the L rows however the draws are spread over them,

        D = E[(a - b)^2] / 4  for an even n,      D = (k^2 E[(a - b)^2] + E[v]) / (n^2 - 1)  for an odd one,
        R / L = (E[v] + D) / (L - 1).

    All of these are without bias; the correction is therefore exact where loss'' is constant.

    Parameters
    ----------
    predictions
        For the draws of the coalitions, those of one coalition after the other; see `orders`.
    orders
        Shape (orders, players): the players by number. Each order grows by one player at a time to a coalition of all
        but one.
    variance_of_rows
        One over the number of rows that are drawn from, themselves a sample; 0 where that is not so. None leaves the
        bias where it is.
    marginal_loss, model_loss
        What all orders begin and end with.

    Returns
    -------
    Walk
        Or the reason why there is none: a prediction is missing, or what it gives cannot be represented.
    """
    n_orders, k = orders.shape
    size = n_orders * max(k - 1, 0)
    known = loss.derivatives is not None and n > 1 and size > 0
    increments, parts = np.empty(k), np.empty((k, n if known else 0))
    correction = variance_of_rows is not None, variance_of_rows or 0.0, loss.most_bias
    way = orders, marginal_loss, model_loss
    if loss.code != OF_THE_USER:
        reading = loss.reading(y, predictions, size * n)
        if reading is None:
            return "no_prediction"
        status, *losses = walk_of_known(
            predictions.array, predictions.start, n, *reading, *correction, *way, LARGEST, increments, parts
        )
        return REASONS[status] or Walk(increments, parts, losses)
    rows = predictions.rows(size * n)
    means = [mean_prediction(rows[i : i + n]) for i in range(0, len(rows), n)]
    if not all(map(is_usable, rows)) or any(mean is None for mean in means):
        return "no_prediction"
    plain = np.array([loss(y, mean) for mean in means], dtype=np.float64)
    less_bias, influence = plain.copy(), np.empty((size, parts.shape[1]))
    if known:
        slopes, curvatures = _slopes_and_curvatures(loss, y, predictions, size, n)
        corrected(predictions.array, predictions.start, n, slopes, curvatures, *correction, plain, less_bias, influence)
    status = walk(*way, less_bias, influence, LARGEST, increments, parts)
    return REASONS[status] or Walk(increments, parts, plain)


def _slopes_and_curvatures(loss: Loss, y: Any, predictions: Predictions, size: int, n: int) -> tuple[Array, Array]:
    """Return the derivatives of a loss of the user's own at the means, each of shape (coalitions, columns)."""
    array = predictions.array[predictions.start : predictions.start + size * n]
    slopes, curvatures = np.zeros((2, size, array.shape[1]))
    for column, label in enumerate(predictions.labels or (None,)):
        values = array[:, column].reshape(size, n)
        derivatives = loss.derivatives(y, label, values.mean(axis=1)) if loss.derivatives and values.any() else None
        if derivatives is not None:  # of a component that is not read there are none
            slopes[:, column], curvatures[:, column] = derivatives
    return slopes, curvatures
