"""Losses of coalitions from a few draws each: their bias, and how far single draws sway them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..losses.losses import Derivatives, Loss
from ..smoothing.means import mean_prediction
from ..typing import Prediction

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CoalitionLosses:
    """Per coalition, of the mean prediction over its draws."""

    plain: list[float]
    """Its loss."""
    losses: list[float]
    """Its loss less the bias that a finite number of draws gives it."""
    sway: Array | None
    """Shape (coalitions, draws): slope of the loss times the draw's distance from the mean; None: not known."""


def coalition_losses(
    loss: Loss, y: Any, predictions: Sequence[Prediction], n: int, variance_of_rows: float | None
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
    predictions
        Shape (coalitions * n,); the draws of a coalition are consecutive.
    variance_of_rows
        One over the number of rows that are drawn from, themselves a sample; 0 where that is not so. None leaves the
        bias where it is.

    Returns
    -------
    CoalitionLosses
        Or None where predictions are of different kinds.
    """
    starts = range(0, len(predictions), n)
    means = [mean_prediction(list(predictions[i : i + n])) for i in starts]
    if any(mean is None for mean in means):
        return None
    plain = [loss(y, mean) for mean in means]
    derivatives = loss.derivatives
    if derivatives is None or n == 1 or not plain:
        return CoalitionLosses(plain, plain, None)
    # What overflows is not finite, and the observation is then skipped and counted.
    with np.errstate(all="ignore"):
        bias, sway = _bias_and_sway(derivatives, y, predictions, n, variance_of_rows)
        return CoalitionLosses(plain, (np.array(plain) - np.minimum(bias, loss.most_bias)).tolist(), sway)


def _bias_and_sway(
    derivatives: Derivatives, y: Any, predictions: Sequence[Prediction], n: int, variance_of_rows: float | None
) -> tuple[Array, Array]:
    bias, sway = np.zeros(len(predictions) // n), np.zeros((len(predictions) // n, n))
    for label, values in components(predictions, n):
        mean = values.mean(axis=1)
        found = derivatives(y, label, mean)
        if found is None:
            continue
        slope, curvature = found
        sway += slope[:, None] * (values - mean[:, None])
        if variance_of_rows is not None:
            bias += 0.5 * curvature * _variance_of_mean(values, variance_of_rows)
    return bias, sway


def _variance_of_mean(values: Array, variance_of_rows: float) -> Array:
    """V per coalition; `values` has the shape (coalitions, n)."""
    n, k = values.shape[1], values.shape[1] // 2
    apart = (values[:, :k].mean(axis=1) - values[:, k : 2 * k].mean(axis=1)) ** 2
    spread = values.var(axis=1)
    of_draws: Array = apart / 4.0 if n % 2 == 0 else (k * k * apart + spread) / (n * n - 1)
    if not 0.0 < variance_of_rows < 1.0:
        return of_draws  # no rows are drawn from, or a single one, which says nothing of the others
    total: Array = of_draws + variance_of_rows / (1.0 - variance_of_rows) * (spread + of_draws)
    return total


def components(predictions: Sequence[Prediction], n: int) -> list[tuple[Any, Array]]:
    """Each component of the predictions with its values, shape (coalitions, n): one per class, or the number."""
    if not isinstance(predictions[0], dict):
        return [(None, np.array(predictions, dtype=np.float64).reshape(-1, n))]
    rows = [p for p in predictions if isinstance(p, dict)]
    labels = dict.fromkeys(label for row in rows for label in row)
    return [(label, np.array([row.get(label, 0.0) for row in rows]).reshape(-1, n)) for label in labels]
