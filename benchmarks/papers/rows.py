"""What a row of the papers is, its verdicts, and its tables for people and for programs."""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from rich.table import Table
from rich.text import Text

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


_STYLES = {WITHIN: "green", OUTSIDE: "bold red", SHOWN: "dim"}

_COLUMNS = (
    "row", "quantity", "paper", "independent", "ours_mean", "ours_sd", "n_runs", "statistic", "judged",
    "band_low", "band_high", "verdict",
)  # fmt: skip


def number(value: float) -> str:
    """Four digits, without zeros that say nothing; empty for NaN."""
    if math.isnan(value):
        return ""
    return f"{value:.1e}" if value and abs(value) < 1e-4 else f"{value:.4g}"


def _band(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return ""
    if low == high:
        return number(low)
    if math.isinf(high):
        return f">= {number(low)}"
    return f"<= {number(high)}" if math.isinf(low) else f"{number(low)} ... {number(high)}"


def table(row: Row, outcomes: Iterable[Outcome], seconds: float) -> Table:
    """One row of the papers: a line per quantity."""
    drawn = Table(title=f"{row.name}: {row.title}", title_justify="left", title_style="bold", expand=False)
    for column in ("quantity", "paper", "independent", "ours", "sd", "runs", "band", "verdict"):
        drawn.add_column(column, justify="left" if column in ("quantity", "verdict") else "right", overflow="fold")
    for outcome in outcomes:
        statistic = outcome.quantity.statistic
        drawn.add_row(
            outcome.quantity.name + ("" if statistic == "mean" or outcome.n < 2 else f" ({statistic})"),
            outcome.quantity.paper,
            outcome.quantity.independent,
            number(outcome.judged),
            number(outcome.sd),
            str(outcome.n),
            _band(outcome.low, outcome.high),
            Text(outcome.verdict, style=_STYLES.get(outcome.verdict, "yellow")),
        )
    if seconds:
        drawn.caption = f"{seconds:.0f} s of processor time per run"
    return drawn


def write_results(outcomes: Sequence[Outcome], path: Path) -> None:
    """A line per quantity, in the order of the rows; equal seeds give equal lines, except where time is measured."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for outcome in outcomes:
            figures = (outcome.mean, outcome.sd, outcome.judged, outcome.low, outcome.high)
            mean, sd, judged, low, high = ("" if not math.isfinite(figure) else repr(figure) for figure in figures)
            quantity = outcome.quantity
            writer.writerow([
                outcome.row, quantity.name, quantity.paper, quantity.independent, mean, sd, outcome.n,
                quantity.statistic, judged, low, high, outcome.verdict,
            ])  # fmt: skip
