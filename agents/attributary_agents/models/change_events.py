"""From the explanation of a change to the event, and what is counted of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attributary_explainers import ChangeExplanation, ImportanceChange
from attributary_topics import ChangeEvent, DetectorSpec, FeatureChange, ImportanceComparison, Source

from .model_state import ModelState
from .publication import finite


def explained(
    state: ModelState, explanation: ChangeExplanation, observation: int, source: Source, timestamp_ms: int
) -> ChangeEvent:
    """Count an explained change and return its event.

    Parameters
    ----------
    observation
        Number of the model's observation that it follows from.
    source, timestamp_ms
        That observation's record.
    """
    if explanation.kind == "data":
        state.counts.data_changes += 1
    else:
        state.counts.changes[explanation.route] += 1
        state.last_change_ms = timestamp_ms
    return _event(state, explanation, observation, source)


def _event(state: ModelState, explanation: ChangeExplanation, observation: int, source: Source) -> ChangeEvent:
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
        shift=finite(change.shift),
        ndcg=finite(change.ndcg),
        before_loss=finite(change.before_loss),
        crossed_loss=finite(change.crossed_loss),
        after_loss=finite(change.after_loss),
        memorised=finite(change.memorised),
        features=features,
    )
