"""Losses of coalitions from a few draws each: their bias, and how far single draws sway them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .losses import Derivatives, Loss
from .smoothing import mean_prediction
from .strata import halves
from .typing import Prediction

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

    To second order, with mu the expectation over draws and V the variance of the mean y_S over them,

        E[loss(y_S)] = loss(mu) + 1/2 loss''(mu) V,      V = Var(mean over draws | rows) + Var(one draw) / rows.

    The first n_a = (n + 1) // 2 draws are independent of the other n_b, both of the same expectation, so that
    n_a n_b / n^2 (mean_a - mean_b)^2 has the expectation of the first term, however either set is spread.

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
        return CoalitionLosses(plain, (np.array(plain) - bias).tolist(), sway)


def _bias_and_sway(
    derivatives: Derivatives, y: Any, predictions: Sequence[Prediction], n: int, variance_of_rows: float | None
) -> tuple[Array, Array]:
    bias, sway = np.zeros(len(predictions) // n), np.zeros((len(predictions) // n, n))
    n_a, n_b = halves(n)
    for label, values in _components(predictions, n):
        mean = values.mean(axis=1)
        found = derivatives(y, label, mean)
        if found is None:
            continue
        slope, curvature = found
        sway += slope[:, None] * (values - mean[:, None])
        if variance_of_rows is not None:
            difference = values[:, :n_a].mean(axis=1) - values[:, n_a:].mean(axis=1)
            of_mean = n_a * n_b / (n * n) * difference**2 + variance_of_rows * values.var(axis=1, ddof=1)
            bias += 0.5 * curvature * of_mean
    return bias, sway


def _components(predictions: Sequence[Prediction], n: int) -> list[tuple[Any, Array]]:
    """Each component of the predictions with its values, shape (coalitions, n): one per class, or the number."""
    if not isinstance(predictions[0], dict):
        return [(None, np.array(predictions, dtype=np.float64).reshape(-1, n))]
    rows = [p for p in predictions if isinstance(p, dict)]
    labels = dict.fromkeys(label for row in rows for label in row)
    return [(label, np.array([row.get(label, 0.0) for row in rows]).reshape(-1, n)) for label in labels]
