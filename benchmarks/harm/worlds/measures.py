"""What a prediction is worth: AUC, log loss, Matthews' coefficient of two decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harm.worlds.populations import Array

LEAST = 1e-3
"""Predicted probabilities count as at least this, or one row in another unit would be the whole loss."""


def auc(positive: Any, score: Array) -> float:
    """Share of pairs of a positive and a negative that are in order, ties half.

    `positive` holds labels, or the probability of each row to be a positive: then it is the share to be expected.
    """
    q = np.asarray(positive, dtype=float)
    levels, level = np.unique(score, return_inverse=True)
    ones, zeros = (np.bincount(level, weights=w, minlength=len(levels)) for w in (q, 1.0 - q))
    below = np.cumsum(zeros) - zeros
    return float((ones * (below + zeros / 2)).sum() / (ones.sum() * zeros.sum()))


def log_loss(truth: Any, predicted: Array, least: float = LEAST) -> float:
    """Mean of -log p, in nats, to be expected where labels have the probabilities of the truth.

    Both (n,), of label 1, or (n, k).
    """
    q, p = both(np.asarray(truth, dtype=float)), both(predicted)
    return float(-(q * np.log(np.maximum(p, least))).sum(axis=1).mean())


def both(p: Array) -> Array:
    """Probabilities of all classes, (n, k)."""
    return np.column_stack((1.0 - p, p)) if p.ndim == 1 else p


def matthews(truth: Sequence[bool], told: Sequence[bool]) -> float:
    """Correlation of two decisions; 0 where one of them is always the same."""
    a, b = np.asarray(truth, dtype=bool), np.asarray(told, dtype=bool)
    tp, tn, fp, fn = (int((u & v).sum()) for u, v in ((a, b), (~a, ~b), (~a, b), (a, ~b)))
    scale = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return (tp * tn - fp * fn) / scale if scale else 0.0


def precision(truth: Sequence[bool], told: Sequence[bool]) -> float:
    """Share of what was told that is true; not a number where nothing was told."""
    right = [t for t, s in zip(truth, told, strict=True) if s]
    return sum(right) / len(right) if right else math.nan


def recall(truth: Sequence[bool], told: Sequence[bool]) -> float:
    """Share of what is true that was told."""
    return precision(told, truth)
