"""The tables, for the screen and for the page on choosing; both are made of the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.change.counting import PER, poisson, wilson
from benchmarks.change.settings import (
    DELTA_SETTINGS,
    DETECTOR_SETTINGS,
    ROUTE_SETTINGS,
    THRESHOLD_SETTINGS,
    WINDOW_SETTINGS,
    Setting,
)
from benchmarks.change.streams import STREAMS, Stream
from benchmarks.tables import Table, filled

Results = Mapping[str, Any]

STATIONARY = [stream for stream in STREAMS if stream.drift is None]
DRIFTING = [stream for stream in STREAMS if stream.drift is not None]
SUDDEN = [stream for stream in DRIFTING if stream.name.endswith("sudden")]
SLOW = [stream for stream in DRIFTING if stream.name.endswith(("turning", "creeping"))]
NEVER = "–"
"""For a delay that the run is too short for, because the drift was missed too often; and for what there is not."""


def tables(results: Results) -> list[Table]:
    """All of them."""
    return [
        _false(results),
        _found(results),
        _settings(results, "threshold", "Routes and τ (K = 1000, ADWIN δ = 0.025)", THRESHOLD_SETTINGS),
        _settings(results, "window", "K and τ (both routes, δ = 0.025)", WINDOW_SETTINGS),
        _settings(results, "delta", "δ of ADWIN (K = 1000, τ = 0.2)", DELTA_SETTINGS),
        _settings(results, "detector", "Detectors at their defaults, alone (K = 1000)", DETECTOR_SETTINGS),
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
        for setting in ROUTE_SETTINGS:
            cell = results["cells"][stream.name][setting.name]
            alarms, rejected, explained = (_rate(cell[name]) for name in ("alarms", "rejected", "explained"))
            if setting.route == "paper":  # it tells no alarm
                alarms = rejected = NEVER
            rows.append((stream.title.partition(",")[0], setting.route, alarms, rejected, explained))
    header = ("stream", "route", "alarms", "not confirmed", "told as drift")
    return Table("false", "Stationary streams, per 100 000 observations", header, rows)


def _found(results: Results) -> Table:
    rows = []
    for stream in DRIFTING:
        for setting in ROUTE_SETTINGS:
            cell = results["cells"][stream.name][setting.name]
            rows.append(
                (
                    stream.title,
                    setting.route,
                    f"{percent(cell['share'])} ({100 * cell['low']:.0f}–{100 * cell['high']:.0f})",
                    _delay(cell["alarm"]),
                    _delay(cell["explanation"]),
                    number(cell["explained_after"]),
                    NEVER if setting.route == "paper" else number(cell["rejected_after"]),
                )
            )
    header = ("drift", "route", "found", "alarm after", "explanation after", "explanations", "not confirmed")
    return Table("found", "Drift: told at all, and when", header, rows)


def _delay(delay: Mapping[str, float | None]) -> str:
    return f"{number(delay['median'])} ({number(delay['q90'])})"


def pooled_rate(results: Results, setting: Setting, name: str) -> tuple[float, float, float]:
    """A rate over all stationary streams, with its interval; of `explained`, all are false."""
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
        false, low, high = pooled_rate(results, setting, "explained")
        slow, slow_low, slow_high = pooled_found(results, setting, SLOW)
        rows.append(
            (
                *_what(name, setting),
                f"{number(false)} ({between(low, high)})",
                number(pooled_rate(results, setting, "alarms")[0]),
                percent(pooled_found(results, setting, SUDDEN)[0]),
                f"{percent(slow)} ({100 * slow_low:.0f}–{100 * slow_high:.0f})",
                number(explanation_delay(results, setting, "hyperplane-sudden")),
                number(explanation_delay(results, setting, "hyperplane-turning")),
                number(explanation_delay(results, setting, "hyperplane-creeping")),
                str(results["grid"]["hyperplane-sudden"][setting.name]["runs"]),
            )
        )
    keys = {
        "threshold": ("route", "τ"), "delta": ("route", "δ"), "window": ("K", "τ"), "detector": ("detector",),
    }[name]  # fmt: skip
    header = (
        *keys, "false drifts", "alarms", "sudden found", "slow found", "delay: sudden", "turning", "creeping", "runs",
    )  # fmt: skip
    return Table(name, title, header, rows)


def _what(name: str, setting: Setting) -> tuple[str, ...]:
    return {
        "threshold": (setting.route, NEVER if setting.route == "detector" else f"{setting.threshold:g}"),
        "delta": (setting.route, f"{setting.delta:g}" if setting.delta else ""),
        "window": (str(setting.window), f"{setting.threshold:g}"),
        "detector": (str(setting.detector),),
    }[name]


def fill(page: str, results: Results) -> str:
    """The page with these results."""
    return filled(page, tables(results))
