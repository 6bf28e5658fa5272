"""Shares and ranks of many importances at once, as `attributary_explainers.ranking` defines them of one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def shares(importance: Floats) -> Floats:
    """Return each row's shares: parts of its sum, negatives counted as 0; NaN where an importance is not known."""
    clipped = np.where(importance > 0.0, importance, 0.0)
    total = clipped.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", over="ignore"):
        share = np.divide(clipped, total, out=np.zeros_like(clipped), where=total > 0.0)
    return np.where(np.isnan(importance), np.nan, share)


def order(importance: Floats) -> NDArray[np.int64]:
    """Return the positions of each row's features by rank; what is not known comes at the end.

    The columns are in the order of their names, so that a stable sort settles ties by name.
    """
    return np.argsort(-importance, axis=-1, kind="stable")  # NaN comes last


def ranks(importance: Floats) -> NDArray[np.int64]:
    """Return each row's ranks from 1; 0 where an importance is not known; columns as of `order`."""
    by_rank = order(importance)
    found = np.empty_like(by_rank)
    np.put_along_axis(found, by_rank, np.broadcast_to(np.arange(1, importance.shape[-1] + 1), by_rank.shape), axis=-1)
    return np.where(np.isnan(importance), 0, found)
