"""Numbers, gauges and tables: what is so at the end of the time range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from .draw_graphs import named, overrides
from .grafana import Asked, Session, renamed, transformed
from .units import coloured, shown


def number(
    frame: Axes, panel: Mapping[str, Any], asked: Sequence[Asked], now: float, inches: tuple[float, float]
) -> None:
    """One large number, or a name; behind it how it came there."""
    defaults = panel["fieldConfig"]["defaults"]
    (one,) = asked
    series = one.answer[0]
    if panel["options"]["textMode"] == "name":
        text = renamed(one.legend, series.labels)
    else:
        text = shown(series.value, defaults["unit"], defaults.get("decimals"), now)
    colour = named(coloured(series.value, defaults["thresholds"]["steps"]))
    if panel["options"]["graphMode"] == "area" and len(series.points) > 1:
        values = [value for _, value in series.points]
        most = max(values) or 1
        where = [n / (len(values) - 1) for n in range(len(values))]
        frame.fill_between(where, [0.4 * value / most for value in values], color=colour, alpha=0.2, linewidth=0)
        frame.set(xlim=(0, 1), ylim=(0, 1))
    size = min(22, 1.3 * 72 * inches[0] / max(len(text), 5))
    frame.text(0.5, 0.42, text, ha="center", va="center", fontsize=size, color=colour, weight="bold",
               transform=frame.transAxes)  # fmt: skip


def gauges(axes: Axes, panel: Mapping[str, Any], asked: Sequence[Asked], session: Session) -> None:
    """A bar for each series, the largest above."""
    defaults = panel["fieldConfig"]["defaults"]
    found = [(renamed(one.legend, series.labels), series.value) for one in asked for series in one.answer]
    found.sort(key=lambda pair: pair[1])
    most = defaults.get("max") or max(value for _, value in found) or 1
    for row, (_, value) in enumerate(found):
        colour = named(coloured(value, defaults["thresholds"]["steps"]))
        axes.barh(row, most, 0.7, color="#ececec")
        axes.barh(row, value, 0.7, color=colour)
        axes.text(most * 1.02, row, shown(value, defaults["unit"]), va="center", color=colour, weight="bold")
    axes.set(xlim=(0, most), xticks=[], ylim=(-0.6, max(len(found), 4) - 0.4))
    axes.set_yticks(range(len(found)), [name for name, _ in found])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def table(
    frame: Axes, panel: Mapping[str, Any], asked: Sequence[Asked], now: float, inches: tuple[float, float]
) -> None:
    """Rows and columns after the panel's transformations: joined, filtered, renamed, sorted."""
    columns, rows = transformed(panel, asked)
    sort_by = panel["options"].get("sortBy") or []
    if sort_by and sort_by[0]["displayName"] in columns:
        column = columns.index(sort_by[0]["displayName"])
        rows.sort(key=lambda row: _as_number(row[column]), reverse=True)
    texts = [[_cell(panel, name, value, now)[0] for name, value in zip(columns, row, strict=True)] for row in rows]
    widths = [max(len(line[n]) for line in [columns, *texts]) + 2.5 for n in range(len(columns))]
    lefts = [sum(widths[:n]) / sum(widths) for n in range(len(columns))]
    line = 0.24 / inches[1]
    y = 1 - 0.42 / inches[1]
    edge = 0.08 / inches[0]
    for name, left in zip(columns, lefts, strict=True):
        frame.text(edge + left, y, name, color="#3274d9", va="center", fontsize=7)
    for row in rows[: int(y / line) - 1]:
        y -= line
        frame.plot([0, 1], [y + line / 2] * 2, color="#e3e5e6", linewidth=0.6)
        for name, value, left, width in zip(columns, row, lefts, widths, strict=True):
            text, colour = _cell(panel, name, value, now)
            if "gauge" in str(overrides(panel, name).get("custom.cellOptions")):
                most = max(_as_number(one[columns.index(name)]) for one in rows) or 1
                wide = max(0.0, _as_number(value) / most) * width / sum(widths) * 0.55
                frame.add_patch(Rectangle((edge + left + width / sum(widths) * 0.38, y - line * 0.3), wide, line * 0.6,
                                          color="#56a64b", linewidth=0))  # fmt: skip
            frame.text(edge + left, y, text, va="center", fontsize=7, color=colour)
    frame.set(xlim=(0, 1), ylim=(0, 1))


def _cell(panel: Mapping[str, Any], name: str, value: Any, now: float) -> tuple[str, str]:
    if value is None:
        return "", "black"
    own = overrides(panel, name)
    if isinstance(value, str):
        return value, "#1f60c4" if "links" in own else "black"
    unit = own.get("unit", panel["fieldConfig"]["defaults"]["unit"])
    colour = named(coloured(value, own["thresholds"]["steps"])) if "thresholds" in own else "black"
    return shown(value, unit, own.get("decimals"), now), colour


def _as_number(value: Any) -> float:
    return value if isinstance(value, float) else float("-inf")
