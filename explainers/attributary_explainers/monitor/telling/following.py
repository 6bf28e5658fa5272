"""Makes the events that follow from an observation."""

from __future__ import annotations

from typing import Any

from attributary_topics import DependenceEvent, ImportanceEvent, IncidentEvent, Place, ShardImportance, Source

from ...change.events import ChangeExplanation
from ..step import Step
from ..watched import Watched
from .changes import note_changes
from .events import importance_event, in_mode
from .incidents import incident_events
from .shards import shard_importance

Event = ImportanceEvent | DependenceEvent | ShardImportance | IncidentEvent
"""What can follow from an observation."""


def events_after(
    state: Watched,
    x: dict[str, Any],
    y: Any,
    step: Step,
    source: Place,
    timestamp_ms: int,
    n_before: int = 0,
    *,
    is_new: bool = True,
) -> list[Event]:
    """Return the events that follow from an observation that is learnt.

    Parameters
    ----------
    step
        The way of the observation through the model.
    n_before
        Number of events of the same record that come before, because a new version has taken over.
    is_new
        Whether `arrived_incidents` has not seen the features.
    """
    settings = state.settings
    _note(state, x, y, step)
    of = state, x if is_new else None, y, step.scored, step.losses, source, timestamp_ms, n_before
    events: list[Event] = [*incident_events(*of)]
    has_changed = any(isinstance(one, ChangeExplanation) and one.route != "version" for one in step.told)
    for name, publication in state.publications.items():
        if has_changed:
            publication.restart_reference(state.n_observations)
        trigger = publication.trigger(state.explainers[name], state.n_observations)
        if trigger is None:
            continue
        if settings.sharded and isinstance(source, Source):
            events.append(shard_importance(state, name, source, timestamp_ms))
        else:
            events.append(importance_event(state, name, trigger, source))
    return in_mode(events, settings.mode)


def _note(state: Watched, x: dict[str, Any], y: Any, step: Step) -> None:
    """Show the observation to the watches, and pass on their reports.

    The reports go to the watch of incidents.
    """
    watch = state.incident_watch
    if watch is None:  # of one shard, which is not the whole model
        return
    if step.told:
        note_changes(state, watch, step.told)
    if step.known:
        for n, (name, explainer) in zip(step.known, state.explainers.items(), strict=True):
            if explainer.n_observations > n:
                shift = state.shifts[name].update(*explainer.latest_increments, state.n_observations)
                if shift is not None:
                    watch.note(shift)
    if step.scored is not None and state.loss_watch is not None:
        for one in state.loss_watch.update(x, y, step.scored):
            watch.note(one)
