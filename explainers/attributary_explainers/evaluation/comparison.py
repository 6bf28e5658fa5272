"""Whether two predictions for a row are the same but for rounding."""

from __future__ import annotations

import numpy as np

from ..predictions import is_usable
from ..typing import Array, Prediction
from .evaluator import NotCoveredError

TOLERANCE = 1e-9
"""Difference from which on a fast path is said to be wrong: absolute, and relative for numbers beyond 1."""


def differ(expected: Prediction, found: Prediction) -> bool:
    """Return whether two predictions differ by more than rounding."""
    if not is_usable(expected) or not is_usable(found):
        return is_usable(expected) != is_usable(found)
    if isinstance(expected, dict) and isinstance(found, dict):
        return any(_are_apart(expected.get(label, 0.0), found.get(label, 0.0)) for label in {*expected, *found})
    if isinstance(expected, dict) or isinstance(found, dict) or expected is None or found is None:
        return True
    return _are_apart(expected, found)


def check_ties(P: Array) -> None:
    """Refuse probabilities that leave the model's predicted class unclear.

    Among equally probable classes the model names the one that it met first. It names a class also where its
    probabilities are NaN, and here NaN stands for a model without a prediction.

    Raises
    ------
    NotCoveredError
        A probability is NaN, or two classes of a row are equally probable.
    """
    if P.shape[1] and not (P == P).all():
        raise NotCoveredError("a probability is NaN")
    if P.shape[1] > 1:
        two = np.partition(P, -2, axis=1)
        if (two[:, -1] - two[:, -2] <= TOLERANCE).any():
            raise NotCoveredError("two classes are equally probable")


def _are_apart(a: float, b: float) -> bool:
    return not abs(a - b) <= TOLERANCE * max(1.0, abs(a))
