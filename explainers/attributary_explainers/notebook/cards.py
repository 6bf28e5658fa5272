"""Cards: how notebooks show objects and events."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias

from ..ranking import BAND, largest_first
from ..wording import printable

MOST_ROWS = 20
"""Rows of a table that are shown; a sentence says how many more there are."""
_WIDTH = 160
_COLOUR = "#0068a8"


@dataclass(frozen=True)
class Bar:
    """A bar from 0 to a value, with a line over its 95 % interval.

    Attributes
    ----------
    value, half_width
        In the unit of the importance; NaN draws nothing of it.
    """

    value: float
    half_width: float = math.nan


Cell: TypeAlias = str | Bar


@dataclass(frozen=True)
class Card:
    """Display of an object in a notebook.

    Attributes
    ----------
    title
        The `repr` of the object, or what it is.
    text
        A sentence below the title; empty for none.
    facts
        Names and values, in their order.
    columns, rows
        A table: the first column is text, the others are numbers or bars.
    parts
        Cards below this one.
    """

    title: str
    text: str = ""
    facts: Sequence[tuple[str, str]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    parts: Sequence[Card] = ()

    def html(self) -> str:
        """Return the card as HTML: text escaped, nothing loaded from elsewhere."""
        inner = [f"<div><code>{escape(self.title)}</code></div>"]
        if self.text:
            inner.append(f"<p>{escape(self.text)}</p>")
        if self.facts:
            said = "; ".join(f"{escape(name)}: <b>{escape(value)}</b>" for name, value in self.facts)
            inner.append(f"<div>{said}</div>")
        if self.rows:
            inner.append(_table(self.columns, self.rows))
        inner += [part.html() for part in self.parts]
        return f'<div class="attributary">{"".join(inner)}</div>'


class Shown:
    """An object that a notebook shows by the card that `_card` returns."""

    __slots__ = ()

    def _card(self) -> Card:
        return Card(repr(self))

    def _repr_html_(self) -> str:
        return self._card().html()


def escape(text: str) -> str:
    """Return the text as HTML that shows it, with no markup in effect."""
    return html.escape(printable(text))


def figure(value: Any) -> str:
    """Return a value's text on a card: floats with four digits.

    Examples
    --------
    >>> figure(0.123456), figure(12345), figure(None), figure("size")
    ('0.1235', '12 345', '–', 'size')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else f"{value:.4g}"


def counts(by_name: Mapping[Any, int]) -> str:
    """Return a total and its parts, as `12 (missing 10, budget 2)`."""
    total, parts = sum(by_name.values()), [f"{name} {figure(n)}" for name, n in by_name.items() if n]
    return figure(total) + (f" ({', '.join(parts)})" if parts else "")


def importance_rows(importance: Mapping[Any, float], half_width: Mapping[Any, float]) -> list[list[Cell]]:
    """Return rows of name, importance, half width and bar, largest first."""
    return [
        [str(name), figure(importance[name]), figure(width), Bar(importance[name], width)]
        for name in most_important_first(importance)
        for width in [half_width.get(name, math.nan)]
    ]


IMPORTANCE_COLUMNS = ("feature", "importance", "± (95 %)", "")


def most_important_first(importance: Mapping[Any, float]) -> list[Any]:
    """Return names by importance, non-finite ones last, equals by name."""
    finite = {name: value if math.isfinite(value) else -math.inf for name, value in importance.items()}
    return sorted(finite, key=lambda name: (-finite[name], str(name)))


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    shown = rows[:MOST_ROWS]
    low, high = _range(cell for row in shown for cell in row if isinstance(cell, Bar))
    head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(_cell(cell, low, high) for cell in row)}</tr>" for row in shown)
    more = f"<div>and {len(rows) - len(shown)} more; to_frame() has all</div>" if len(rows) > len(shown) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _range(bars: Iterable[Bar]) -> tuple[float, float]:
    ends = [0.0]
    for bar in bars:
        width = bar.half_width if math.isfinite(bar.half_width) else 0.0
        ends += [end for end in (bar.value - width, bar.value + width) if math.isfinite(end)]
    return min(ends), max(ends)


def _cell(cell: Cell, low: float, high: float) -> str:
    if isinstance(cell, str):
        return f'<td style="text-align:left">{escape(cell)}</td>'
    if not math.isfinite(cell.value) or not math.isfinite(high - low) or high <= low:
        return "<td></td>"
    parts = [_mark(min(cell.value, 0.0), max(cell.value, 0.0), low, high, "3px", "10px", "0.75")]
    if math.isfinite(cell.half_width):
        ends = cell.value - cell.half_width, cell.value + cell.half_width
        parts.append(_mark(*ends, low, high, "7px", "2px", "1"))
    return f'<td><div style="position:relative;width:{_WIDTH}px;height:16px">{"".join(parts)}</div></td>'


def _mark(begin: float, end: float, low: float, high: float, top: str, height: str, opacity: str) -> str:
    left = _WIDTH * (begin - low) / (high - low)
    width = max(_WIDTH * (end - begin) / (high - low), 1.0)
    colour = _COLOUR if opacity != "1" else "currentColor"
    return (
        f'<span style="position:absolute;left:{left:.1f}px;width:{width:.1f}px;top:{top};height:{height};'
        f'background:{colour};opacity:{opacity}"></span>'
    )


class ShownEvent(Shown):
    """A dataclass shown by its sentence, if any, and its plain fields."""

    __slots__ = ()

    def _card(self) -> Card:
        sentence = getattr(self, "sentence", None)
        facts = [*_plain_fields(self)]
        changes = getattr(self, "importances", None)
        parts = [_of_change(name, one) for name, one in changes.items()] if isinstance(changes, Mapping) else []
        return Card(type(self).__name__, text=sentence() if callable(sentence) else "", facts=facts, parts=parts)


def _plain_fields(of: Any) -> list[tuple[str, str]]:
    assert is_dataclass(of)
    values = {one.name: getattr(of, one.name) for one in fields(of)}
    return [(name, figure(value)) for name, value in values.items() if isinstance(value, (str, int, float))]


def _of_change(method: str, change: Any) -> Card:
    rows: list[list[Cell]] = []
    for name in largest_first(change.delta, [*change.delta]):
        width = BAND * change.delta_std_error.get(name, float("nan"))
        values = [figure(of.get(name)) for of in (change.before, change.after)]
        rows.append([str(name), *values, figure(change.delta[name]), figure(width), Bar(change.delta[name], width)])
    columns = ("feature", "before", "after", "change", "± (95 %)", "")
    return Card(f"{method}, {change.unit}", columns=columns, rows=rows)
