"""What is won and what is paid: drifts found and delays against false explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.change.report import SLOW, explanation_delay, pooled_found, pooled_rate
from benchmarks.change.settings import DELTA_SETTINGS, DETECTOR_SETTINGS, THRESHOLD_SETTINGS, WINDOW_SETTINGS, Setting
from benchmarks.papers.figures import COLOURS, figure, label_axes

SERIES: Mapping[str, tuple[Sequence[Setting], Callable[[Setting], str]]] = {
    **{
        f"{route}: τ": ([s for s in THRESHOLD_SETTINGS if s.route == route], lambda s: f"{s.threshold:g}")
        for route in ("discrepancy", "both")
    },
    "both: K at τ = 0.2": ([s for s in WINDOW_SETTINGS if s.threshold == 0.2], lambda s: str(s.window)),
    "detector: δ": ([s for s in DELTA_SETTINGS if s.route == "detector"], lambda s: f"{s.delta:g}"),
    "other detectors": ([s for s in DETECTOR_SETTINGS if s.detector != "adwin"], lambda s: str(s.detector)),
}


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Points for settings, joined along the parameter that is changed.

    Raises
    ------
    RuntimeError
        matplotlib is absent.
    """
    panels: list[tuple[str, Callable[[Setting], float | None]]] = [
        ("slow drifts found, %", lambda s: 100 * pooled_found(results, s, SLOW)[0]),
        ("sudden drift: median delay", lambda s: explanation_delay(results, s, "hyperplane-sudden")),
        ("creeping drift: median delay", lambda s: explanation_delay(results, s, "hyperplane-creeping")),
    ]
    known = results["grid"]["hyperplane-sudden"]
    with figure(path, len(panels), width=5.5, height=4.5) as axes:
        for axis, (title, value) in zip(axes, panels, strict=True):
            for number, (name, (settings, text)) in enumerate(SERIES.items()):
                there = [(s, y) for s in settings if s.name in known and (y := value(s)) is not None]
                points = [(pooled_rate(results, s, "explained")[0], y) for s, y in there]
                joined = "o" if name == "other detectors" else "o-"
                axis.plot(
                    [x for x, _ in points],
                    [y for _, y in points],
                    joined,
                    color=COLOURS[number],
                    label=name,
                    markersize=4,
                    linewidth=0.8,
                )
                for (setting, _), point in zip(there, points, strict=True):
                    axis.annotate(text(setting), point, xytext=(3, 3), textcoords="offset points", fontsize=6)
            axis.set_xscale("symlog", linthresh=1.0)
            label_axes(axis, "false drifts per 100 000 observations", title, legend=axis is axes[-1], title=title)
