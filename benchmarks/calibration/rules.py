"""Rules of biased bits, all of whose values can be counted: a label without probability, and the same as a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from attributary_explainers.models.function import resolve_loss
from attributary_explainers.typing import Array
from benchmarks.calibration.worlds import Chance, Formula, FormulaRegressor, FormulaRule, Population

from .worlds import World


@dataclass(frozen=True)
class Bits:
    """Independent bits a, b, c, … and a rule that reads them; the target is the rule's value, or seldom the other.

    Parameters
    ----------
    name
        The rule in words.
    shares
        The probability of 1, by bit.
    rule
        Rows of shape (rows, bits) to 0 or 1.
    flipped
        Share of the targets that are the other label.
    """

    name: str
    shares: tuple[float, ...]
    rule: Callable[[Array], Array]
    flipped: float

    def population(self) -> Population:
        """Return every combination of bits."""
        points = np.array(list(product((0.0, 1.0), repeat=len(self.shares))))
        weights = [math.prod(p if bit else 1.0 - p for bit, p in zip(row, self.shares, strict=True)) for row in points]
        return Population(points, np.array(weights))

    def rows(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent rows."""
        return (rng.random((n, len(self.shares))) < self.shares).astype(np.float64)

    def truth(self, X: Array) -> Array:
        """Return the probability that the target is True."""
        return self.flipped + (1.0 - 2.0 * self.flipped) * self.rule(X)

    def worlds(self) -> list[World]:
        """Return the rule as a classifier without probabilities, in its default loss, and as a number."""
        formula = Formula(tuple("abcdef"[: len(self.shares)]), self.rule)
        label, number, target = FormulaRule(formula), FormulaRegressor(formula), Chance(self.truth)
        return [
            World(f"{self.name}, label", label, resolve_loss(label, None).name, target, self.population, self.rows),
            World(f"{self.name}, absolute", number, "absolute", target, self.population, self.rows),
        ]


def _either(X: Array) -> Array:
    a, b, c, d = X.T
    value: Array = np.maximum(a * b, c * (1.0 - d))
    return value


def _any(X: Array) -> Array:
    value: Array = X[:, :3].max(axis=1)  # d is not read
    return value


def _most(X: Array) -> Array:
    return (X @ [2.0, 1.0, 1.0, 1.0] > 2.5).astype(np.float64)


BITS = [
    Bits("(a and b) or (c and not d)", (0.35, 0.7, 0.45, 0.2), _either, 0.05),
    Bits("a or b or c", (0.15, 0.3, 0.4, 0.5), _any, 0.0),
    Bits("two votes of a, one of b, c, d: 3 of 5", (0.3, 0.6, 0.8, 0.45), _most, 0.1),
]
RULES = [world for bits in BITS for world in bits.worlds()]
