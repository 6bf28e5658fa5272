"""Makes the events of a model's incidents, and counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from attributary_topics import (
    ChangeDetails,
    IncidentEffect,
    IncidentEvent,
    IncidentEvidence,
    IncidentFeature,
    IncidentOnset,
    MeanEstimate,
    Place,
    ValueFigures,
    event_id,
    event_time,
    source_of,
)

from ...incidents.incident import Effect, Evidence, Incident, Involved, Mean, Since
from ...inputs.events import ValueSummary
from ..incident_watch import IncidentWatch
from ..watched import Watched
from .events import finite


def incident_events(
    state: Watched,
    x: dict[str, Any] | None,
    y: Any,
    y_pred: Any,
    losses: tuple[float | None, float | None],
    source: Place,
    timestamp_ms: int,
    n_before: int,
) -> list[IncidentEvent]:
    """Show the watch of incidents the last observation; return its events.

    Parameters
    ----------
    x
        Its features; None where `arrived_incidents` has seen them.
    losses
        Of the prediction that is scored, and of the mean prediction; None where there is none.
    n_before
        Number of events of the same observation that come before these.
    """
    watch = state.incident_watch
    if watch is None:
        return []
    found = watch.update(x, y, y_pred, *losses, state.n_observations, timestamp_ms)
    events = events_of(state, watch, found, source, n_before) if found else []
    if watch.explained is not None and watch.open is not None:
        watch.explanation = watch.explained  # where it made no revision, the next one has it
    watch.explained = None
    return events


def arrived_incidents(
    state: Watched, x: dict[str, Any], source: Place, timestamp_ms: int, n_before: int
) -> list[IncidentEvent]:
    """Show the incident watch an unlabelled observation; return its events."""
    watch = state.incident_watch
    if watch is None:
        return []
    return events_of(state, watch, watch.arrived(x, timestamp_ms), source, n_before)


def ended_incidents(state: Watched, source: Place) -> list[IncidentEvent]:
    """End the version in the incident watch; return its events.

    The events are of the version that ends.
    """
    watch = state.incident_watch
    return [] if watch is None else events_of(state, watch, watch.end_version(), source, 0)


def version_incidents(state: Watched, source: Place, n_before: int) -> list[IncidentEvent]:
    """Report a new version to the incident watch; return its events.

    The new version is that of `state`.
    """
    watch = state.incident_watch
    if watch is None:
        return []
    watch.begin_version(state.settings, state.model)
    return events_of(state, watch, watch.replaced(state.n_observations), source, n_before)


def back_incidents(state: Watched, said: str, source: Place, n_before: int) -> list[IncidentEvent]:
    """Report a return to a good state to the incident watch; return events."""
    watch = state.incident_watch
    if watch is None:
        return []
    return events_of(state, watch, watch.went_back(said), source, n_before)


def events_of(
    state: Watched, watch: IncidentWatch, found: Sequence[Incident], source: Place, n_before: int
) -> list[IncidentEvent]:
    """Return the events of revisions; count and note beginning incidents."""
    events = []
    for n, one in enumerate(found, start=n_before):
        if one.revision == 1:
            watch.begin_incident(event_id(state.model_id, source, n))
        if watch.explained is not None:
            watch.explanation = watch.explained
        if one.life == "confirmed" and one.reason == "confirmed":
            state.counts.incidents[one.what, one.severity] += 1
        events.append(_event(one, state, watch, source))
        if one.life in ("over", "withdrawn"):
            watch.end_incident()
    return events


def _event(told: Incident, state: Watched, watch: IncidentWatch, source: Place) -> IncidentEvent:
    began = max(watch.began, 0)
    told = replace(
        told,
        observation=began + told.observation,
        since=_after(told.since, began),
        evidence=tuple(replace(one, observation=began + one.observation) for one in told.evidence),
    )
    since_ms = watch.time_of(told.since.observation)
    if told.is_heard:
        watch.since_ms = since_ms
    return IncidentEvent(
        id=watch.open_id or "",
        number=told.number,
        revision=told.revision,
        model_id=state.model_id,
        model_version=state.version,
        what=told.what,
        life=told.life,
        severity=told.severity,
        reason=told.reason,
        observation=told.observation,
        since=_onset(told.since, since_ms),
        effects=[_effect(one) for one in told.effects],
        loss=state.loss.name,
        loss_unit=state.loss.unit,
        features={str(one.name): _feature(one, watch) for one in told.features},
        advice=told.advice,
        intercept=finite(told.intercept),
        again=told.again,
        evidence=[_evidence(one) for one in told.evidence],
        headline=told.headline(state.model_id),
        action=told.action(),
        sentence=told.sentence(state.model_id),
        explanation=cast("ChangeDetails | None", watch.explanation),
        source=source_of(source),
    )


def _after(since: Since, began: int) -> Since:
    low = None if since.low is None else began + since.low
    return Since(began + since.observation, low, began + since.high)


def _onset(since: Since, time_ms: int | None) -> IncidentOnset:
    return IncidentOnset(since.observation, since.low, since.high, None if time_ms is None else event_time(time_ms))


def _effect(one: Effect) -> IncidentEffect:
    return IncidentEffect(one.name, _mean(one.before), _mean(one.after), _mean(one.now))


def _mean(of: Mean | None) -> MeanEstimate | None:
    return None if of is None or finite(of.value) is None else MeanEstimate(of.value, finite(of.half_width) or 0.0)


def _feature(one: Involved, watch: IncidentWatch) -> IncidentFeature:
    values = watch.values_of(one.name)
    before, after = (None, None) if values is None else map(_values, values)
    return IncidentFeature(
        before=finite(one.before),
        after=finite(one.after),
        delta=finite(one.delta),
        half_width=finite(one.half_width),
        significant=one.significant,
        suspect=one.moved,
        said=one.said,
        values_before=before,
        values_after=after,
    )


def _values(of: ValueSummary) -> ValueFigures:
    return ValueFigures(of.n, of.missing, list(of.quantiles), dict(of.words), of.n_words)


def _evidence(one: Evidence) -> IncidentEvidence:
    return IncidentEvidence(one.watch, one.said, one.observation, one.is_open)
