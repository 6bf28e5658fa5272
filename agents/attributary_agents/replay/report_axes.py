"""Places things in a chart of the report: ranges, ticks, and the names of lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from attributary_explainers.wording import show_number

WIDTH, HEIGHT = 1000.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 84.0, 764.0, 26.0, 276.0
"""The plot inside a line chart; the lines' names are to the right of it."""
N_COLOURS = 8
LABEL_GAP = 16.0
"""Height of a line's name."""
_ABSURD = 10.0
"""Times the range of the middle half of the values: what is beyond it is no part of the picture."""
_UNITS = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))

Point = tuple[float, float | None, float | None]
"""Observation, value, half the width of its interval; a value of None is a gap in the line."""


@dataclass(frozen=True)
class Line:
    """Holds one line of a chart."""

    name: str
    points: Sequence[Point]
    colour: int
    """Number of the colour, less than `N_COLOURS`."""
    is_reference: bool = False
    """Whether it is what another line of its colour is compared with: thin and dashed."""


@dataclass(frozen=True)
class Axes:
    """Maps observation and value to a place in the plot; values beyond the range fall outside."""

    x: tuple[float, float]
    y: tuple[float, float]
    _scale: tuple[float, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        scale = (RIGHT - LEFT) / (self.x[1] - self.x[0]), (BOTTOM - TOP) / (self.y[1] - self.y[0])
        object.__setattr__(self, "_scale", scale)

    def px(self, x: float) -> float:
        """Return the horizontal place of an observation."""
        return LEFT + (x - self.x[0]) * self._scale[0]

    def py(self, y: float) -> float:
        """Return the vertical place of a value."""
        return BOTTOM - (y - self.y[0]) * self._scale[1]

    @property
    def inverse(self) -> str:
        """Return the coefficients with which the page's script reads values back: x = a + b px, y = c + d py."""
        b, d = 1 / self._scale[0], -1 / self._scale[1]
        return f"{self.x[0] - b * LEFT:.9g} {b:.9g} {self.y[0] - d * BOTTOM:.9g} {d:.9g}"


def widened(low: float, high: float) -> tuple[float, float]:
    """Return the range, or a wider one around it where it is a single value."""
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def y_range(lines: Sequence[Line], more: Sequence[float] = ()) -> tuple[float, float]:
    """Return the range to show: 0, `more`, and the lines without extremes that would flatten the rest."""
    low, high = min([0.0, *more]), max([0.0, *more])
    shown = [_by_size(line) for line in lines]
    # Means of the first few observations can be many times all later ones, and their bands larger still.
    low, high = min([low, *_ends(shown, 0.1)]), max([high, *_ends(shown, 0.9)])
    # A single absurd observation is forgotten slowly: it may fill a fifth of the chart.
    inner = min([0.0, *more, *_ends(shown, 0.25)]), max([0.0, *more, *_ends(shown, 0.75)])
    room = _ABSURD * (inner[1] - inner[0])
    low = inner[0] if low < inner[0] - room else low
    high = inner[1] if high > inner[1] + room else high
    room = high - low
    least = min([low, *(values[0][0] for values in shown)])
    most = max([high, *(values[-1][0] for values in shown)])
    low = least if least >= low - room else low - room / 2
    high = most if most <= high + room else high + room / 2
    edges = [y + sign * (e or 0) for line in lines for _, y, e in line.points if y is not None for sign in (-1, 1)]
    room = 0.2 * (high - low)
    low, high = max(min([low, *edges]), low - room), min(max([high, *edges]), high + room)
    return widened(low, high + 0.04 * (high - low))


def _by_size(line: Line) -> list[tuple[float, float]]:
    """Return the values of a line by their size, each with the share of the chart's width that lies before it."""
    # Events are close together where much changes: counted, a few bad hours would be most of the stream.
    spans = [(y, x - before) for (before, _, _), (x, y, _) in pairwise([line.points[0], *line.points]) if y is not None]
    total = sum(span for _, span in spans) or 1.0
    spans.sort()
    shares = accumulate(span / total for _, span in spans)
    return [(y, share) for (y, _), share in zip(spans, shares, strict=True)]


def _ends(shown: Sequence[Sequence[tuple[float, float]]], share: float) -> list[float]:
    """Return of each line the value below which so large a share of it lies."""
    return [next((y for y, below in values if below >= share), values[-1][0]) for values in shown]


def ticks(low: float, high: float, n: int) -> Iterator[tuple[float, str]]:
    """Return about `n` round values of the range, with their texts."""
    rough = (high - low) / n
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough)
    scale, word = next(((scale, word) for scale, word in _UNITS if max(abs(low), abs(high)) >= scale), (1.0, ""))
    digits = max(0, -math.floor(math.log10(step / scale) + 1e-9))
    for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        value = i * step / scale
        in_words = digits >= 7 or abs(value) >= 1e6
        text = show_number(i * step) if in_words else f"{value:,.{digits}f}{word if value else ''}"
        yield i * step, text.replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")


def spread(places: Sequence[float]) -> list[float]:
    """Return the places moved apart to at least a label's height, in their order, each crowd around its middle."""
    crowds: list[tuple[float, list[int]]] = []
    for i in sorted(range(len(places)), key=places.__getitem__):
        middle, members = places[i], [i]
        while crowds and middle - crowds[-1][0] < LABEL_GAP * (len(members) + len(crowds[-1][1])) / 2:
            members = crowds.pop()[1] + members
            half = LABEL_GAP * len(members) / 2
            mean = sum(places[j] for j in members) / len(members)
            middle = min(max(mean, TOP + half), BOTTOM + 16 - half)
        crowds.append((middle, members))
    moved = list(places)
    for middle, members in crowds:
        for k, i in enumerate(members):
            moved[i] = middle + LABEL_GAP * (k - (len(members) - 1) / 2)
    return moved
