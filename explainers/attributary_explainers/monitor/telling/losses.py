"""Makes the events of lasting shifts of a model's loss, counts them, and keeps which one is open."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
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

from ...change.judging.onset import Onset
from ...loss_shift.events import LossShift, LossShiftEnd, LossShiftExplained, Moved
from ..loss_watch import LossWatch
from ..watched import Watched
from .events import finite

LossShiftEvents = LossShiftEvent | LossShiftExplainedEvent | LossShiftReleasedEvent


def loss_events(
    state: Watched, x: dict[str, Any], y: Any, y_pred: Any, source: Place, n_before: int
) -> list[LossShiftEvents]:
    """Show the watch of the model's loss the last observation of the state; return the events of what it tells.

    Parameters
    ----------
    x, y, y_pred
        The observation, and the prediction that the model made before it learnt it.
    source
        The observation's record.
    n_before
        Number of events that follow from the same observation and come before.
    """
    watch = state.loss_watch
    if watch is None:
        return []
    events: list[LossShiftEvents] = []
    for n, told in enumerate(watch.update(x, y, y_pred), start=n_before):
        if isinstance(told, LossShift):
            state.counts.loss_shifts[told.kind] += 1
            watch.open_id, watch.told_at = event_id(state.model_id, source, n), state.n_observations
        events.append(_event(renumbered(told, watch.began(state.n_observations)), state, watch, source))
    return events


def loss_shift_replaced(state: Watched, source: Place) -> list[LossShiftEvents]:
    """End the open shift of a model whose present version is about to be replaced; return the event that says so."""
    watch = state.loss_watch
    if watch is None:
        return []
    began = watch.began(state.n_observations)
    end = watch.restart()
    return [] if end is None else [_event(renumbered(end, began), state, watch, source)]


@singledispatch
def renumbered(told: Any, began: int) -> Any:
    """Return what is told with the numbers of the model's observations.

    Parameters
    ----------
    began
        Observations of the model before those that the monitor counts.
    """
    return replace(told, observation=began + told.observation, shift=renumbered(told.shift, began))


@renumbered.register
def _renumbered_shift(told: LossShift, began: int) -> LossShift:
    onset = told.onset
    return replace(
        told,
        observation=began + told.observation,
        onset=Onset(began + onset.observation, None if onset.low is None else began + onset.low, began + onset.high),
        due_at=None if told.due_at is None else began + told.due_at,
    )


@singledispatch
def _event(told: Any, state: Watched, watch: LossWatch, source: Place) -> LossShiftEvents:
    raise TypeError(f"expected an event of a loss monitor, got {told!r}")


@_event.register
def _shift(told: LossShift, state: Watched, watch: LossWatch, source: Place) -> LossShiftEvent:
    return LossShiftEvent(**_fields(told, told, state, watch, source), due_at=told.due_at)


@_event.register
def _explained(told: LossShiftExplained, state: Watched, watch: LossWatch, source: Place) -> LossShiftExplainedEvent:
    return LossShiftExplainedEvent(
        **_fields(told, told.shift, state, watch, source),
        change_id=watch.open_id,
        features={
            str(one.name): LossSuspect(
                score=finite(one.score),
                importance_before=finite(one.importance_before),
                importance_after=finite(one.importance_after),
                delta=finite(one.delta),
                delta_std_error=finite(one.delta_std_error),
                p_value=finite(one.p_value),
                moved=finite(one.moved),
                significant=one.significant,
            )
            for one in told.features
        },
        importance_loss=told.importance_loss,
        n_before=told.n_before,
        n_after=told.n_after,
        expected=finite(told.expected),
    )


@_event.register
def _released(told: LossShiftEnd, state: Watched, watch: LossWatch, source: Place) -> LossShiftReleasedEvent:
    fields = {**_fields(told, told.shift, state, watch, source), "model_loss": _moved(told.loss)}
    change_id, watch.open_id, watch.told_at = watch.open_id, None, None
    return LossShiftReleasedEvent(**fields, change_id=change_id, reason=told.reason)


def _fields(
    told: LossShift | LossShiftExplained | LossShiftEnd,
    shift: LossShift,
    state: Watched,
    watch: LossWatch,
    source: Place,
) -> dict[str, Any]:
    """Return the fields that all events have."""
    return {
        "model_id": state.model_id,
        "model_version": state.version,
        "kind": shift.kind,
        "signal": shift.signal,
        "observation": state.n_observations,
        "detected_at": state.n_observations if watch.told_at is None else watch.told_at,
        "onset": OnsetEstimate(shift.onset.observation, shift.onset.low, shift.onset.high),
        "model_loss": _moved(shift.loss),
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


def _moved(of: Moved) -> FigureMoved:
    return FigureMoved(finite(of.before), finite(of.after), finite(of.low), finite(of.high), finite(of.z))


def _label(label: Any) -> str | int | float | bool | None:
    """Return a label as JSON has it: as it is, or as text where JSON has no such thing."""
    return label if label is None or type(label) in (str, int, float, bool) else str(label)
