"""Makes and counts the events of a model's changes; keeps the last one.

An event that closes another one names its id. An id is made of the event's observation and of its place among the
events of that observation, so it is the same after a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prometheus_client.samples import Exemplar

from attributary_topics import (
    AlarmEvent,
    ChangeEvent,
    ChangeLosses,
    DetectorSpec,
    ExplanationEvent,
    FeatureChange,
    ImportanceComparison,
    LossDifference,
    LossEstimate,
    NotConfirmedEvent,
    OnsetEstimate,
    Place,
    event_id,
    event_time,
    source_of,
)

from ...change.events import Alarm, ChangeExplanation, NotConfirmed
from ...change.events import ChangeEvent as Told
from ...change.importance import ImportanceChange
from ...change.judging import Estimate, Losses
from ...ranking import largest_first
from ..counts import NO_VERDICT
from ..watched import Watched
from .events import finite, in_mode

logger = logging.getLogger(__name__)

_EXEMPLAR_ID = "event_id"
_EXEMPLAR_LENGTH = 128 - len(_EXEMPLAR_ID)
"""OpenMetrics allows 128 characters for names and values of an exemplar's labels."""


def change_events(
    state: Watched, told: Sequence[Told], source: Place, timestamp_ms: int, n_before: int = 0
) -> list[ChangeEvent]:
    """Return the events of what a change explainer told; count them.

    `n_before` events of the same observation come before these.
    """
    events: list[ChangeEvent] = []
    watch = state.incident_watch
    for n, one in enumerate(map(_without_text, told), start=n_before):
        if isinstance(one, Alarm):
            state.open_alarms[one.n_observations] = event_id(state.model_id, source, n)
        else:
            _count_outcome(state, one)
        event = _event(one, state, source)
        events.append(event)
        if watch is not None:
            watch.note(one, in_mode([event], state.settings.mode)[0])
        if isinstance(event, AlarmEvent):
            state.counts.alarms[event.route] += 1
        elif isinstance(event, NotConfirmedEvent):
            state.counts.not_confirmed[event.route] += 1
        elif isinstance(event, ExplanationEvent):
            state.counts.changes[event.route, event.verdict or NO_VERDICT] += 1
            if event.verdict != "matured":  # no change that a chart is to mark: the data are as they were
                state.last_change_ms = timestamp_ms
            state.last_change = _summary(event, event_id(state.model_id, source, n), timestamp_ms)
    return events


def _without_text(one: Told) -> Told:
    """Keep only the type of a model's exception: its text may hold values."""
    if not isinstance(one, ChangeExplanation) or one.failure is None:
        return one
    return replace(one, failure=one.failure.partition(":")[0])


def _count_outcome(state: Watched, one: Told) -> None:
    """Count a new version's outcome; log why a change is not explained."""
    why = None
    if isinstance(one, ChangeExplanation):
        why = one.failure
    elif isinstance(one, NotConfirmed) and one.route == "version":
        why = "another version has taken over" if one.found == "replaced" else "the two predict nothing in common"
    if one.route == "version":
        state.counts.versions["explained" if why is None else "unexplained"] += 1
    if why is not None:
        what = f"version {one.version}" if one.route == "version" else "a change"
        logger.warning("model %s: %s is not explained: %s", state.model_id, what, why)


def _event(told: Told, state: Watched, source: Place) -> ChangeEvent:
    # The change explainer counts from when it was (re)started; events count the model's observations.
    began = state.n_observations - (state.change.n_observations if state.change else 0)
    observation = began + told.n_observations
    # An event of a version names the first observation that the version predicts: the explainer the last one before.
    is_version = told.route == "version"
    fields: dict[str, Any] = {
        "model_id": state.model_id,
        "model_version_before": told.version_before,
        "model_version": told.version or state.version,
        "route": told.route,
        "reference_at": began + told.reference_observation,
        "detector": None if told.detector is None else DetectorSpec(told.detector, told.detector_params, told.signal),
        "discrepancy": finite(told.discrepancy),
        "threshold": told.threshold,
        "n_discrepancy": told.n_discrepancy,
        "distance": told.distance,
        "scale": told.scale,
        "sentence": told.sentence(state.model_id, observation),
        "source": source_of(source),
    }
    if isinstance(told, Alarm):
        return AlarmEvent(**fields, observation=observation + is_version, due_at=began + told.due)
    assert isinstance(told, (ChangeExplanation, NotConfirmed))
    fields |= {
        "change_id": None if told.closes is None else state.open_alarms.pop(told.closes, None),
        "observation": observation,
        "detected_at": began + told.n_detected + is_version,
        "window": told.window,
        "losses": None if told.losses is None else _losses(told.losses),
    }
    if isinstance(told, NotConfirmed):
        return NotConfirmedEvent(**fields, verdict=told.found)
    onset = None if told.onset is None else told.onset.after(began)
    return ExplanationEvent(
        **fields,
        verdict=told.verdict,
        onset=None if onset is None else OnsetEstimate(onset.observation, onset.low, onset.high),
        pattern=told.pattern,
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


def _summary(event: ExplanationEvent, ce_id: str, timestamp_ms: int) -> dict[str, Any]:
    """Return what the model's state keeps of the last explanation."""
    return {
        "id": ce_id,
        "time": event_time(timestamp_ms),
        "timestamp_ms": timestamp_ms,
        **{name: getattr(event, name) for name in _SUMMARISED},
        "source": None
        if event.source is None
        else {name: getattr(event.source, name) for name in ("topic", "partition", "offset")},
    }


_SUMMARISED = (
    *("model_id", "change_id", "verdict", "route", "observation", "sentence"),
    *("discrepancy", "threshold", "n_discrepancy"),
)


def exemplar(state: Watched, route: str, verdict: str) -> Exemplar | None:
    """Return an exemplar with the last explanation's id, cut if it is long."""
    last = state.last_change
    if last is None or (last["route"], last["verdict"] or NO_VERDICT) != (route, verdict):
        return None
    return Exemplar({_EXEMPLAR_ID: last["id"][-_EXEMPLAR_LENGTH:]}, 1.0, last["timestamp_ms"] / 1000)
