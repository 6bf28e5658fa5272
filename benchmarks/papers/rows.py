"""What a row of the papers is: quantities with the paper's figure, an independent one, and a band; and verdicts."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

Statistic = Literal["mean", "median", "every"]
"""What of several runs is held against the band; `every`: each run on its own, the furthest out is shown."""

WITHIN, OUTSIDE, SHOWN, FAILED = "within", "outside", "shown", "failed"


@dataclass(frozen=True)
class Band:
    """Where the figure of one run is expected: mean +- 3 standard deviations of independent runs.

    A mean of n runs is expected within half-width / sqrt(n) of the centre. A `limit` does not shrink: it holds for
    any number of runs, as "exactly one explanation" or "below half of the other" do.
    """

    low: float
    high: float
    shrinks: bool = True

    @classmethod
    def limit(cls, low: float = -math.inf, high: float = math.inf) -> Band:
        """A band that is the same for any number of runs; one side may be open."""
        return cls(low, high, shrinks=False)

    def of(self, n: int) -> tuple[float, float]:
        """The band for a mean of n runs."""
        if not self.shrinks:
            return self.low, self.high
        centre, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return centre - half / math.sqrt(n), centre + half / math.sqrt(n)


@dataclass(frozen=True)
class Quantity:
    """One figure: its name, what others got, the band, and what of several runs is held against it.

    Every run reports it under its name, or not at all where it does not exist (no explanation, no importance of it).
    """

    name: str
    paper: str = ""
    independent: str = ""
    band: Band | None = None
    statistic: Statistic = "mean"


@dataclass(frozen=True)
class Settings:
    """What all runs share. `full` is the papers' set-up in every respect; short runs differ only as rows say."""

    data: Path
    full: bool = False


@dataclass(frozen=True)
class Run:
    """What one run found: a number per quantity."""

    values: dict[str, float]


@dataclass(frozen=True)
class Row:
    """One row of the papers' tables, or one of their figures.

    Parameters
    ----------
    name
        For `--only`, which takes the beginning of names too.
    title
        Source and set-up in a line.
    quantities
        In the order of the table.
    run
        Pure function of the seed and the settings.
    n_short, n_full
        Runs without and with `--full`; the latter is the paper's number where that is known.
    """

    name: str
    title: str
    quantities: tuple[Quantity, ...]
    run: Callable[[int, Settings], Run]
    n_short: int
    n_full: int

    def seed(self, base: int, index: int) -> int:
        """The seed of a run: another for each row and run, the same whatever else is run beside it."""
        entropy = [base, zlib.crc32(self.name.encode()), index]
        return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)


@dataclass(frozen=True)
class Outcome:
    """A quantity over all runs: mean, standard deviation, the value held against the band, and the verdict."""

    row: str
    quantity: Quantity
    mean: float
    sd: float
    n: int
    judged: float
    low: float
    high: float
    verdict: str

    @property
    def is_miss(self) -> bool:
        """Whether the exit code is 1 because of it."""
        return self.verdict == OUTSIDE or self.verdict.startswith(FAILED)


def judge(row: str, quantity: Quantity, values: Sequence[float]) -> Outcome:
    """Hold the values of all runs against the band.

    A quantity that no run reports is outside its band. One that is not finite is, too: NaN is in no interval.
    """
    n = len(values)
    mean = float(np.mean(values)) if n else math.nan
    sd = float(np.std(values, ddof=1)) if n > 1 else math.nan
    low, high = quantity.band.of(max(n, 1)) if quantity.band else (-math.inf, math.inf)
    if quantity.statistic == "every":
        judged = max(values, key=lambda value: max(low - value, value - high), default=math.nan)
    else:
        judged = float(np.median(values)) if n and quantity.statistic == "median" else mean
    is_within = low <= judged <= high and all(map(math.isfinite, values))
    verdict = SHOWN if quantity.band is None else WITHIN if is_within else OUTSIDE
    return Outcome(row, quantity, mean, sd, n, judged, low, high, verdict)


def unjudged(row: str, quantity: Quantity, verdict: str) -> Outcome:
    """The outcome of a quantity of which there are no runs, for the reason that the verdict states."""
    return Outcome(row, quantity, math.nan, math.nan, 0, math.nan, -math.inf, math.inf, verdict)
