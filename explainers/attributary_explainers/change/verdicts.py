"""Judgement of a change: verdict, onset and pattern."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..losses.losses import Loss, as_loss
from ..models.function import is_classifier, resolve_loss
from ..ranking import BAND
from ..snapshots import Stored
from ..typing import Array
from ..wording import show_count

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
class Estimate(Stored):
    """A mean loss or difference, its standard error and observation count."""

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
        """Return 1 or -1 if the mean is over `z` standard errors from 0, else 0."""
        if not abs(self.mean) > z * self.std_error:
            return 0
        return 1 if self.mean > 0 else -1


def _error_of_blocks(v: Array, size: int) -> float:
    blocks = v[: len(v) // size * size].reshape(-1, size).mean(axis=1)
    return float(blocks.std(ddof=1)) / math.sqrt(len(blocks)) if len(blocks) > 3 or size == 1 else 0.0


@dataclass(frozen=True)
class Losses(Stored):
    """The losses behind a verdict, on observations that were not learnt.

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
        """Rise of the reference's loss since it was taken; None for versions."""
        return None if self.reference_then is None else self.reference_now.minus(self.reference_then)

    @property
    def verdict(self) -> str:
        """Verdict on the change: a value of `VERDICTS`, `equal` or `easier`.

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
        """1 if the model is better than the reference, -1 if worse, else 0.

        Both count beyond three standard errors. Worse by less than a tenth of the reference's loss is 0: a model that
        learns at a constant rate sways so much.
        """
        sign = self.gain.sign()
        return 0 if sign < 0 and not self._is_material else sign

    @property
    def _is_material(self) -> bool:
        return abs(self.gain.mean) >= _MATERIAL * abs(self.reference_now.mean)

    @property
    def worsened_sign(self) -> int:
        """1 if the reference is worse by 3 standard errors, -1 better, else 0."""
        return 0 if self.worsened is None else self.worsened.sign()

    @property
    def is_doubtful(self) -> bool:
        """Whether the model is worse by a tenth and by two standard errors."""
        return self.gain.sign(DOUBTFUL) < 0 and self._is_material


def losses_of(loss: Loss, then: Sequence[float] | None, reference: Array, model: Array) -> Losses:
    """Return a verdict's losses, computed from losses of observations.

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
    if given.is_score:
        return as_loss("score")  # a rise of the score is what is worth a word
    if not given.is_named:
        return given
    output = resolve_loss(model, None).output if is_classifier(model) else given.output
    return as_loss({"probabilities": "brier", "label": "zero_one"}.get(output, "absolute"))


_WITHIN = 7.0
"""Fall of twice the log likelihood inside the interval: the 95 % quantile at a jump, which is no chi-squared of 1."""


@dataclass(frozen=True)
class Onset(Stored):
    """Says since which observation something holds.

    `low` and `high` are the bounds of a 95 % interval; `low` is None where it may have begun before the observations
    that are known.
    """

    observation: int
    low: int | None
    high: int

    def after(self, n: int) -> Onset:
        """Return the same with numbers that count `n` earlier observations, too."""
        return Onset(self.observation + n, None if self.low is None else self.low + n, self.high + n)

    def at_least(self, first: int) -> Onset:
        """Return the same with no number before `first`."""
        return Onset(max(first, self.observation), None if self.low is None else max(first, self.low), self.high)

    def sentence(self, noticed: str) -> str:
        """Return the onset with its interval, and `noticed`: when it was seen."""
        if self.low is None:
            return f"before {show_count(self.high)} ({noticed})"
        return f"{show_count(self.observation)} ({show_count(self.low)} to {show_count(self.high)}, {noticed})"


def onset_of(values: Sequence[float] | Array, numbers: Sequence[int], until: int | None = None) -> Onset | None:
    """Return since when values have another mean; None if unknown.

    It is the best split in two. The split with the largest likelihood of normal values with one spread and a jump of
    the mean; the interval holds every split whose log likelihood is near the largest.

    Parameters
    ----------
    values, numbers
        In the order of the stream, with the numbers of their observations.
    until
        Observation by which it has begun, because it has been noticed there. What changes slowly goes on after it, and
        the best split of all might come later.

    Examples
    --------
    >>> onset_of([0.0, 0.1] * 20 + [1.0, 0.9] * 20, range(101, 181)).observation
    141
    """
    v = np.asarray(values, dtype=np.float64)
    n = len(v)
    known = n if until is None else int(np.searchsorted(np.asarray(numbers), until, side="right"))
    k = np.arange(2, min(n - 1, known))
    if not len(k):
        return None
    sums = np.cumsum(v)
    before, after = sums[k - 1] / k, (sums[-1] - sums[k - 1]) / (n - k)
    explained = k * (n - k) / n * (after - before) ** 2
    best = int(np.argmax(explained))
    # Where a split leaves nothing, rounding may leave less.
    noise = max((float(((v - v.mean()) ** 2).sum()) - float(explained[best])) / n, 0.0)
    near = np.flatnonzero(explained >= explained[best] - _WITHIN * noise)
    low, high = int(k[near[0]]), int(k[near[-1]])
    return Onset(int(numbers[int(k[best])]), None if low == 2 else int(numbers[low]), int(numbers[high]))


_MEMORY = 10
"""Windows after the last change at which a course is over."""

_LARGER = 2.0
"""How many times as large as all before a change has to be, to be told in spite of the pattern."""


@dataclass
class Course(Stored):
    """Recent changes, and how far they have been reported.

    A change that comes at most ten windows after the last one continues its course. The second one of a course is told
    with the pattern; the others are not told, unless they are twice as large as all before.
    """

    window: int
    last: int | None = None
    n_changes: int = 0
    discrepancy: float = 0.0
    worsened: float = 0.0
    pattern: str | None = None

    def is_alive(self, now: int) -> bool:
        """Whether a change now continues the course."""
        return self.last is not None and now - self.last <= _MEMORY * self.window

    def is_told(self, now: int) -> bool:
        """Whether a change now is part of a pattern that was told."""
        return self.pattern is not None and self.is_alive(now)

    def add(self, now: int, discrepancy: float, worsened: float, pattern: str) -> tuple[bool, str | None]:
        """Add a change; return whether to tell it, and with which pattern.

        `pattern` is what the change would be, were it part of one.
        """
        if not self.is_alive(now):
            self.n_changes, self.discrepancy, self.worsened, self.pattern = 0, 0.0, 0.0, None
        larger = discrepancy > _LARGER * self.discrepancy or worsened > _LARGER * self.worsened
        told, found = self.pattern is None or larger, None
        if self.n_changes and told:
            found = self.pattern = pattern
        self.last, self.n_changes = now, self.n_changes + 1
        self.discrepancy, self.worsened = max(self.discrepancy, discrepancy), max(self.worsened, worsened)
        return told, found
