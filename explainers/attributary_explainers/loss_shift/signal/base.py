"""Reads loss, excess, slope and level from labelled observations.

Every signal is a number per observation. Its mean does not change as long as the model stays as good as it was:

loss    what the prediction cost
excess  the loss less what the model itself expected to lose: rises where it is wronger than it was
slope   rises where predictions go further than targets follow, and does not move with the base rate, to first order
level   target less prediction, one per class: moves with the base rate (of numbers: with the mean)
"""

from __future__ import annotations

import abc
from typing import Any

from ...typing import Array

N_UNTAUGHT = 320
"""Observations that count for nothing: what a model says before it has learnt."""


class Signals(abc.ABC):
    """Gathers observations and predictions, and turns blocks into signals.

    Attributes
    ----------
    names
        Names of the columns that `take` returns; each of `labels` has a column `level`. After these columns comes the
        prediction for each level, which is not watched.
    loss
        Name, unit and largest value of the loss.
    """

    names: tuple[str, ...] = ()
    labels: tuple[Any, ...] = ()
    loss: tuple[str, str, float | None]

    def __init__(self, learns: bool, n_first: int = N_UNTAUGHT) -> None:
        self.learns = learns
        self.n_first = n_first
        """Observations that come before there are signals."""
        self.n = 0
        """Observations that have been gathered and not been taken."""
        self.usual: list[float] = []
        """Mean prediction of each level before signals were told; empty of a model that learns, whose moves."""

    @property
    def n_columns(self) -> int:
        """Columns that `take` returns."""
        return len(self.names) + len(self.labels)

    def value(self, column: int, moved: float) -> float:
        """Return a column's mean or difference in the unit that people read."""
        return moved

    def spread(self, expected: Array) -> list[tuple[Any, float]]:
        """Return each level's label and mean prediction, in the unit people read."""
        return list(zip(self.labels, expected.tolist(), strict=True))

    @abc.abstractmethod
    def intercept(self, level: int, moved: float) -> float | None:
        """Return the addend that moves a level's mean by `moved`, or None.

        It is added to the logits, or to predictions of numbers. None where there is nothing to add to.
        """
