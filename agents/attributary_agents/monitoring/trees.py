"""Adds the series of mean decrease in impurity."""

from __future__ import annotations

from attributary_explainers.monitor.families import Add, add_importances
from attributary_explainers.monitor.series_limits import ShownFeatures

from ..models.beside.impurity import TreeImportance


def n_tree_series(mdi: TreeImportance | None, max_features: int) -> int:
    """Return the greatest number of feature series of an importance.

    Two for each feature, and the two sums of the others.
    """
    return 0 if mdi is None else 2 * min(len(mdi.importance), max_features) + 2


def add_tree_importance(model_id: str, mdi: TreeImportance | None, features: ShownFeatures, add: Add) -> None:
    """Add the series of mean decrease in impurity, as last published.

    It has no intervals.
    """
    if mdi is None:
        return
    labels = (model_id, mdi.name)
    add_importances(labels, mdi, features, add)
    moved, gain = mdi.publication.movement(mdi.importance)
    add("importance_shift_ratio", labels, moved)
    add("importance_ndcg_ratio", labels, gain)
    add("explainer_observations", labels, float(mdi.n_observations))
