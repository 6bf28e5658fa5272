"""Makes the events of a model's importances."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from attributary_topics import FeatureImportance, ImportanceEvent, Place, source_of

from ...ranking import ranks, shares
from ..quality import quality_figures
from ..watched import Watched

E = TypeVar("E")


class Measured(Protocol):
    """Object with importances: an explainer, or a merge of shards."""

    @property
    def importance(self) -> dict[Any, float]:
        """Importance per feature."""

    @property
    def std_error(self) -> dict[Any, float]:
        """Standard error of each; NaN where it is not known."""

    @property
    def half_width(self) -> dict[Any, float]:
        """Half the width of the 95 % interval of each; NaN where it is not known."""


def importance_event(state: Watched, name: str, trigger: str, source: Place) -> ImportanceEvent:
    """Return an explainer's importance event, due by this `trigger`."""
    explainer, publication = state.explainers[name], state.publications[name]
    moved, gain = publication.movement(explainer.importance)
    return ImportanceEvent(
        **of_explainer(state, name),
        quality=quality_figures(state.quality),
        discrepancy=finite(state.change.discrepancy) if state.change else None,
        shift=moved,
        ndcg=gain,
        reference_id=publication.reference_id,
        trigger=trigger,
        features=feature_importances(explainer),
        source=source_of(source),
        **of_late_labels(state),
        fidelity=finite(state.fidelity),
    )


def of_explainer(state: Watched, name: str) -> dict[str, Any]:
    """Return the fields of importance events that describe an explainer."""
    explainer = state.explainers[name]
    return {
        "model_id": state.model_id,
        "model_version": state.version,
        "explainer": name,
        "removal": explainer.imputer.name,
        "loss": explainer.loss.name,
        "loss_unit": explainer.loss.unit,
        "loss_largest": finite(explainer.loss.largest),
        "alpha": explainer.alpha,
        "observation": state.n_observations,
        "n_observations": explainer.n_observations,
        "model_loss": finite(state.model_loss.value),
        "baseline_loss": finite(state.baseline_loss.value),
        "stale": state.publications[name].published_stale,
    }


def of_late_labels(state: Watched) -> dict[str, Any]:
    """Return the fields that an event has where labels come later."""
    labels = None if state.late is None else state.late.labels
    if labels is None:
        return {}
    return {
        "present_loss": finite(state.present_loss.value) if state.present_loss else None,
        "n_waiting": labels.n_waiting,
        "n_expired": labels.n_expired,
        "label_delay_median_s": labels.median_delay_s,
    }


def in_mode(events: Iterable[E], mode: str) -> list[E]:
    """Return events with their model's mode, where it is not labelled."""
    return list(events) if mode == "labelled" else [replace(event, mode=mode) for event in events]  # type: ignore[type-var]


def feature_importances(explainer: Measured) -> dict[str, FeatureImportance]:
    """Return importances as they are sent, the most important first."""
    importance, std_error, half_width = explainer.importance, explainer.std_error, explainer.half_width
    share, rank = shares(importance), ranks(importance)
    return {
        str(name): FeatureImportance(
            importance[name], finite(std_error[name]), finite(half_width[name]), share[name], rank[name]
        )
        for name in sorted(importance, key=rank.__getitem__)
    }


def finite(value: float | None) -> float | None:
    """Return the value; None if NaN or infinite, which JSON cannot hold."""
    return value if value is not None and math.isfinite(value) else None
