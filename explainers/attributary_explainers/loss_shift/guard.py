"""Says since when a model's loss is watched, and how small a harm is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..wording import show_count, show_number


@dataclass(frozen=True, slots=True)
class LossReach:
    """The least rise of the loss that `n` observations would show.

    `before` and `after` are the mean loss, in `unit`: the share of wrong predictions, or that of the target. With a
    rare `label` they are its share, without more of it being predicted.
    """

    before: float
    after: float
    n: int
    unit: str
    label: Any = None


@dataclass(frozen=True, slots=True)
class LossGuard:
    """Observation since which a model is guarded, or the count still missing.

    `waits_for` has the name of what is counted, how often it came, and how often it has to come; the first one that
    is not reached. None where the model is guarded.
    """

    since: int | None
    waits_for: tuple[Any, int, int] | None
    reach: LossReach | None

    def due_at(self, n_observations: int) -> int | None:
        """Estimate when the model will be guarded, at the rate of so far.

        To two digits, from the first `n_observations`; None where it is guarded, where none or all of them counted.
        """
        if self.waits_for is None or not 0 < self.waits_for[1] < n_observations:
            return None
        _, n, needed = self.waits_for
        return int(float(f"{n_observations * needed / n:.2g}"))

    def sentence(self) -> str:
        """Return it in plain English."""
        if self.waits_for is not None:
            name, n, needed = self.waits_for
            return f"not judged yet: {show_count(n)} {name} of {show_count(needed)}"
        said = "" if self.since is None else f"guarded since observation {show_count(self.since)}"
        if self.reach is None:
            return said
        before, after = (
            f"{show_number(100.0 * value)} %" if self.reach.unit == "share" else f"{show_number(value)}"
            for value in (self.reach.before, self.reach.after)
        )
        rows = f"{show_count(self.reach.n)} observations"
        if self.reach.label is not None:
            label = f"the share of {self.reach.label!r}"
            return (
                f"{said}: would see {label} rise from {before} to {after}, with no more of it predicted, within {rows}"
            )
        what = "the error" if self.reach.unit == "share" else "the mean absolute error"
        return f"{said}: would see a rise of {what} from {before} to {after} within {rows}"


def least_rise(mean: float, variance: float, n: int, n_before: int, z: float) -> float:
    """Return the least mean of a window of `n` that shows a rise.

    It is `z` standard errors above the mean before.
    """
    return mean + z * math.sqrt(max(variance, 0.0) * (1.0 / n + 1.0 / max(n_before, 1)))
