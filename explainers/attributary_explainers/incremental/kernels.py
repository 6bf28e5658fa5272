"""Importance and its standard error after one more observation, compiled: smoothing, and whole steps that end in it.

A call takes longer than what most of these do, and so does each array that it is given: so there is one call from the
predictions to the smoothed importance, and the state is in two arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import compiled
from ..losses.kernels import coalitions, finite_rows, pfi_growth, walked
from ..smoothing.kernels import smooth

DONE, NO_PREDICTION, NOT_FINITE = range(3)
"""What has become of an observation; nothing is changed but by the first."""


@compiled
def pfi_step(
    P: Any,
    start: int,
    code: int,
    epsilon: float,
    column: int,
    target: float,
    rate: float,
    columns: Any,
    slots: Any,
    n: int,
    width: int,
    moments: Any,
    table: Any,
) -> tuple[int, float, float, float]:
    """`pfi_growth` and `smooth`; returns what the first does. `slots` has a row for each player."""
    growth, means = np.empty(slots.shape), np.empty(slots.shape[0])
    found = pfi_growth(P, start, code, epsilon, column, target, growth, means)
    if found[0] == DONE:
        smooth(rate, columns, means, growth, slots, n, width, moments, table)
    return found


@compiled
def sage_step(
    P: Any,
    start: int,
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
    rate: float,
    columns: Any,
    slots: Any,
    n: int,
    width: int,
    moments: Any,
    table: Any,
) -> tuple[int, float, float]:
    """`coalitions`, `walked` and `smooth`. `slots` has one row, for all players.

    Returns
    -------
    What has become of it: no increment may be as large as `largest`; the least and the largest loss of a coalition.
    """
    n_orders, k = orders.shape
    n_draws = slots.shape[1]
    size = n_orders * (k - 1)
    low, high = min(marginal_loss, model_loss), max(marginal_loss, model_loss)
    if not finite_rows(P, start, start + size * n_draws):
        return NO_PREDICTION, low, high
    plain, losses, sway = np.empty(size), np.empty(size), np.empty((size, n_draws))
    coalitions(
        P, start, n_draws, code, epsilon, column, target, correct, variance_of_rows, most_bias, plain, losses, sway
    )
    # Where there is no coalition no draw has a part in anything.
    increments, parts = np.empty(k), np.empty((k, n_draws if size else 0))
    walked(orders, marginal_loss, model_loss, losses, sway, increments, parts)
    for i in range(k):
        if not abs(increments[i]) < largest:
            return NOT_FINITE, low, high
    for s in range(size):
        low, high = min(low, plain[s]), max(high, plain[s])
    smooth(rate, columns, increments, parts, slots, n, width, moments, table)
    return DONE, low, high
