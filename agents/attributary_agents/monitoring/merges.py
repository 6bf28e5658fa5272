"""Metrics of the merged shards of sharded models."""

from __future__ import annotations

from attributary_explainers.monitor.families import Add, add_importances, shown_largest
from attributary_explainers.monitor.series_limits import ShownFeatures
from attributary_topics import ShardImportance

from ..worker.sharing.merge import MergedModel


def n_merged_series(merge: MergedModel, max_features: int) -> int:
    """Return the greatest number of feature series of a merge.

    Three for each feature, and the two sums of the others.
    """
    return sum(3 * min(len(one.merged.importance), max_features) + 2 for one in merge.explainers.values())


def add_merge(merge: MergedModel, features: ShownFeatures, add: Add) -> None:
    """Add the series of a sharded model."""
    latest: ShardImportance | None = None
    losses: tuple[float | None, float | None] = None, None
    for name, one in merge.explainers.items():
        labels, said = (merge.model_id, name), one.shards
        add_importances(labels, one.merged, features, add)
        add("explainer_observations", labels, float(sum(shard.n_observations for shard in said.values())))
        add("explainer_shards", labels, float(len(said)))
        if (last := one.latest) is not None and (latest is None or last.timestamp_ms > latest.timestamp_ms):
            latest, losses = last, one.losses
    if latest is None:
        return
    model = (merge.model_id,)
    add("model_loss", model, losses[0])
    add("model_baseline_loss", model, losses[1])
    add("model_observations_total", model, float(merge.n_observations))
    add("last_observation_timestamp_seconds", model, latest.timestamp_ms / 1000)
    loss = latest.loss, latest.loss_unit, shown_largest(latest.loss_largest)
    add("model_info", (*model, latest.model_version, *loss, "none"), 1.0)
