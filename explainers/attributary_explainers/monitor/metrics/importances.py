"""Adds the series of the importances of an explainer, or of a merge of several."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from prometheus_client.samples import Exemplar

from ...ranking import shares
from ..telling.events import Measured, finite
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


def shown_largest(largest: float | None) -> str:
    """Return the largest value of a loss as a label."""
    return "+Inf" if largest is None else f"{largest:.3g}"
