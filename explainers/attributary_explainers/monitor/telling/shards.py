"""Makes the events of a model's shards, and of their merge."""

from __future__ import annotations

import hashlib
import math

from attributary_topics import FeatureEstimate, ImportanceEvent, ShardImportance, Source

from ...smoothing.shards import MergedImportance, ShardEstimate
from ..watched import Watched
from .events import feature_importances, finite, of_explainer

INTERVAL = "interval"
"""The only trigger of shards, and so of the events of their merge."""


def shard_importance(state: Watched, name: str, source: Source, timestamp_ms: int) -> ShardImportance:
    """Return a shard's importances by an explainer, after this record."""
    explainer = state.explainers[name]
    importance, std_error = explainer.importance, explainer.std_error
    return ShardImportance(
        **of_explainer(state, name),
        parameters=hashlib.sha256(repr(explainer.parameters).encode()).hexdigest()[:16],
        n_represented=explainer.n_observations + explainer.skipped["budget"],
        degrees_of_freedom=finite(explainer.degrees_of_freedom),
        timestamp_ms=timestamp_ms,
        features={str(one): FeatureEstimate(importance[one], finite(std_error[one])) for one in importance},
        source=source,
    )


def estimate_of(said: ShardImportance) -> ShardEstimate:
    """Return the part of a shard's report that is merged."""
    errors = {name: math.nan if one.std_error is None else one.std_error for name, one in said.features.items()}
    freedom = math.nan if said.degrees_of_freedom is None else said.degrees_of_freedom
    values = {name: one.value for name, one in said.features.items()}
    return ShardEstimate(said.n_represented, values, errors, freedom)


def merged_event(
    merged: MergedImportance,
    shards: dict[int, ShardImportance],
    losses: tuple[float | None, float | None],
    number: int,
    source: Source,
) -> ImportanceEvent:
    """Return the event of a model's importance, merged over its shards.

    Shard `number` has spoken last, in the record `source`. The losses of the model and of its mean prediction are those
    of the merge. Quality, discrepancy and the comparison with a reference are of one order of all observations, which
    there is not: they are empty and null.
    """
    last = shards[number]
    return ImportanceEvent(
        model_id=last.model_id,
        model_version=last.model_version,
        explainer=last.explainer,
        removal=last.removal,
        loss=last.loss,
        loss_unit=last.loss_unit,
        loss_largest=last.loss_largest,
        alpha=last.alpha,
        observation=sum(one.observation for one in shards.values()),
        n_observations=sum(one.n_observations for one in shards.values()),
        model_loss=finite(losses[0]),
        baseline_loss=finite(losses[1]),
        quality={},
        discrepancy=None,
        shift=None,
        ndcg=None,
        reference_id=None,
        trigger=INTERVAL,
        stale=last.stale,
        features=feature_importances(merged),
        source=source,
    )
