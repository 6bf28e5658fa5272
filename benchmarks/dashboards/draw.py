"""Draws a dashboard in its own grid: what Prometheus answered to each panel's own queries, with matplotlib.

Not Grafana: type, spacing and colours are only like its own. What a panel shows is taken from its JSON: queries,
legends, units, thresholds, columns, stacks, bands.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from .draw_graphs import bars, graph, legend_size, timeline
from .draw_values import gauges, number, table
from .grafana import Session, renamed

WIDTH_IN, UNIT_IN, DPI = 15.0, 0.34, 84
"""Of the picture; and the height of a unit of the grid."""
_LONGEST = 34
"""Units of height of a picture, beyond which the next heading begins another."""


def draw(session: Session, folder: Path) -> list[Path]:
    """Write the dashboard as one or more pictures."""
    written = []
    with mpl.rc_context({"font.size": 7.5, "axes.spines.top": False, "axes.spines.right": False}):
        for number_of, part in enumerate(parts(expanded(session)), start=1):
            path = folder / f"{session.dashboard['uid'].removeprefix('attributary-')}-{number_of}.png"
            _draw(session, part, path)
            written.append(path)
    return written


def expanded(session: Session) -> list[dict[str, Any]]:
    """The panels as Grafana lays them out: a repeated one stands once for each value of its variable."""
    panels = []
    for panel in session.dashboard["panels"]:
        if not (name := panel.get("repeat")):
            panels.append(panel)
            continue
        at, each = panel["gridPos"], 24 // panel["maxPerRow"]
        for n, value in enumerate(session.options(name)):
            one = deepcopy(panel)
            one["only"] = {name: value}
            one["title"] = panel["title"].replace(f"${name}", value)
            one["gridPos"] = {**at, "x": n * each % 24, "y": at["y"] + n * each // 24 * at["h"], "w": each}
            panels.append(one)
    return panels


def parts(panels: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Cut at headings into pieces of a height that a page takes."""
    part: list[dict[str, Any]] = []
    for panel in panels:
        top = part[0]["gridPos"]["y"] if part else 0
        if panel["type"] == "row" and part and _bottom(part) + _section(panels, panel) - top > _LONGEST:
            yield part
            part = []
        part.append(panel)
    yield part


def _bottom(panels: Sequence[dict[str, Any]]) -> int:
    return max(int(panel["gridPos"]["y"]) + int(panel["gridPos"]["h"]) for panel in panels)


def _section(panels: Sequence[dict[str, Any]], heading: dict[str, Any]) -> int:
    following = panels[panels.index(heading) :]
    ends = next((n for n, panel in enumerate(following) if n and panel["type"] == "row"), len(following))
    return _bottom(following[:ends]) - int(heading["gridPos"]["y"])


def _draw(session: Session, panels: Sequence[dict[str, Any]], path: Path) -> None:
    top = min(panel["gridPos"]["y"] for panel in panels)
    height = _bottom(panels) - top
    figure = Figure(figsize=(WIDTH_IN, height * UNIT_IN), dpi=DPI, facecolor="#f4f5f5")
    marks = session.marks()
    for panel in panels:
        at = panel["gridPos"]
        gap_x, gap_y = 0.05 / WIDTH_IN, 0.04 / (height * UNIT_IN)
        box = (
            at["x"] / 24 + gap_x,
            1 - (at["y"] - top + at["h"]) / height + gap_y,
            at["w"] / 24 - 2 * gap_x,
            at["h"] / height - 2 * gap_y,
        )
        _panel(session, panel, figure, box, marks)
    figure.savefig(path)
    # A palette: a third of the size.
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


def _panel(
    session: Session,
    panel: dict[str, Any],
    figure: Figure,
    box: tuple[float, float, float, float],
    marks: Sequence[tuple[float, str, str]],
) -> None:
    frame = figure.add_axes(box)
    frame.set(xticks=[], yticks=[])
    if panel["type"] == "row":
        frame.axis("off")
        frame.text(0.002, 0.4, f"▾ {panel['title']}", fontsize=10, weight="bold", va="center")
        return
    for spine in frame.spines.values():
        spine.set(visible=True, color="#d8d9da")
    inches = (box[2] * WIDTH_IN, box[3] * figure.get_size_inches()[1])
    title = 0.24 / inches[1]
    frame.text(0.06 / inches[0], 1 - title / 2, session.text(panel["title"]), weight="bold", va="center", fontsize=8)
    if panel["type"] == "text":
        _text(frame, session.text(panel["options"]["content"]), inches)
        return
    asked = session.only(panel.get("only", {})).ask(panel)
    if not any(one.answer for one in asked):
        frame.text(0.5, 0.45, panel["fieldConfig"]["defaults"]["noValue"], ha="center", color="#666666", fontsize=9)
        return
    kind = panel["type"]
    if kind in ("stat", "table"):
        (number if kind == "stat" else table)(frame, panel, asked, session.end, inches)
        return
    left, right = (0.62, 0.5) if _has_right(panel) else (0.62, 0.12)
    if kind in ("bargauge", "state-timeline"):
        longest = max(len(renamed(one.legend, s.labels)) for one in asked for s in one.answer)
        left, right = 0.2 + 0.06 * longest, 0.6 if kind == "bargauge" else 0.12
    low = 0.29
    if kind in ("timeseries", "barchart") and panel["options"]["legend"]["showLegend"]:
        names = [name.strip() for one in asked for name in one.names()]
        low += 0.06 + 0.125 * legend_size(names, box[2] * WIDTH_IN - left - right)[1]
    inner = figure.add_axes(
        (
            box[0] + left / WIDTH_IN,
            box[1] + low / figure.get_size_inches()[1],
            box[2] - (left + right) / WIDTH_IN,
            box[3] - (low + 0.3) / figure.get_size_inches()[1],
        )
    )
    {"timeseries": graph, "state-timeline": timeline, "bargauge": gauges, "barchart": bars}[kind](
        inner, panel, asked, session
    )
    if kind in ("timeseries", "state-timeline"):
        for when, colour, _ in marks:
            inner.axvline(when, color=colour, linestyle=(0, (3, 2)), linewidth=0.9, zorder=5)
            inner.plot(
                when, 0, marker="^", color=colour, markersize=4, clip_on=False, transform=inner.get_xaxis_transform()
            )
        inner.set_xlim(session.start, session.end)


def _has_right(panel: Mapping[str, Any]) -> bool:
    return "custom.axisPlacement" in str(panel["fieldConfig"]["overrides"])


def _text(frame: Axes, content: str, inches: tuple[float, float]) -> None:
    plain = re.sub(r"[*`]", "", content)
    wide = int(inches[0] * 16.5)
    paragraphs = re.split(r"\n\n|\n(?=- )", plain.strip())
    lines = ""
    for paragraph in paragraphs:
        item = paragraph.startswith("-")
        lines += "\n" if item else "\n\n" if lines else ""
        lines += textwrap.fill(" ".join(paragraph.split()), wide, subsequent_indent="  " if item else "")
    frame.text(0.08 / inches[0], 1 - 0.34 / inches[1], lines, va="top", fontsize=7.5, linespacing=1.35)
