"""Names for the things that the explainers pass around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
"""An array of floats."""

Ints: TypeAlias = npt.NDArray[np.int64]
"""An array of integers."""

Features: TypeAlias = Mapping[Any, Any]
"""The features `x` of one observation: name to value."""

Probabilities: TypeAlias = dict[Any, float]
"""Label to probability. A predicted label is the one-hot case `{label: 1.0}`."""

Prediction: TypeAlias = Probabilities | float | None
"""What a loss reads: probabilities for classification, a number otherwise, None for no prediction yet."""

Importance: TypeAlias = dict[Any, float]
"""Importance per feature or group, in the unit of the loss."""

Output: TypeAlias = Literal["probabilities", "label", "number", "any"]
"""What a loss needs of the model; `any` is a callable loss of the user's over a callable model."""


class ModelFunction(Protocol):
    """A function of a row: all that an explainer knows of a model.

    It may also have `many(rows: Sequence[Features]) -> list[Prediction]`, one prediction per row and equal to those
    of the calls one by one. `predict_rows` uses it where it is there.
    """

    def __call__(self, x: Features, /) -> Prediction:
        """Return the prediction for `x`, None where there is none yet."""


Groups: TypeAlias = Mapping[str, Sequence[Any]]
"""Group name to the features in it."""

Snapshot: TypeAlias = dict[str, Any]
"""Plain data with a format version: numbers, strings, bytes, lists and dicts."""
