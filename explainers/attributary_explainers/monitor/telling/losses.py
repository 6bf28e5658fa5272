"""Makes and counts the events of a model's lasting loss shifts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attributary_topics import (
    FigureMoved,
    LevelMoved,
    LossShiftEvent,
    LossShiftExplainedEvent,
    LossShiftReleasedEvent,
    LossSuspect,
    OnsetEstimate,
    Place,
    event_id,
    source_of,
)

from ...loss_shift.events import LossEvent, LossShift, LossShiftEnd, LossShiftExplained, Moved, Suspect
from ..loss_watch import LossWatch
from ..watched import Watched
from .events import finite

LossShiftEvents = LossShiftEvent | LossShiftExplainedEvent | LossShiftReleasedEvent


def loss_events(
    state: Watched, x: dict[str, Any], y: Any, y_pred: Any, source: Place, n_before: int
) -> list[LossShiftEvents]:
    """Show the watch of the loss the last observation; return its events.

    `y_pred` was predicted before the model learnt it. `n_before` events follow from the same observation and come
    before.
    """
    watch = state.loss_watch
    if watch is None:
        return []
    events: list[LossShiftEvents] = []
    for n, told in enumerate(watch.update(x, y, y_pred), start=n_before):
        if isinstance(told, LossShift):
            state.counts.loss_shifts[told.kind] += 1
            watch.open_id, watch.told_at = event_id(state.model_id, source, n), state.n_observations
        if state.incident_watch is not None:
            state.incident_watch.note(told)
        events.append(_event(told, watch.began(state.n_observations), state, watch, source))
    return events


def loss_shift_replaced(state: Watched, source: Place) -> list[LossShiftEvents]:
    """End the open loss shift before a new version; return its event."""
    watch = state.loss_watch
    if watch is None:
        return []
    began = watch.began(state.n_observations)
    end = watch.restart()
    return [] if end is None else [_event(end, began, state, watch, source)]


def _event(told: LossEvent, began: int, state: Watched, watch: LossWatch, source: Place) -> LossShiftEvents:
    """Return an event of the watch; `began` is added to its observations."""
    shift = told if isinstance(told, LossShift) else told.shift
    shift = replace(
        shift,
        observation=began + shift.observation,
        onset=shift.onset.after(began),
        due_at=None if shift.due_at is None else began + shift.due_at,
    )
    told = shift if isinstance(told, LossShift) else replace(told, observation=began + told.observation, shift=shift)
    fields: dict[str, Any] = {
        "model_id": state.model_id,
        "model_version": state.version,
        "kind": shift.kind,
        "signal": shift.signal,
        "observation": state.n_observations,
        "detected_at": state.n_observations if watch.told_at is None else watch.told_at,
        "onset": OnsetEstimate(shift.onset.observation, shift.onset.low, shift.onset.high),
        "model_loss": _moved(told.loss if isinstance(told, LossShiftEnd) else shift.loss),
        "excess": None if shift.excess is None else _moved(shift.excess),
        "slope": None if shift.slope is None else _moved(shift.slope),
        "level": [
            LevelMoved(_label(one.label), finite(one.expected), finite(one.observed), finite(one.intercept))
            for one in shift.level
        ],
        "n_reference": shift.n_reference,
        "n_window": shift.n_window,
        "has_split": shift.has_split,
        "loss": shift.loss_name,
        "loss_unit": shift.loss_unit,
        "loss_largest": finite(shift.loss_largest),
        "sentence": told.sentence(state.model_id),
        "source": source_of(source),
    }
    if isinstance(told, LossShift):
        return LossShiftEvent(**fields, due_at=told.due_at)
    if isinstance(told, LossShiftExplained):
        return LossShiftExplainedEvent(
            **fields,
            change_id=watch.open_id,
            features={str(one.name): _suspect(one) for one in told.features},
            importance_loss=told.importance_loss,
            n_before=told.n_before,
            n_after=told.n_after,
            expected=finite(told.expected),
        )
    change_id, watch.open_id, watch.told_at = watch.open_id, None, None
    return LossShiftReleasedEvent(**fields, change_id=change_id, reason=told.reason)


def _suspect(one: Suspect) -> LossSuspect:
    figures = {name: finite(getattr(one, name)) for name in _FIGURES}
    return LossSuspect(**figures, significant=one.significant)


_FIGURES = ("score", "importance_before", "importance_after", "delta", "delta_std_error", "p_value", "moved")


def _moved(of: Moved) -> FigureMoved:
    return FigureMoved(finite(of.before), finite(of.after), finite(of.low), finite(of.high), finite(of.z))


def _label(label: Any) -> str | int | float | bool | None:
    """Return a label as JSON has it, or as text where JSON has none."""
    return label if label is None or type(label) in (str, int, float, bool) else str(label)
