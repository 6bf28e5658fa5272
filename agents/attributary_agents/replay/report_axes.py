"""Places things in a chart of the report: ranges, ticks, and the names of lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 1000.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 800.0, 26.0, 276.0
"""The plot inside a line chart; the lines' names are to the right of it."""
N_COLOURS = 8
LABEL_GAP = 16.0
"""Height of a line's name."""

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
    shown = [sorted(y for _, y, _ in line.points if y is not None) for line in lines]
    # Means of the first few observations can be many times all later ones, and their bands larger still.
    low = min([low, *(values[len(values) // 10] for values in shown)])
    high = max([high, *(values[-1 - len(values) // 10] for values in shown)])
    room = high - low
    least = min([low, *(values[0] for values in shown)])
    most = max([high, *(values[-1] for values in shown)])
    low = least if least >= low - room else low - room / 2
    high = most if most <= high + room else high + room / 2
    edges = [y + sign * (e or 0) for line in lines for _, y, e in line.points if y is not None for sign in (-1, 1)]
    room = 0.2 * (high - low)
    low, high = max(min([low, *edges]), low - room), min(max([high, *edges]), high + room)
    return widened(low, high + 0.04 * (high - low))


def ticks(low: float, high: float, n: int) -> Iterator[tuple[float, str]]:
    """Return about `n` round values of the range, with their texts."""
    rough = (high - low) / n
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        text = f"{i * step:,.{digits}f}" if digits < 7 else f"{i * step:.2g}"
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
