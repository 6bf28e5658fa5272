"""The sums of linear models over the columns of a plan, and what their links make of them."""

from __future__ import annotations

import math

import numpy as np

from ...compiled import compiled
from ...typing import Array, Ints
from .linear_models import SIGMOID, SOFTMAX


@compiled
def predict_rows(
    X: Array, source: Ints, tables: Ints, offsets: Ints, depth: int, root: float, values: Array, link: int, P: Array
) -> bool:
    """Write the predictions for rows; False where a divisor is no number, or the sum of a class not finite.

    `values` has what is subtracted, depth by depth; the divisors, as powers of which `root` is the exponent that gives
    them; the weights and the intercept of each output.
    """
    n = source.shape[0]
    first = 2 * depth * n
    n_outputs = P.shape[1]
    if link == SIGMOID:
        n_outputs = 1
    width = (values.shape[0] - first) // n_outputs if n_outputs else 0
    # Once per call, so that the rows are multiplied only; a divisor of 0 gives 0.
    for i in range(depth * n, first):
        if root != 1.0:
            values[i] = math.pow(values[i], root)
            if values[i] != values[i]:
                return False
        values[i] = 1.0 / values[i] if values[i] != 0.0 else 0.0
    if depth:
        for c in range(n_outputs):
            for t in range(n):
                values[first + c * width + t] *= values[first - n + t]
    if n_outputs == 1 and depth < 2 and tables.shape[0] == 0:
        _add_up(X, source, depth, values, P)
    else:
        _add_up_any(X, source, tables, offsets, depth, n_outputs, values, P)
    if link == SIGMOID:
        for r in range(X.shape[0]):
            score = P[r, 0]
            if score < -30.0:
                p = 0.0
            elif score > 30.0:
                p = 1.0
            else:
                p = 1.0 / (1.0 + np.exp(-score))
            P[r, 0] = 1.0 - p
            P[r, 1] = p
    elif link == SOFTMAX:
        for r in range(X.shape[0]):
            greatest = -np.inf
            for c in range(n_outputs):
                if not abs(P[r, c]) < np.inf:
                    return False
                greatest = max(greatest, P[r, c])
            total = 0.0
            for c in range(n_outputs):
                P[r, c] = np.exp(P[r, c] - greatest)
                total += P[r, c]
            for c in range(n_outputs):
                P[r, c] /= total
    return True


@compiled
def _add_up(X: Array, source: Ints, depth: int, values: Array, P: Array) -> None:
    """Write the sum of each row, of one output and at most one scaler: of four rows at a time, which are independent.

    Adding 0 for a feature that a row lacks changes nothing, as no sum that begins with 0 becomes -0.
    """
    n, last = source.shape[0], X.shape[0] - 1
    w = 2 * depth * n
    for i in range(0, last + 1, 4):
        j, k, m = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        of_i = of_j = of_k = of_m = 0.0
        for t in range(n):
            column, weight = source[t], values[w + t]
            mean = values[t] if depth else 0.0
            z = X[i, column]
            of_i += (z - mean) * weight if z == z else 0.0
            z = X[j, column]
            of_j += (z - mean) * weight if z == z else 0.0
            z = X[k, column]
            of_k += (z - mean) * weight if z == z else 0.0
            z = X[m, column]
            of_m += (z - mean) * weight if z == z else 0.0
        intercept = values[w + n]
        P[i, 0] = of_i + intercept
        P[j, 0] = of_j + intercept
        P[k, 0] = of_k + intercept
        P[m, 0] = of_m + intercept


@compiled
def _add_up_any(
    X: Array, source: Ints, tables: Ints, offsets: Ints, depth: int, n_outputs: int, values: Array, P: Array
) -> None:
    """Write the sum of each row and output."""
    n = source.shape[0]
    first = 2 * depth * n
    width = (values.shape[0] - first) // n_outputs if n_outputs else 0
    for r in range(X.shape[0]):
        for c in range(n_outputs):
            w = first + c * width
            score = 0.0
            if depth == 0:
                for t in range(n):
                    z = X[r, source[t]]
                    if z == z:  # or else the row lacks the feature
                        score += z * values[w + t]
            elif depth == 1:
                for t in range(n):
                    z = X[r, source[t]]
                    if z == z:
                        score += (z - values[t]) * values[w + t]
            else:
                for t in range(n):
                    z = X[r, source[t]]
                    if z != z:
                        continue
                    for k in range(depth - 1):
                        z = (z - values[k * n + t]) * values[(depth + k) * n + t]
                    score += (z - values[(depth - 1) * n + t]) * values[w + t]
            for q in range(tables.shape[0]):
                code = X[r, tables[q]]
                if code == code:
                    score += values[w + offsets[q] + int(code)]
            P[r, c] = score + values[w + width - 1]
