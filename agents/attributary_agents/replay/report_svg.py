"""Charts for the report as inline SVG: lines with error bands over observations, and before/after bars.

Every text that goes in comes from outside (feature names, model ids), so every text goes through `escape`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .report_axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axes, Line, Point, spread, ticks, widened, y_range
from .report_page import escape, number

_LABEL = 26
"""Characters beside the end of a line: its name, and its last value."""
_BAR_LEFT, _BAR_RIGHT, _BAR_ROW = 200.0, 720.0, 40.0


@dataclass(frozen=True)
class Mark:
    """Marks a model change: a vertical line at `at` with its number, and a shade back to the alarm at `since`."""

    number: int
    since: float
    at: float
    href: str


@dataclass(frozen=True)
class Bars:
    """Holds one feature before and after: value and half the width of its interval each, and the text beside them."""

    name: str
    before: tuple[float | None, float | None]
    after: tuple[float | None, float | None]
    note: str


def line_chart(
    title: str,
    lines: Sequence[Line],
    x_range: tuple[float, float],
    marks: Sequence[Mark] = (),
    level: tuple[str, float] | None = None,
    dots: Sequence[tuple[float, float]] = (),
) -> str:
    """Draw lines over observations, with their names at the right end; lines without a value are left out.

    Parameters
    ----------
    x_range
        First and last observation; charts with the same one can be compared from top to bottom.
    level
        Name and value of a horizontal line.
    dots
        Observation and value of single points.
    """
    lines = [line for line in lines if any(y is not None for _, y, _ in line.points)]
    axes = Axes(widened(*x_range), y_range(lines, [*(y for _, y in dots), *([level[1]] if level else [])]))
    parts = [*_grid(axes), *_marks(axes, marks)]
    if level is not None:
        y = axes.py(level[1])
        parts.append(f'<path class="level" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(f'<text class="tick" x="{LEFT + 4}" y="{y - 5:.1f}">{escape(level[0])} {number(level[1])}</text>')
    ends = [next(((axes.px(x), axes.py(y), y) for x, y, _ in reversed(line.points) if y is not None)) for line in lines]
    places = spread([y for _, y, _ in ends])
    for line, (x, y, value), place in zip(lines, ends, places, strict=True):
        leader = f'<path d="M{x:.1f} {y:.1f}L{RIGHT + 10} {place:.1f}H{RIGHT + 24}"/>'
        shown = number(value)
        label = (
            f'<text x="{RIGHT + 29}" y="{place + 4:.1f}"><title>{escape(line.name)}</title>'
            f'{_name(line.name, _LABEL - len(shown))}<tspan class="dim" dx="6">{shown}</tspan></text>'
        )
        kind = f"series c{line.colour}{' reference' if line.is_reference else ''}"
        parts.append(
            f'<g class="{kind}" data-name="{escape(line.name)}">'
            f'<g clip-path="url(#plot)">{_band(axes, line)}{"".join(_polylines(axes, line))}</g>{leader}{label}</g>'
        )
    parts += [f'<circle class="dot" cx="{axes.px(x):.1f}" cy="{axes.py(y):.1f}" r="4"/>' for x, y in dots]
    parts += _cut(axes, lines)
    parts.append(f'<path class="cross" d="M0 {TOP}V{BOTTOM}"/>')
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(title)}" '
        f'data-axes="{axes.inverse}">{"".join(parts)}</svg>'
    )


def _name(name: str, length: int) -> str:
    return escape(name or "(no name)", length)


def _cut(axes: Axes, lines: Sequence[Line]) -> Iterator[str]:
    points = [(y, x, line.name) for line in lines for x, y, _ in line.points if y is not None]
    if not points:
        return
    for (value, x, name), beyond, y in (
        (max(points), max(points)[0] > axes.y[1], TOP + 14),
        (min(points), min(points)[0] < axes.y[0], BOTTOM - 6),
    ):
        if beyond:  # said at the other end of the chart, away from the line
            left = axes.px(x) > (LEFT + RIGHT) / 2
            place = f'class="tick" x="{LEFT + 6}"' if left else f'class="tick end" x="{RIGHT - 6}"'
            yield f'<text {place} y="{y}">cut off: {_name(name, 15)} reaches {number(value)}</text>'


def _grid(axes: Axes) -> Iterator[str]:
    for value, text in ticks(*axes.y, 5):
        y = axes.py(value)
        yield f'<path class="{"zero" if value == 0 else "grid"}" d="M{LEFT} {y:.1f}H{RIGHT}"/>'
        yield f'<text class="tick end" x="{LEFT - 8}" y="{y + 4:.1f}">{text}</text>'
    for value, text in ticks(*axes.x, 8):
        x = axes.px(value)
        yield f'<path class="grid" d="M{x:.1f} {BOTTOM}v5"/>'
        yield f'<text class="tick mid" x="{x:.1f}" y="{BOTTOM + 19}">{text}</text>'
    yield f'<text class="tick mid" x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 37}">observations</text>'


def _marks(axes: Axes, marks: Sequence[Mark]) -> Iterator[str]:
    free_from = -math.inf
    for mark in marks:
        since, at = axes.px(mark.since), axes.px(mark.at)
        yield f'<rect class="since" x="{since:.1f}" y="{TOP}" width="{at - since:.1f}" height="{BOTTOM - TOP}"/>'
        yield f'<path class="mark" d="M{at:.1f} {TOP}V{BOTTOM}"/>'
        if at >= free_from:  # changes closer together than their numbers are wide: the first one's number stands
            yield (
                f'<a href="#{escape(mark.href)}"><circle class="badge" cx="{at:.1f}" cy="{TOP - 11}" r="10"/>'
                f'<text class="badge mid" x="{at:.1f}" y="{TOP - 7}">{mark.number}</text></a>'
            )
            free_from = at + 21


def _runs(points: Iterable[Point]) -> Iterator[list[tuple[float, float, float]]]:
    run: list[tuple[float, float, float]] = []
    for x, y, error in points:
        if y is not None:
            run.append((x, y, error or 0.0))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _polylines(axes: Axes, line: Line) -> Iterator[str]:
    for run in _runs(line.points):
        yield f'<polyline points="{" ".join(f"{axes.px(x):.1f},{axes.py(y):.1f}" for x, y, _ in run)}"/>'


def _band(axes: Axes, line: Line) -> str:
    bands = []
    for run in _runs(line.points):
        if any(error for _, _, error in run):
            edge = [(x, y + e) for x, y, e in run] + [(x, y - e) for x, y, e in reversed(run)]
            bands.append(f'<polygon points="{" ".join(f"{axes.px(x):.1f},{axes.py(y):.1f}" for x, y in edge)}"/>')
    return "".join(bands)


def bar_chart(title: str, bars: Sequence[Bars]) -> str:
    """Draw a hollow bar before and a full bar after for each feature, with their 95 % intervals."""
    sides = [side for row in bars for side in (row.before, row.after)]
    ends = [value + sign * (error or 0.0) for value, error in sides if value is not None for sign in (-1, 1)]
    low, high = widened(min([0.0, *ends]), max([0.0, *ends]))

    def px(value: float) -> float:
        return _BAR_LEFT + (value - low) / (high - low) * (_BAR_RIGHT - _BAR_LEFT)

    height = _BAR_ROW * len(bars)
    parts = [f'<path class="zero" d="M{px(0):.1f} 0V{height}"/>']
    for i, row in enumerate(bars):
        y = i * _BAR_ROW
        parts.append(f'<text class="end" x="{_BAR_LEFT - 10}" y="{y + 24}">{_name(row.name, 21)}</text>')
        parts.append(f'<text class="note" x="{_BAR_RIGHT + 14}" y="{y + 24}">{escape(row.note)}</text>')
        for kind, top, (value, error) in (("before", y + 6, row.before), ("after", y + 21, row.after)):
            if value is None:
                continue
            left, right = sorted((px(0), px(value)))
            tip = f"{escape(row.name)} {kind}: {number(value)} ± {number(error)}"
            bar = f'<rect class="{kind}" x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="12"/>'
            whisker = ""
            if error is not None:
                a, b = px(value - error), px(value + error)
                whisker = f'<path class="error" d="M{a:.1f} {top + 3}v6m0-3H{b:.1f}m0-3v6"/>'
            parts.append(f"<g><title>{tip}</title>{bar}{whisker}</g>")
    return (
        f'<svg class="bars" viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )
