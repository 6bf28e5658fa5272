"""The tables, for the screen and for the page on choosing; both are made of the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table as RichTable

from benchmarks.change.settings import (
    DELTA_SETTINGS,
    DETECTOR_SETTINGS,
    RESTART_SETTINGS,
    ROUTE_SETTINGS,
    THRESHOLD_SETTINGS,
    WINDOW_SETTINGS,
    Setting,
)
from benchmarks.change.statistics import poisson, wilson
from benchmarks.change.streams import STREAMS, Stream
from benchmarks.change.summary import PER
from benchmarks.change.traces import ESTIMATES

Results = Mapping[str, Any]

STATIONARY = [stream for stream in STREAMS if stream.drift is None]
DRIFTING = [stream for stream in STREAMS if stream.drift is not None]
SUDDEN = [stream for stream in DRIFTING if stream.name.endswith("sudden")]
SLOW = [stream for stream in DRIFTING if stream.name.endswith(("turning", "creeping"))]
SHOWN = [setting for setting in ROUTE_SETTINGS if setting.route != "paper"]
"""With the default window and these streams, `paper` is the detector but for the table on restarts."""
MOMENTS = ("before", "middle", "end", "end + 300", "last")
"""Those shown; the results have more, and more streams."""
NEVER = "–"
"""For a delay that the run is too short for: the drift was missed too often."""


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def tables(results: Results) -> list[Table]:
    """All of them."""
    alone = "detector alone"
    return [
        _false(results),
        _found(results),
        _settings(results, "threshold", "Routes and τ (K = 300, ADWIN δ = 0.002)", THRESHOLD_SETTINGS),
        _settings(results, "delta", "δ of ADWIN (K = 300, τ = 0.3)", DELTA_SETTINGS),
        _settings(results, "window", "K and τ (both routes, δ = 0.002)", WINDOW_SETTINGS),
        _settings(results, "restart", f"One restart or none ({alone}, δ = 0.002, τ = 0.3)", RESTART_SETTINGS),
        _settings(results, "detector", f"Detectors at their defaults ({alone}, K = 300, τ = 0.3)", DETECTOR_SETTINGS),
        _moments(results),
        _delays(results),
    ]


def number(value: float | None) -> str:
    """A figure of at most three digits, or a whole number; a dash for none."""
    if value is None:
        return NEVER
    return f"{value:.0f}" if value >= 10 or value == round(value) else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def percent(value: float) -> str:
    """A share, in percent."""
    return f"{100 * value:.0f} %"


def between(low: float, high: float) -> str:
    """An interval."""
    return f"{number(low)}–{number(high)}"


def _rate(rate: Mapping[str, Any]) -> str:
    return f"{number(rate['rate'])} ({between(rate['low'], rate['high'])})"


def _false(results: Results) -> Table:
    rows = []
    for stream in STATIONARY:
        for setting in SHOWN:
            cell = results["cells"][stream.name][setting.name]
            rates = [_rate(cell[name]) for name in ("alarms", "rejected", "explained", "false")]
            start = f"{cell['start']['alarms'] / cell['runs']:.2f}, {cell['start']['explained'] / cell['runs']:.2f}"
            rows.append((stream.title.partition(",")[0], setting.route, *rates, start))
    header = (
        "stream",
        "route",
        "alarms",
        "rejected",
        "explained",
        "of these false",
        "start: alarms, explained per run",
    )
    return Table("false", "Stationary streams, per 100 000 observations", header, rows)


def _found(results: Results) -> Table:
    rows = []
    for stream in DRIFTING:
        for setting in SHOWN:
            cell = results["cells"][stream.name][setting.name]
            rows.append(
                (
                    stream.title,
                    setting.route,
                    f"{percent(cell['share'])} ({100 * cell['low']:.0f}–{100 * cell['high']:.0f})",
                    _delay(cell["alarm"]),
                    _delay(cell["explanation"]),
                    number(cell["explained_after"]),
                    number(cell["rejected_after"]),
                )
            )
    header = ("drift", "route", "explained", "alarm after", "explanation after", "explanations", "rejected alarms")
    return Table("found", "Drift: explained at all, and when", header, rows)


def _delay(delay: Mapping[str, float | None]) -> str:
    return f"{number(delay['median'])} ({number(delay['q90'])})"


def pooled_false(results: Results, setting: Setting, name: str = "false") -> tuple[float, float, float]:
    """A rate over all stationary streams, with its interval."""
    cells = [results["grid"][stream.name][setting.name] for stream in STATIONARY]
    k, n = sum(cell[name]["n"] for cell in cells), sum(cell["observations"] for cell in cells)
    low, high = poisson(k)
    return k * PER / n, low * PER / n, high * PER / n


def pooled_found(results: Results, setting: Setting, streams: Iterable[Stream]) -> tuple[float, float, float]:
    """A share of drifts over several streams, with its interval."""
    cells = [results["grid"][stream.name][setting.name] for stream in streams]
    k, n = sum(cell["found"] for cell in cells), sum(cell["runs"] for cell in cells)
    return k / n, *wilson(k, n)


def explanation_delay(results: Results, setting: Setting, stream: str) -> float | None:
    """Median delay of the explanation on a stream."""
    delay: float | None = results["grid"][stream][setting.name]["explanation"]["median"]
    return delay


def _settings(results: Results, name: str, title: str, settings: Sequence[Setting]) -> Table:
    rows = []
    for setting in settings:
        if any(setting.name not in cells for cells in results["grid"].values()):
            continue
        false, low, high = pooled_false(results, setting)
        slow, slow_low, slow_high = pooled_found(results, setting, SLOW)
        rows.append(
            (
                *_what(name, setting),
                f"{number(false)} ({between(low, high)})",
                number(pooled_false(results, setting, "explained")[0]),
                number(pooled_false(results, setting, "rejected")[0]),
                percent(pooled_found(results, setting, SUDDEN)[0]),
                f"{percent(slow)} ({100 * slow_low:.0f}–{100 * slow_high:.0f})",
                number(explanation_delay(results, setting, "hyperplane-sudden")),
                number(explanation_delay(results, setting, "hyperplane-turning")),
                number(explanation_delay(results, setting, "hyperplane-creeping")),
                str(results["grid"]["hyperplane-sudden"][setting.name]["runs"]),
            )
        )
    keys = {
        "threshold": ("route", "τ"), "delta": ("route", "δ"), "window": ("K", "τ"), "restart": ("K", "restarts"),
        "detector": ("detector",),
    }[name]  # fmt: skip
    header = (
        *keys, "false explanations", "explained", "rejected", "sudden found", "slow found", "delay: sudden", "turning",
        "creeping", "runs",
    )  # fmt: skip
    return Table(name, title, header, rows)


def _what(name: str, setting: Setting) -> tuple[str, ...]:
    return {
        "threshold": (setting.route, f"{setting.threshold:g}"),
        "delta": (setting.route, f"{setting.delta:g}" if setting.delta else ""),
        "window": (str(setting.window), f"{setting.threshold:g}"),
        "restart": (str(setting.window), "none" if setting.route == "paper" else "one"),
        "detector": (str(setting.detector),),
    }[name]


def _moments(results: Results) -> Table:
    rows = []
    for stream in (*SUDDEN, *SLOW):
        for moment, at in results["traces"][stream.name]["moments"].items():
            if moment in MOMENTS:
                values = [f"{at[estimate]['bias']:+.3f}, {at[estimate]['rmse']:.3f}" for estimate in ESTIMATES]
                rows.append((stream.title, moment, f"{at['exact']:.3f}", *values))
    header = ("drift", "moment", "exact", *ESTIMATES)
    title = "The discrepancy, bias and root mean squared error, while the reference is kept"
    return Table("moments", title, header, rows)


def _delays(results: Results) -> Table:
    rows = []
    for stream in DRIFTING:
        found = results["traces"][stream.name]
        delays = (found["delays"][estimate] for estimate in ("exact", *ESTIMATES))
        rows.append(
            (stream.title, f"{found['level']:.2f}", *(f"{number(one['0.5'])}, {number(one['0.9'])}" for one in delays))
        )
    header = ("drift", "new level", "exact", *ESTIMATES)
    return Table("delays", "Observations from the drift's beginning to half and to 90 % of the new level", header, rows)


def as_markdown(table: Table) -> str:
    """For a page."""
    lines = [table.header, ("---",) * len(table.header), *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fill(page: str, results: Results) -> str:
    """The page with these results: a table follows each line `<!-- table: name -->`, up to an empty line."""
    for table in tables(results):
        mark = f"<!-- table: {table.name} -->\n"
        before, found, after = page.partition(mark)
        if not found:
            raise ValueError(f"the page has no line {mark.strip()}")
        page = before + mark + as_markdown(table) + "\n\n" + after.partition("\n\n")[2]
    return page


def as_rich(table: Table) -> RichTable:
    """For the screen."""
    drawn = RichTable(title=table.title, title_justify="left", title_style="bold")
    for column in table.header:
        drawn.add_column(column, overflow="fold")
    for row in table.rows:
        drawn.add_row(*row)
    return drawn
