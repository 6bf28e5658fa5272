"""Watches a model's importances for lasting shifts; makes their events.

The explainers of a model share the promise of `ImportanceShift`: at most one false shift per model and 10^6
observations.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from attributary_topics import (
    ImportanceShiftEvent,
    ImportanceShiftReleasedEvent,
    OnsetEstimate,
    Place,
    ShiftSize,
    event_id,
    source_of,
)

from ...shifts.events import Shift, ShiftEnd
from ...wording import show_count, show_number
from ..watched import Watched
from .events import finite

ShiftEvent = ImportanceShiftEvent | ImportanceShiftReleasedEvent

_DIRECTIONS = {"up": "rose", "down": "fell"}
_REASONS = {"released": "returned", "referenced": "settled", "replaced": "replaced"}


def shift_events(state: Watched, explained: Collection[str], source: Place, n_before: int) -> list[ShiftEvent]:
    """Feed the watches of these explainers; return the shift events.

    `n_before` events of the same observation come before these.
    """
    events: list[ShiftEvent] = []
    for name in explained:
        explainer, watch = state.explainers[name], state.shifts[name]
        told = watch.update(explainer, state.n_observations)
        if told is None:
            continue
        if state.incident_watch is not None:
            state.incident_watch.note(told)
        if isinstance(told, Shift):
            state.counts.shifts[name] += 1
            watch.open_id = event_id(state.model_id, source, n_before + len(events))
            events.append(ImportanceShiftEvent(**_fields(state, name, told, source)))
        else:
            events.append(_release(state, name, told, source))
    return events


def shifts_replaced(state: Watched, source: Place) -> list[ShiftEvent]:
    """End the open shifts before a new version; return their events."""
    ended = ((name, watch.shift.restart()) for name, watch in state.shifts.items())
    return [_release(state, name, end, source) for name, end in ended if end is not None]


def _release(state: Watched, name: str, end: ShiftEnd, source: Place) -> ImportanceShiftReleasedEvent:
    watch = state.shifts[name]
    change_id, watch.open_id = watch.open_id, None
    fields = _fields(state, name, end.shift, source, end)
    return ImportanceShiftReleasedEvent(**fields, change_id=change_id, reason=_REASONS[end.kind])


def _fields(state: Watched, name: str, shift: Shift, source: Place, end: ShiftEnd | None = None) -> dict[str, Any]:
    explainer, watch = state.explainers[name], state.shifts[name]
    after = shift.after if end is None else end.now
    value, size = after.value, after.value - shift.before.value
    half = math.hypot(shift.before.high - shift.before.low, after.high - after.low) / 2.0
    return {
        "model_id": state.model_id,
        "model_version": state.version,
        "explainer": name,
        "feature": str(shift.feature),
        "direction": _DIRECTIONS[shift.direction],
        "observation": state.n_observations,
        "detected_at": shift.n_observations,
        "onset": OnsetEstimate(shift.onset, None, shift.n_observations),
        "reference_at": watch.reference_at,
        "before": finite(shift.before.value),
        "after": finite(value),
        "size": ShiftSize(finite(size), finite(size - half), finite(size + half)),
        "least": watch.told_least,
        "loss": explainer.loss.name,
        "loss_unit": explainer.loss.unit,
        "loss_largest": finite(explainer.loss.largest),
        "sentence": _sentence(state.model_id, name, shift, value, end),
        "source": source_of(source),
    }


def _sentence(model_id: str, name: str, shift: Shift, value: float, end: ShiftEnd | None) -> str:
    moved = f"{name} {show_number(shift.before.value)} -> {show_number(value)}"
    onset = show_count(shift.onset)
    word = "more" if shift.direction == "up" else "less"
    if end is None:
        return f"{model_id} relies {word} on {shift.feature} since about {onset}: {moved}"
    since = f"{model_id} relied {word} on {shift.feature} since about {onset}"
    if end.kind == "replaced":
        return f"{since}, until another version took over: {moved}"
    if end.kind == "released":
        return f"{since}, and relies on it as before: {moved}"
    return f"{since}; that is the reference from now on: {moved}"
