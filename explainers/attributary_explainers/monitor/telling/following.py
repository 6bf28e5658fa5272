"""Makes the events that follow from an observation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attributary_topics import (
    ChangeEvent,
    DependenceEvent,
    ExplanationEvent,
    ImportanceEvent,
    IncidentEvent,
    Place,
    ShardImportance,
    Source,
)

from ...change.events import ChangeEvent as Told
from ..watched import Watched
from .changes import change_events
from .events import importance_event, in_mode
from .losses import loss_events
from .shards import shard_importance
from .shifts import shift_events

Event = ImportanceEvent | DependenceEvent | ShardImportance | ChangeEvent | IncidentEvent
"""What can follow from an observation."""


def events_after(
    state: Watched,
    x: dict[str, Any],
    y: Any,
    y_pred: Any,
    told: Sequence[Told],
    known: Sequence[int],
    source: Place,
    timestamp_ms: int,
    n_before: int = 0,
) -> list[Event]:
    """Return the events that follow from an observation that is learnt.

    Parameters
    ----------
    y_pred
        The prediction whose loss counts; None where it was of an earlier version.
    told
        What the change explainer has told.
    known
        By explainer, the number of observations that it had explained before.
    n_before
        Number of events that come before, because a new version has taken over.
    """
    settings = state.settings
    events: list[Event] = []
    has_changed = False
    if told:
        changes = change_events(state, told, source, timestamp_ms, n_before)
        has_changed = any(isinstance(event, ExplanationEvent) and event.route != "version" for event in changes)
        events += changes
    if known and not settings.sharded:  # a shift of one shard is none of the model
        explained = [
            name for n, (name, one) in zip(known, state.explainers.items(), strict=True) if one.n_observations > n
        ]
        events += shift_events(state, explained, source, n_before + len(events))
    if y_pred is not None:
        events += loss_events(state, x, y, y_pred, source, n_before + len(events))
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
