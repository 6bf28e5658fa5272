"""Reports of the change explainer for the incident watch.

The outcomes of new versions are counted, too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from attributary_topics import (
    ChangeDetails,
    ChangeLosses,
    DetectorSpec,
    FeatureChange,
    ImportanceComparison,
    LossDifference,
    LossEstimate,
    OnsetEstimate,
)

from ...change.events import ChangeEvent, ChangeExplanation, NotConfirmed
from ...change.importance import ImportanceChange
from ...change.verdicts import Estimate, Losses
from ...ranking import largest_first
from ..incident_watch import IncidentWatch
from ..watched import Watched
from .events import finite

logger = logging.getLogger(__name__)


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
