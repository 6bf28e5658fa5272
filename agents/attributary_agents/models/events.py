"""Makes the events of a model's importances and changes, and what its state keeps of the last change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client.samples import Exemplar

from attributary_explainers import ChangeExplanation, ImportanceChange, RemovalExplainer, ranks, shares
from attributary_topics import (
    ChangeEvent,
    DetectorSpec,
    FeatureChange,
    FeatureImportance,
    ImportanceComparison,
    ImportanceEvent,
    Source,
)

from .model_state import ModelState

_EXEMPLAR_ID = "event_id"
_EXEMPLAR_LENGTH = 128 - len(_EXEMPLAR_ID)
"""OpenMetrics allows 128 characters for names and values of an exemplar's labels."""


def importance_event(state: ModelState, name: str, trigger: str, source: Source) -> ImportanceEvent:
    """Return the event that says what an explainer of the model knows now.

    Parameters
    ----------
    name
        Name of the explainer in the configuration.
    trigger
        Why it is published, as `Publication.trigger` says.
    source
        Record of the last observation.
    """
    explainer, publication = state.explainers[name], state.publications[name]
    moved, gain = publication.movement(explainer.importance)
    return ImportanceEvent(
        model_id=state.model_id,
        model_version=state.version,
        explainer=name,
        removal=explainer.imputer.name,
        loss=explainer.loss.name,
        loss_unit=explainer.loss.unit,
        loss_largest=finite(explainer.loss.largest),
        alpha=explainer.alpha,
        observation=state.n_observations,
        n_observations=explainer.n_observations,
        model_loss=finite(state.model_loss.value),
        baseline_loss=finite(state.baseline_loss.value),
        discrepancy=finite(state.change.discrepancy) if state.change else None,
        shift=moved,
        ndcg=gain,
        reference_id=publication.reference_id,
        trigger=trigger,
        features=feature_importances(explainer),
        source=source,
    )


def change_event(state: ModelState, explanation: ChangeExplanation, observation: int, source: Source) -> ChangeEvent:
    """Return the event of an explained change of the model or of its data.

    Parameters
    ----------
    observation
        Number of the model's observation that it follows from.
    source
        That observation's record.
    """
    # The change explainer counts from when it was (re)started; the event counts the model's observations.
    began = state.n_observations - explanation.n_observations
    by_version = explanation.route == "version"
    name = explanation.detector
    return ChangeEvent(
        model_id=state.model_id,
        model_version_before=explanation.version_before,
        model_version=state.version,
        kind=explanation.kind,
        route=explanation.route,
        observation=observation,
        detected_at=observation if by_version else began + explanation.n_detected,
        reference_at=began + explanation.reference_observation,
        detector=None if name is None else DetectorSpec(name, explanation.detector_params, explanation.signal),
        window=explanation.window,
        discrepancy=explanation.discrepancy,
        threshold=explanation.threshold,
        n_discrepancy=explanation.n_discrepancy,
        distance=explanation.distance,
        cause=explanation.cause,
        importances={method: _comparison(change) for method, change in explanation.importances.items()},
        sentence=explanation.sentence(state.model_id, observation),
        source=source,
    )


def _comparison(change: ImportanceChange) -> ImportanceComparison:
    delta, p_values = change.delta, change.p_values
    significant = set(change.significant())
    before_ranks, after_ranks = change.before_ranks, change.after_ranks
    values: dict[str, Mapping[Any, float]] = {
        "before": change.before,
        "crossed": change.crossed,
        "after": change.after,
        "model_part": change.model_part,
        "data_part": change.data_part,
        "before_std_error": change.before_std_error,
        "crossed_std_error": change.crossed_std_error,
        "after_std_error": change.after_std_error,
        "delta_std_error": change.delta_std_error,
        "model_part_std_error": change.model_part_std_error,
        "data_part_std_error": change.data_part_std_error,
    }
    features = {
        str(name): FeatureChange(
            delta=delta[name],
            before_rank=before_ranks.get(name),
            after_rank=after_ranks.get(name),
            p_value=finite(p_values.get(name)),
            significant=name in significant,
            **{key: finite(of.get(name)) for key, of in values.items()},
        )
        for name in sorted(delta, key=lambda name: (-abs(delta[name]), str(name)))
    }
    return ImportanceComparison(
        loss=change.loss,
        loss_unit=change.loss_unit,
        loss_largest=finite(change.loss_largest),
        shift=finite(change.shift),
        ndcg=finite(change.ndcg),
        before_loss=finite(change.before_loss),
        crossed_loss=finite(change.crossed_loss),
        after_loss=finite(change.after_loss),
        memorised=finite(change.memorised),
        features=features,
    )


def change_summary(
    event: ChangeEvent, headers: Sequence[tuple[str, bytes | None]], timestamp_ms: int
) -> dict[str, Any]:
    """Return what the model's state keeps of a change event: its id, its source, and what it says.

    It is part of the state, so that the next owner of the partition can show it, too.
    """
    context = {name: value.decode() for name, value in headers if value is not None}
    return {
        "id": context["ce_id"],
        "time": context.get("ce_time"),
        "timestamp_ms": timestamp_ms,
        "model_id": event.model_id,
        "kind": event.kind,
        "route": event.route,
        "observation": event.observation,
        "discrepancy": event.discrepancy,
        "threshold": event.threshold,
        "n_discrepancy": event.n_discrepancy,
        "cause": event.cause,
        "sentence": event.sentence,
        "source": {
            "topic": event.source.topic,
            "partition": event.source.partition,
            "offset": event.source.offset,
        },
    }


def exemplar(state: ModelState, route: str) -> Exemplar | None:
    """Return the exemplar of the count of changes of a route: the id of the last event, or the end of a long id."""
    last = state.last_change
    if last is None or last["kind"] != "model" or last["route"] != route:
        return None
    return Exemplar({_EXEMPLAR_ID: last["id"][-_EXEMPLAR_LENGTH:]}, 1.0, last["timestamp_ms"] / 1000)


def feature_importances(explainer: RemovalExplainer) -> dict[str, FeatureImportance]:
    """Return the importances of an explainer as they go over the wire, the most important first."""
    importance, std_error, half_width = explainer.importance, explainer.std_error, explainer.half_width
    share, rank = shares(importance), ranks(importance)
    return {
        str(name): FeatureImportance(
            importance[name], finite(std_error[name]), finite(half_width[name]), share[name], rank[name]
        )
        for name in sorted(importance, key=rank.__getitem__)
    }


def finite(value: float | None) -> float | None:
    """Return the value, or None where it is NaN or infinite: JSON has no word for them."""
    return value if value is not None and math.isfinite(value) else None
