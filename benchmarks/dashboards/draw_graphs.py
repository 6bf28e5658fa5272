"""Graphs over time, bars side by side, and coloured lines of states."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .grafana import Asked, Session, renamed
from .units import shown

_PALETTE = (
    "#3274d9", "#56a64b", "#f2cc0c", "#ff780a", "#8f3bb8", "#1f9ea8", "#a16a3f", "#6e7b8b", "#e377c2",
    "#0a437c", "#9acd32", "#b39ddb", "#00695c",
)  # fmt: skip
_NAMED = {"red": "#e02f44", "green": "#56a64b", "yellow": "#e0b400", "blue": "#3274d9"}
_LEGEND_LINES = 4
_colours: dict[str, str] = {}


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """The same name, the same colour, in every panel; two names of one panel have two colours."""
    chosen: dict[str, str] = {}
    for name in names:
        colour = _colours.get(name, _PALETTE[len(_colours) % len(_PALETTE)])
        if colour in chosen.values():
            colour = next((free for free in _PALETTE if free not in chosen.values()), colour)
        chosen[name] = _colours[name] = colour
    return chosen


def named(colour: str) -> str:
    """A colour of Grafana's."""
    return _NAMED.get(colour, colour)


def overrides(panel: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What is set for the series of that name alone."""
    return {
        found["id"]: found.get("value")
        for one in panel["fieldConfig"]["overrides"]
        if one["matcher"]["options"] == name
        for found in one["properties"]
    }


def graph(axes: Axes, panel: Mapping[str, Any], asked: Sequence[Asked], session: Session) -> None:
    """Lines, stacked areas or bars; a band between two of them."""
    defaults = panel["fieldConfig"]["defaults"]
    custom, unit = defaults["custom"], defaults["unit"]
    lines = _lines(asked, session)
    where = np.arange(len(next(iter(lines.values())))) * session.step_s + session.start
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    base = np.zeros(len(where))
    right: Axes | None = None
    colours = colours_of(sorted(lines))
    for name in sorted(lines) if stacked else lines:
        values, own = lines[name], overrides(panel, name)
        colour = named(own["color"]["fixedColor"]) if "color" in own else colours[name]
        dashed = (0, (5, 3)) if "custom.lineStyle" in own else "-"
        if below := own.get("custom.fillBelowTo"):
            axes.fill_between(where, lines[below], values, color=colour, alpha=0.25, linewidth=0)
        elif own.get("custom.lineWidth") == 0:
            continue
        elif custom["drawStyle"] == "bars":
            heights = np.nan_to_num(values)
            wide = max(session.step_s, (session.end - session.start) / 150)
            axes.bar(where, heights, wide, bottom=base, color=colour, label=name, linewidth=0)
            base = base + heights
        elif stacked:
            heights = np.nan_to_num(values)
            axes.fill_between(where, base, base + heights, color=colour, alpha=0.75, linewidth=0, label=name)
            base = base + heights
        elif own.get("custom.axisPlacement") == "right":
            right = axes.twinx()
            right.plot(where, values, color=colour, linewidth=0.9, alpha=0.8)
            right.set_ylim(bottom=0)
            right.spines["right"].set_visible(True)
            right.yaxis.set_major_formatter(FuncFormatter(lambda v, _, of=own["unit"]: shown(v, of)))
            right.tick_params(length=2)
            axes.plot([], [], color=colour, label=f"{name} (right)")
        else:
            axes.plot(where, values, color=colour, linewidth=1.2, linestyle=dashed, label=name)
    if custom.get("thresholdsStyle", {}).get("mode") == "dashed":
        for step in defaults["thresholds"]["steps"][1:]:
            axes.axhline(step["value"], color=named(step["color"]), linestyle=(0, (5, 3)), linewidth=1)
    if defaults.get("min") is not None:
        axes.set_ylim(bottom=defaults["min"])
    if defaults.get("max") is not None:
        axes.set_ylim(top=defaults["max"] * 1.02)
    if (up_to := custom.get("axisSoftMax")) is not None:
        axes.set_ylim(top=max(axes.get_ylim()[1], up_to * 1.05))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: shown(v, unit)))
    axes.grid(axis="y", color="#e3e5e6", linewidth=0.6)
    axes.set_axisbelow(True)
    over_time(axes, session)
    if panel["options"]["legend"]["showLegend"]:
        legend(axes)


def _lines(asked: Sequence[Asked], session: Session) -> dict[str, Any]:
    n = int((session.end - session.start) / session.step_s) + 1
    lines: dict[str, Any] = {}
    for one in asked:
        for series in one.answer:
            values = np.full(n, math.nan)
            for at, value in series.points:
                values[round((at - session.start) / session.step_s)] = value
            lines[renamed(one.legend, series.labels).strip()] = values
    return lines


def over_time(axes: Axes, session: Session) -> None:
    """The time of day below."""
    axes.set_xlim(session.start, session.end)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: datetime.fromtimestamp(v).strftime("%H:%M:%S")))
    axes.tick_params(length=2)


def legend_size(labels: Sequence[str], wide: float) -> tuple[int, int]:
    """Columns and lines of a legend that is so many inches wide."""
    longest = max((len(label) for label in labels), default=1)
    columns = max(1, int((wide + 0.3) / (0.32 + 0.06 * longest)))
    return columns, min(_LEGEND_LINES, -(-len(labels) // columns))


def legend(axes: Axes) -> None:
    """Below, in as many lines as there is room for; Grafana's scrolls."""
    handles, labels = axes.get_legend_handles_labels()
    size = axes.get_window_extent()
    columns, lines = legend_size(labels, size.width / axes.figure.dpi)
    shown_labels = labels[: columns * lines]
    if len(shown_labels) < len(labels):
        shown_labels[-1] = f"… {len(labels) - len(shown_labels) + 1} more"
    axes.legend(
        handles[: columns * lines], shown_labels, loc="upper left", ncols=columns, frameon=False,
        bbox_to_anchor=(-0.02, -0.3 / (size.height / axes.figure.dpi)),
        fontsize=6.5, handlelength=1.2, columnspacing=1.0, borderaxespad=0, labelspacing=0.25,
    )  # fmt: skip


def timeline(axes: Axes, panel: Mapping[str, Any], asked: Sequence[Asked], session: Session) -> None:
    """A line of coloured pieces for each series; their value written where there is room."""
    least, most = (panel["fieldConfig"]["defaults"][end] for end in ("min", "max"))
    lines = _lines(asked, session)
    colours = colormaps["RdYlGn_r"]
    names = sorted(lines, key=lambda name: np.nan_to_num(lines[name], nan=most + 1)[-1], reverse=True)
    for row, name in enumerate(names):
        values = lines[name]
        begins = 0
        for n in range(1, len(values) + 1):
            if n < len(values) and (values[n] == values[begins] or (np.isnan(values[n]) and np.isnan(values[begins]))):
                continue
            if not np.isnan(values[begins]):
                at, wide = session.start + begins * session.step_s, (n - begins) * session.step_s
                shade = colours((values[begins] - least) / (most - least))
                axes.broken_barh([(at, wide)], (row - 0.44, 0.88), color=shade, linewidth=0)
                if most > 1 and wide > (session.end - session.start) / 40:
                    axes.text(at + wide / 2, row, f"{values[begins]:.0f}", ha="center", va="center", fontsize=6.5)
            begins = n
    axes.set_yticks(range(len(names)), names)
    over_time(axes, session)


def bars(axes: Axes, panel: Mapping[str, Any], asked: Sequence[Asked], session: Session) -> None:
    """Groups of bars, one for each query."""
    key = panel["options"]["xField"]
    names = {one.ref: re.sub("__auto", "", one.legend) for one in asked}
    found = {one.ref: {series.labels[key]: series.value for series in one.answer} for one in asked}
    keys = sorted({k for values in found.values() for k in values})
    for n, (ref, values) in enumerate(found.items()):
        where = np.arange(len(keys)) + (n - (len(found) - 1) / 2) * 0.38
        axes.bar(where, [values.get(k, math.nan) for k in keys], 0.36, color=_PALETTE[n], label=names[ref])
    axes.set_xticks(range(len(keys)), keys)
    axes.grid(axis="y", color="#e3e5e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.axhline(0, color="#9a9a9a", linewidth=0.6)
    legend(axes)
