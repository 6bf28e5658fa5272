"""The papers' kinds of figures. matplotlib is imported when one is drawn, and only then needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000")
"""Okabe and Ito's palette: told apart by colour-blind readers too."""
GREY = "#BBBBBB"

NO_MATPLOTLIB = "figures need matplotlib: pip install 'attributary[plot]'"

Line = tuple[Sequence[float], Sequence[float]]
"""Positions and values."""


def matplotlib_is_there() -> bool:
    """Whether figures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def figure(path: Path, columns: int = 1, *, width: float = 7.0, height: float = 3.6, title: str = "") -> Iterator[Any]:
    """Axes side by side, as a list, to be drawn into; saved to the path (its suffix is the format) and closed.

    Raises
    ------
    RuntimeError
        matplotlib is absent; the message says how to install it.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise RuntimeError(NO_MATPLOTLIB) from None
    drawn = Figure(figsize=(width * columns, height), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(1, columns, squeeze=False)[0].tolist()
    yield axes
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    if title:
        drawn.suptitle(title, fontsize=10)
    drawn.savefig(path, dpi=110)


def draw_lines(
    axis: Any,
    lines: Mapping[str, Line],
    *,
    highlighted: Sequence[str] = (),
    style: str = "-",
    label: str = "{}",
    marks: Sequence[float] = (),
) -> None:
    """A line per name: coloured where highlighted (all, if none are named), grey otherwise; dashed marks upright."""
    names = list(highlighted) or list(lines)
    for name, (positions, values) in lines.items():
        if name not in names:
            axis.plot(positions, values, style, color=GREY, linewidth=0.7, zorder=1)
    for number, name in enumerate(names):
        if name in lines:
            axis.plot(
                *lines[name], style, color=COLOURS[number % len(COLOURS)], linewidth=1.3, label=label.format(name)
            )
    for mark in marks:
        axis.axvline(mark, color="black", linestyle="--", linewidth=0.8)


def label_axes(axis: Any, x: str, y: str, *, legend: bool = True, title: str = "") -> None:
    """Names of the axes, and a legend beside the data."""
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    if title:
        axis.set_title(title, fontsize=9)
    if legend:
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7, frameon=False)


def change_bars(before: Mapping[str, float], after: Mapping[str, float], path: Path, *, title: str, unit: str) -> None:
    """Importance before and after, feature by feature (Change, Figs. 4 and 6)."""
    names = list(before)
    with figure(path, title=title) as (axis,):
        places = range(len(names))
        axis.bar([p - 0.2 for p in places], [before[name] for name in names], 0.4, color=COLOURS[0], label="before")
        axis.bar([p + 0.2 for p in places], [after[name] for name in names], 0.4, color=COLOURS[1], label="after")
        axis.set_xticks(list(places), names, rotation=30, ha="right", fontsize=8)
        axis.axhline(0.0, color="black", linewidth=0.6)
        label_axes(axis, "", unit)


def boxes(groups: Mapping[str, Mapping[str, Sequence[float]]], path: Path, *, title: str, unit: str) -> None:
    """A panel per group with a box per feature (iPFI Fig. 15, iSAGE Figs. 5 and 8), on one scale."""
    with figure(path, len(groups), width=3.4, height=3.6, title=title) as axes:
        low = min((min(values) for group in groups.values() for values in group.values()), default=0.0)
        high = max((max(values) for group in groups.values() for values in group.values()), default=1.0)
        for axis, (name, features) in zip(axes, groups.items(), strict=True):
            axis.boxplot(list(features.values()), medianprops={"color": "#D55E00"})
            axis.set_xticks(range(1, len(features) + 1), list(features), rotation=60, ha="right", fontsize=7)
            margin = 0.05 * (high - low)
            axis.set_ylim(low - margin, high + margin)
            label_axes(axis, "", unit, legend=False, title=name)
