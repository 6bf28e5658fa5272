"""What is to be predicted: targets that are drawn given a row, and the loss that is expected over them."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attributary_explainers.losses.losses import DEFAULT_EPSILON
from attributary_explainers.typing import Array


class Target(abc.ABC):
    """A distribution of the target given the row."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, X: Array) -> list[Any]:
        """Return a target for each row."""

    @abc.abstractmethod
    def expected_loss(self, loss: str, X: Array, prediction: Array) -> Array:
        """Return the loss of a prediction for each row, expected over the target."""


@dataclass(frozen=True)
class Skewed(Target):
    """A number: `truth` plus noise that is exponential, of this scale and of mean 0.

    With a = truth + noise's least value - prediction, in units of the scale, and an exponential variable e,
    E |a + e| = a + 1 for a >= 0, and 2 exp(a) - a - 1 below.
    """

    truth: Callable[[Array], Array]
    scale: float

    def draw(self, rng: np.random.Generator, X: Array) -> list[Any]:
        """See `Target`."""
        found: list[Any] = (self.truth(X) + self.scale * (rng.exponential(size=len(X)) - 1.0)).tolist()
        return found

    def expected_loss(self, loss: str, X: Array, prediction: Array) -> Array:
        """See `Target`: squared and absolute."""
        error = self.truth(X) - prediction
        if loss == "squared":
            return error**2 + self.scale**2
        _check(loss, "absolute")
        a = error / self.scale - 1.0
        return self.scale * np.where(a >= 0.0, a + 1.0, 2.0 * np.exp(np.minimum(a, 0.0)) - a - 1.0)


@dataclass(frozen=True)
class Chance(Target):
    """True with a probability that depends on the row."""

    probability: Callable[[Array], Array]

    def draw(self, rng: np.random.Generator, X: Array) -> list[Any]:
        """See `Target`."""
        found: list[Any] = (rng.random(len(X)) < self.probability(X)).tolist()
        return found

    def expected_loss(self, loss: str, X: Array, prediction: Array) -> Array:
        """See `Target`; the prediction is the probability of True, or the share of draws that say True.

        `zero_one` is of the more probable label, and `expected_zero_one` 1 less the share of the right one, which is
        the absolute loss where the target is 0 or 1.
        """
        true = self.probability(X)
        if loss == "cross_entropy":
            prediction = np.clip(prediction, DEFAULT_EPSILON, 1.0 - DEFAULT_EPSILON)
            return -true * np.log(prediction) - (1.0 - true) * np.log(1.0 - prediction)
        if loss == "zero_one":
            if (np.abs(prediction - 0.5) < 1e-9).any():
                raise ValueError("two labels are equally probable: there is no exact zero_one")
            prediction = (prediction > 0.5).astype(np.float64)
        else:
            _check(loss, "expected_zero_one", "absolute")
        return true * (1.0 - prediction) + (1.0 - true) * prediction


def _check(loss: str, *known: str) -> None:
    if loss not in known:
        raise ValueError(f"expected one of {known}, got {loss!r}")
