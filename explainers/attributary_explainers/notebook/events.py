"""Cards of events: their sentence, when, and changes in importance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ..ranking import BAND, largest_first
from .cards import Bar, Card, Cell, Shown, figure


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
