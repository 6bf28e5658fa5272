"""Compares two versions of a model on the same observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidParameterError, NoPredictionError
from .importance import ImportanceChange
from .reference import Data, Measure, MeasuredImportance, change_on_one_data_set, importances_under


@dataclass(frozen=True)
class VersionComparison:
    """Says how far the new version is from the old one on the same observations, and what it relies on instead.

    Attributes
    ----------
    discrepancy, n
        Mean distance between the predictions, and the observations it is the mean of.
    importances_of_new
        Method to the importance of the new version.
    changes
        Method to the change in importance.
    """

    discrepancy: float
    n: int
    importances_of_new: dict[str, MeasuredImportance]
    changes: dict[str, ImportanceChange]


def compare_versions(
    measure: Measure, old: Any, new: Any, data: Data, rng: np.random.Generator
) -> VersionComparison | None:
    """Compare two versions on `data`; None, with the generator as it was, where one of them predicts nothing for some.

    What a model raises is let through, and the generator is then as it was, too.
    """
    generator = rng.bit_generator.state
    try:
        taken = measure.take([old, new], data, draw_seed(rng))
        discrepancy, n = measure.discrepancy(old, new, data)
    except Exception as error:
        rng.bit_generator.state = generator
        if isinstance(error, (NoPredictionError, InvalidParameterError)):
            return None
        raise
    changes = change_on_one_data_set(taken, measure.loss)
    return VersionComparison(discrepancy, n, importances_under(taken, 1), changes)


def draw_seed(rng: np.random.Generator) -> int:
    """Draw the seed of another generator."""
    return int(rng.integers(2**31))
