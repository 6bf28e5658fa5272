"""Writes the part of the report that says where a model's loss has shifted, and what has to do with it."""

from __future__ import annotations

from typing import Any

from attributary_explainers.ranking import BAND

from .report_page import escape, number
from .report_svg import Bars, Mark, bar_chart

Shift = list[dict[str, Any]]
"""The events of one shift of the loss, the first word first."""


def loss_marks(i: int, shifts: list[Shift], n_before: int) -> list[Mark]:
    """Return a mark for each shift, with a shade back to its onset.

    Parameters
    ----------
    i
        Number of the model's section.
    n_before
        Marks that are numbered before.
    """
    return [
        Mark(n, first["onset"]["observation"], first["detected_at"], f"loss-{i}-{n}")
        for n, (first, *_) in enumerate(shifts, start=n_before + 1)
    ]


def loss_shifts(shifts: list[Shift], marks: list[Mark]) -> str:
    """Return a card for each shift; nothing where there is none."""
    cards = "".join(_card(mark, shift) for mark, shift in zip(marks, shifts, strict=True))
    return f"<h3>Shifts of the loss</h3>{cards}" if cards else ""


def _card(mark: Mark, shift: Shift) -> str:
    first, *later = shift
    badge = f'<span class="badge">{mark.number}</span>'
    return (
        f'<article id="{mark.href}"><h4>{badge} {escape(first["sentence"])}</h4>'
        f'<p class="dim">{_facts(first)}</p>{"".join(_later(event) for event in later)}</article>'
    )


def _facts(event: dict[str, Any]) -> str:
    moved = event["model_loss"]
    return (
        f"Seen in its {escape(event['signal'])}; {number(event['n_reference'])} observations before, "
        f"{number(event['n_window'])} after. Mean {escape(event['loss'].replace('_', ' '))} in "
        f"{escape(event['loss_unit'])}: {number(moved['before'])} → {number(moved['after'])}, 95 % interval of the "
        f"difference {number(moved['low'])} to {number(moved['high'])}."
    )


def _later(event: dict[str, Any]) -> str:
    features = event.get("features", {})
    named = [_bars(name, feature) for name, feature in features.items() if feature["significant"]]
    chart = f'<div class="scroll">{bar_chart("Importance before and after", named)}</div>' if named else ""
    return f"<p>{number(event['observation'])}: {escape(event['sentence'])}</p>{chart}"


def _bars(name: str, feature: dict[str, Any]) -> Bars:
    before, after = feature["importance_before"], feature["importance_after"]
    error = feature["delta_std_error"]
    note = f"{number(before)} → {number(after)} (± {number(None if error is None else BAND * error)})"
    return Bars(name, (before, None), (after, None), note)
