"""Makes the events of a model's importances, and of its shards."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from attributary_topics import (
    Awaited,
    DependenceEvent,
    FeatureEstimate,
    FeatureImportance,
    ImportanceEvent,
    IncidentEvent,
    ModelGuard,
    Place,
    Reach,
    ShardImportance,
    Source,
    source_of,
)

from ..loss_shift.guard import LossGuard
from ..ranking import ranks, shares
from ..smoothing.shards import MergedImportance, ShardEstimate
from .quality import quality_figures
from .state import Watched

E = TypeVar("E")

Event = ImportanceEvent | DependenceEvent | ShardImportance | IncidentEvent
"""What can follow from an observation."""

INTERVAL = "interval"
"""The only trigger of shards, and so of the events of their merge."""


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


def model_guard(guard: LossGuard) -> ModelGuard:
    """Return a guard as statuses have it."""
    waits_for, reach = guard.waits_for, guard.reach
    return ModelGuard(
        guard.since,
        None if waits_for is None else Awaited(*waits_for),
        None if reach is None else Reach(finite(reach.before), finite(reach.after), reach.n, reach.unit),
        guard.sentence(),
    )
