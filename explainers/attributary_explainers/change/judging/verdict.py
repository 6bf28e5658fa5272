"""Says what happened to a model, from three losses on observations that neither it nor the reference had learnt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...losses.losses import LOSS_NAMES, Loss, as_loss
from ...models.function import is_classifier, resolve_loss
from ...ranking import BAND
from ...typing import Array

CERTAIN = 3.0
"""Standard errors beyond which a loss has risen or fallen."""

DOUBTFUL = 2.0
"""Standard errors beyond which a model that looks worse than its reference is looked at once more."""

_FEWEST_BLOCKS = 8

_MATERIAL = 0.1
"""Share of a loss below which a difference counts as none, however certain it is: the same rows are compared."""

DRIFTS = ("followed", "harder")
"""Verdicts that say that the data have changed."""

VERDICTS = (*DRIFTS, "matured", "degraded")
"""Verdicts that are told."""

_KINDS = {
    (1, 1): "followed", (1, 0): "matured", (1, -1): "matured",
    (0, 1): "harder", (0, 0): "equal", (0, -1): "easier",
    (-1, 1): "degraded", (-1, 0): "degraded", (-1, -1): "degraded",
}  # fmt: skip
"""What happened, by the signs of gain and worsened."""


@dataclass(frozen=True)
class Estimate:
    """Holds a mean loss or a difference of two, its standard error, and the number of observations that it is of."""

    mean: float
    std_error: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float] | Array) -> Self:
        """Estimate the mean of values in the order of the stream.

        The standard error is the largest of three: of values that are independent, of means of blocks of sqrt(n)
        values, and of means of eight blocks. The last two are right where neighbours are alike.
        """
        v = np.asarray(values, dtype=np.float64)
        n = len(v)
        if n < 2:
            return cls(float(v.mean()) if n else 0.0, math.inf, n)
        sizes = {1, int(math.sqrt(n)), n // _FEWEST_BLOCKS}
        return cls(float(v.mean()), max(_error_of_blocks(v, size) for size in sizes if size), n)

    @property
    def low(self) -> float:
        """Lower bound of the 95 % interval."""
        return self.mean - BAND * self.std_error

    @property
    def high(self) -> float:
        """Upper bound of the 95 % interval."""
        return self.mean + BAND * self.std_error

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference of two estimates from different observations."""
        return Estimate(self.mean - other.mean, math.hypot(self.std_error, other.std_error), self.n)

    def sign(self, z: float = CERTAIN) -> int:
        """Return 1 or -1 where the mean is beyond `z` standard errors from 0, else 0."""
        if not abs(self.mean) > z * self.std_error:
            return 0
        return 1 if self.mean > 0 else -1


def _error_of_blocks(v: Array, size: int) -> float:
    blocks = v[: len(v) // size * size].reshape(-1, size).mean(axis=1)
    return float(blocks.std(ddof=1)) / math.sqrt(len(blocks)) if len(blocks) > 3 or size == 1 else 0.0


@dataclass(frozen=True)
class Losses:
    """Holds the losses that a verdict rests on, all of observations that had not been learnt.

    Attributes
    ----------
    loss, loss_unit, loss_largest
        Name, unit and largest value (None: none) of the loss.
    reference_then
        Of the reference, on the first observations after it was taken. Where there are few of them, of the model on
        those before, which it had not learnt either. None for two versions.
    reference_now
        Of the reference, on the observations since the alarm.
    model_now
        Of the model before it learnt each of them, over their later half; over all after a second look, and for
        versions.
    gain
        How much lower the loss of the model is than that of the reference, on the same observations.
    """

    loss: str
    loss_unit: str
    loss_largest: float | None
    reference_then: Estimate | None
    reference_now: Estimate
    model_now: Estimate
    gain: Estimate

    @property
    def worsened(self) -> Estimate | None:
        """How much higher the loss of the reference is now than it was; None for two versions."""
        return None if self.reference_then is None else self.reference_now.minus(self.reference_then)

    @property
    def verdict(self) -> str:
        """What happened: one of `VERDICTS`, `equal` or `easier`.

        With w the sign of `worsened` and g = `gain_sign`:

        | | w > 0 | w = 0 | w < 0 |
        | --- | --- | --- | --- |
        | g > 0 | followed | matured | matured |
        | g = 0 | harder | equal | easier |
        | g < 0 | degraded | degraded | degraded |

        A gain of less than a tenth of what the reference has lost counts as none beside w > 0.
        The reference does not move: where the data are as they were, the expectation of `worsened` is 0, however much
        the model still learns. That tells learning from drift.
        """
        found = _KINDS[self.gain_sign, self.worsened_sign]
        if found == "followed" and self.worsened and self.gain.mean < _MATERIAL * self.worsened.mean:
            return "harder"
        return found

    @property
    def gain_sign(self) -> int:
        """1 where the model is better than the reference, -1 where it is worse, beyond three standard errors, else 0.

        Worse by less than a tenth of the reference's loss is 0: a model that learns at a constant rate sways so much.
        """
        sign = self.gain.sign()
        return 0 if sign < 0 and not self._is_material else sign

    @property
    def _is_material(self) -> bool:
        return abs(self.gain.mean) >= _MATERIAL * abs(self.reference_now.mean)

    @property
    def worsened_sign(self) -> int:
        """1 where the reference is worse than it was, -1 where it is better, beyond three standard errors, else 0."""
        return 0 if self.worsened is None else self.worsened.sign()

    @property
    def is_doubtful(self) -> bool:
        """Whether the model looks worse than the reference, by a tenth and at two standard errors."""
        return self.gain.sign(DOUBTFUL) < 0 and self._is_material


def losses_of(loss: Loss, then: Sequence[float] | None, reference: Array, model: Array) -> Losses:
    """Return the losses of a verdict, from those of observations.

    The model's are of the last of the reference's observations.
    """
    return Losses(
        loss.name,
        loss.unit,
        loss.largest,
        None if then is None else Estimate.of(then),
        Estimate.of(reference),
        Estimate.of(model),
        Estimate.of(reference[len(reference) - len(model) :] - model),
    )


def loss_of_verdicts(model: Any, loss: Any) -> Loss:
    """Return the loss that verdicts rest on: Brier, 0/1 or absolute.

    These are for probabilities, labels and numbers; single observations weigh little in them. A loss of the user's own
    and the score of an anomaly detector stay.
    """
    given = resolve_loss(model, loss)
    is_known = given.name in LOSS_NAMES or given.name.startswith("cross_entropy(")
    if given.is_score:
        return as_loss("score")  # a rise of the score is what is worth a word
    if not is_known:
        return given
    output = resolve_loss(model, None).output if is_classifier(model) else given.output
    return as_loss({"probabilities": "brier", "label": "zero_one"}.get(output, "absolute"))
