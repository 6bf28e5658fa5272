"""Makes the events of a model's incidents, and counts them.

The reports of the change explainer are passed on to the watch of incidents, and the outcomes of new versions counted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from attributary_topics import (
    ChangeDetails,
    ChangeLosses,
    DetectorSpec,
    FeatureChange,
    ImportanceComparison,
    IncidentEffect,
    IncidentEvent,
    IncidentEvidence,
    IncidentFeature,
    IncidentOnset,
    LossDifference,
    LossEstimate,
    MeanEstimate,
    OnsetEstimate,
    Place,
    ValueFigures,
    event_id,
    event_time,
    source_of,
)

from ..change.events import ChangeEvent, ChangeExplanation, NotConfirmed
from ..change.importance import ImportanceChange
from ..change.verdicts import Estimate, Losses
from ..incidents.incident import Incident, Involved, Mean, Since
from ..inputs.events import ValueSummary
from ..ranking import largest_first
from .events import finite
from .incident_watch import IncidentWatch
from .state import Watched

logger = logging.getLogger(__name__)


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
        effects=[IncidentEffect(one.name, *map(_mean, (one.before, one.after, one.now))) for one in told.effects],
        loss=state.loss.name,
        loss_unit=state.loss.unit,
        features={str(one.name): _feature(one, watch) for one in told.features},
        advice=told.advice,
        intercept=finite(told.intercept),
        again=told.again,
        evidence=[IncidentEvidence(one.watch, one.said, one.observation, one.is_open) for one in told.evidence],
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


def note_changes(state: Watched, watch: IncidentWatch, told: Sequence[ChangeEvent]) -> None:
    """Pass a change explainer's reports to the watch of incidents."""
    for one in told:
        count_version(state, one)
        is_explained = isinstance(one, ChangeExplanation) and one.verdict != "matured"
        watch.note(one, _details(one, state) if is_explained else None)  # type: ignore[arg-type]


def count_version(state: Watched, one: ChangeEvent) -> None:
    """Count a new version's outcome; log why a change is not explained."""
    why = None
    if isinstance(one, ChangeExplanation) and one.failure is not None:
        why = one.failure.partition(":")[0]  # the text of a model's exception may hold values
    elif isinstance(one, NotConfirmed) and one.route == "version":
        why = "another version has taken over" if one.found == "replaced" else "the two predict nothing in common"
    elif not isinstance(one, ChangeExplanation):
        return
    if one.route == "version":
        state.counts.versions["explained" if why is None else "unexplained"] += 1
    if why is not None:
        what = f"version {one.version}" if one.route == "version" else "a change"
        logger.warning("model %s: %s is not explained: %s", state.model_id, what, why)


def _details(told: ChangeExplanation, state: Watched) -> ChangeDetails:
    # The change explainer counts from when it was (re)started; events count the model's observations.
    began = state.n_observations - (state.change.n_observations if state.change else 0)
    # Of a version the first observation that it predicts is named: by the explainer the last one before.
    is_version, has_labels = told.route == "version", state.settings.mode in ("labelled", "mirror")
    onset = None if told.onset is None else told.onset.after(began)
    return ChangeDetails(
        model_version_before=told.version_before,
        model_version=told.version or state.version,
        verdict=told.verdict if has_labels else None,
        route=told.route,
        observation=began + told.n_observations,
        detected_at=began + told.n_detected + is_version,
        reference_at=began + told.reference_observation,
        onset=None if onset is None else OnsetEstimate(onset.observation, onset.low, onset.high),
        pattern=told.pattern,
        detector=None if told.detector is None else DetectorSpec(told.detector, told.detector_params, told.signal),
        window=told.window,
        discrepancy=finite(told.discrepancy),
        threshold=told.threshold,
        n_discrepancy=told.n_discrepancy,
        distance=told.distance,
        scale=told.scale,
        losses=None if told.losses is None or not has_labels else _losses(told.losses),
        importances={method: _comparison(change) for method, change in told.importances.items()},
    )


def _losses(losses: Losses) -> ChangeLosses:
    then, worsened = losses.reference_then, losses.worsened
    return ChangeLosses(
        loss=losses.loss,
        loss_unit=losses.loss_unit,
        loss_largest=finite(losses.loss_largest),
        reference_then=None if then is None else _estimate(then),
        reference_now=_estimate(losses.reference_now),
        model_now=_estimate(losses.model_now),
        worsened=None if worsened is None else _difference(worsened),
        gain=_difference(losses.gain),
    )


def _estimate(of: Estimate) -> LossEstimate:
    return LossEstimate(finite(of.mean), finite(of.low), finite(of.high), of.n)


def _difference(of: Estimate) -> LossDifference:
    return LossDifference(finite(of.mean), finite(of.low), finite(of.high))


_OF_FEATURES = ("before", "after", "before_std_error", "after_std_error", "delta_std_error")


def _comparison(change: ImportanceChange) -> ImportanceComparison:
    delta, p_values, significant = change.delta, change.p_values, set(change.significant())
    before_ranks, after_ranks = change.before_ranks, change.after_ranks
    features = {
        str(name): FeatureChange(
            **{of: finite(getattr(change, of).get(name)) for of in _OF_FEATURES},
            delta=delta[name],
            before_rank=before_ranks.get(name),
            after_rank=after_ranks.get(name),
            p_value=finite(p_values.get(name)),
            significant=name in significant,
        )
        for name in largest_first(delta, list(delta))
    }
    return ImportanceComparison(
        loss=change.loss,
        loss_unit=change.loss_unit,
        loss_largest=finite(change.loss_largest),
        n=change.n_observations,
        shift=finite(change.shift),
        ndcg=finite(change.ndcg),
        before_loss=finite(change.before_loss),
        after_loss=finite(change.after_loss),
        features=features,
    )
