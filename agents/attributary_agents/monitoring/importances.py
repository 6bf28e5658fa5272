"""Adds the series of importances: of an explainer, and of what the shards of a sharded model know together."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from prometheus_client.samples import Exemplar

from attributary_explainers import shares
from attributary_topics import ShardImportance

from ..models.beside.impurity import TreeImportance
from ..models.telling.events import Measured, finite
from ..worker.sharing.merge import MergedModel
from .series_limits import ShownFeatures

OTHER = "__other__"


class Add(Protocol):
    """Adds a sample to the metric of a name; None adds nothing."""

    def __call__(  # noqa: D102
        self, name: str, labels: tuple[str, ...], value: float | None, last: Exemplar | None = None, /
    ) -> None: ...


def add_importances(labels: tuple[str, str], explainer: Measured, features: ShownFeatures, add: Add) -> Collection[Any]:
    """Add the importances of an explainer, or of a merge; return the features that are shown.

    Parameters
    ----------
    labels
        Model id and name of the explainer.
    """
    importance, half_width = explainer.importance, explainer.half_width
    share = shares(importance)
    shown = features.choose(*labels, importance)
    for feature in shown:
        add("feature_importance", (*labels, str(feature)), importance[feature])
        add("feature_importance_share_ratio", (*labels, str(feature)), share[feature])
        add("feature_importance_half_width", (*labels, str(feature)), finite(half_width[feature]))
    if rest := importance.keys() - set(shown):
        add("feature_importance", (*labels, OTHER), sum(importance[feature] for feature in rest))
        add("feature_importance_share_ratio", (*labels, OTHER), sum(share[feature] for feature in rest))
    return shown


def n_tree_series(mdi: TreeImportance | None, max_features: int) -> int:
    """Return the number of series of features at most: two for each, and the two sums of the others."""
    return 0 if mdi is None else 2 * min(len(mdi.importance), max_features) + 2


def add_tree_importance(model_id: str, mdi: TreeImportance | None, features: ShownFeatures, add: Add) -> None:
    """Add the series of mean decrease in impurity, as it was published last; it has no intervals."""
    if mdi is None:
        return
    labels = (model_id, mdi.name)
    add_importances(labels, mdi, features, add)
    moved, gain = mdi.publication.movement(mdi.importance)
    add("importance_shift_ratio", labels, moved)
    add("importance_ndcg_ratio", labels, gain)
    add("explainer_observations", labels, float(mdi.n_observations))


def n_merged_series(merge: MergedModel, max_features: int) -> int:
    """Return the number of series of features at most: three for each, and the two sums of the others."""
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


def shown_largest(largest: float | None) -> str:
    """Return the largest value of a loss as a label."""
    return "+Inf" if largest is None else f"{largest:.3g}"
