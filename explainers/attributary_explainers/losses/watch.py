"""Warnings about losses that bias SAGE values or stay constant."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import BiasedImportanceWarning, ConstantLossWarning, warn_caller
from ..typing import Snapshot
from .losses import Loss

_OBSERVATIONS = 1000


def warn_of_bias(loss: Loss, n_samples: int) -> None:
    """Warn where SAGE values under this loss have an uncorrected bias."""
    if n_samples == 1 and not loss.is_linear:
        text = "one draw: importance is that of a random replacement, not SAGE; take 2 or more"
    elif loss.is_named and not loss.is_smooth:
        counted = "most probable label" if loss.name == "zero_one" else "cheapest decision"
        text = (
            f"{loss.name} counts the {counted} of a mean over draws; with {n_samples} draws it is biased where that "
            f"{counted.split()[-1]} is nearly a tie; expected_zero_one is not"
        )
    else:
        return
    warn_caller(BiasedImportanceWarning(text))


class ConstantLossWatch:
    """Warns once when a loss has stayed the same over 1000 observations.

    Predictions with replaced features are included. Every importance is then exactly 0, which looks like a result: a
    label whose type differs from that of the model's classes has the same loss whatever is predicted.
    """

    def __init__(self, loss: str) -> None:
        self.loss = loss
        self._value: float | None = None
        self._n = 0
        self.is_done = False
        """Whether it need not see any more losses."""

    def update(self, losses: Iterable[float]) -> None:
        """Take in all losses of an observation."""
        if self.is_done:
            return
        self._n += 1
        for loss in losses:
            if self._value is None:
                self._value = float(loss)
            elif loss != self._value:
                self.is_done = True
                return
        if self._n == _OBSERVATIONS:
            self.is_done = True
            warn_caller(
                ConstantLossWarning(
                    f"the loss {self.loss!r} was {self._value!r} for every prediction of {_OBSERVATIONS} observations, "
                    "also with features replaced, so every importance is 0: check that labels have the type of the "
                    "model's classes, that the loss reads what the model predicts, and that the model does not predict "
                    "a constant"
                )
            )

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"value": self._value, "n": self._n, "done": self.is_done}

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._value, self._n, self.is_done = state["value"], state["n"], state["done"]
