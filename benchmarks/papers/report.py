"""What was found: a table for people, comma-separated values for programs."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from benchmarks.papers.rows import OUTSIDE, SHOWN, WITHIN, Outcome, Row

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
