"""Losses of coalitions from a few draws each: their bias, and the influence of single draws on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..losses.kernels import OF_THE_USER
from ..losses.losses import Loss
from ..predictions import Predictions, is_usable
from ..smoothing.means import mean_prediction
from . import kernels

Array = npt.NDArray[np.float64]


@dataclass(slots=True)
class CoalitionLosses:
    """Losses of the mean predictions of coalitions over their draws."""

    plain: Array
    """Shape (coalitions,): the loss of each."""
    losses: Array
    """Shape (coalitions,): the loss less the bias that a finite number of draws gives it."""
    influence: Array
    """Shape (coalitions, draws): slope of the loss times the draw's distance from the mean; no column: not known."""


def coalition_losses(
    loss: Loss, y: Any, predictions: Predictions, size: int, n: int, variance_of_rows: float | None
) -> CoalitionLosses | None:
    """Losses of coalitions with `n` draws each.

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
    predictions, size
        Row `start` of the predictions is the first draw of the first of `size` coalitions; the draws of a coalition are
        consecutive.
    variance_of_rows
        One over the number of rows that are drawn from, themselves a sample; 0 where that is not so. None leaves the
        bias where it is.

    Returns
    -------
    CoalitionLosses
        Or None where a prediction is missing, not finite, or of another kind than the others.
    """
    known = loss.derivatives is not None and n > 1 and size > 0
    found = CoalitionLosses(np.empty(size), np.empty(size), np.empty((size, n if known else 0)))
    if size == 0:
        return found
    correction = variance_of_rows is not None, variance_of_rows or 0.0, loss.most_bias
    if loss.code != OF_THE_USER:
        reading, given = loss.reading(y, predictions, size * n), (predictions.array, predictions.start, n)
        written = (found.plain, found.losses, found.influence)
        return found if reading is not None and kernels.coalitions(*given, *reading, *correction, *written) else None
    rows = predictions.rows(size * n)
    means = [mean_prediction(rows[i : i + n]) for i in range(0, len(rows), n)]
    if not all(map(is_usable, rows)) or any(mean is None for mean in means):
        return None
    found.plain[:] = [loss(y, mean) for mean in means]
    found.losses[:] = found.plain
    if known:
        given = predictions.array, predictions.start, n, *_slopes_and_curvatures(loss, y, predictions, size, n)
        kernels.corrected(*given, *correction, found.plain, found.losses, found.influence)
    return found


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
