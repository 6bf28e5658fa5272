"""Holds what the store takes and what it gives back, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Kind = Literal["importance", "incident", "dead_letter", "status"]
SCALARS = (
    "model_loss",
    "baseline_loss",
    "present_loss",
    "discrepancy",
    "shift",
    "ndcg",
    "fidelity",
    "n_waiting",
    "n_expired",
    "label_delay_median_s",
)
"""Figures of an importance event beside its importances."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Holds a record of an output topic.

    Attributes
    ----------
    id
        `ce_id`; of a dead letter its own id; of a status the model id.
    time_ms
        `ce_time`, or where there is none the record's timestamp; None where neither is a date.
    event
        The decoded value. Of a dead letter: `reason` and `stage` alone, no value of the record.
    """

    kind: Kind
    partition: int
    offset: int
    id: str
    model_id: str
    time_ms: int | None
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Live:
    """Holds what a page that is open is told: `id` grows by one, and is what `Last-Event-ID` names.

    Attributes
    ----------
    event
        `importance`, `incident`, `status`, `dead_letter_counts` or `gone`; see docs/serve.md.
    data
        JSON.
    """

    id: int
    event: str
    model_id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StoredExplainer:
    """Says what the store has of one explainer of a model, by its latest event.

    Attributes
    ----------
    features, importance, half_width
        Of the latest event, in the order of its ranks; NaN where a number is not known.
    scalars
        Those of `SCALARS` that the latest event has.
    """

    model_id: str
    explainer: str
    removal: str
    loss: str
    loss_unit: str
    loss_largest: float | None
    alpha: float
    mode: str | None
    version: str
    n_events: int
    first_ms: int | None
    last_ms: int | None
    first_observation: int
    last_observation: int
    n_observations: int
    features: tuple[str, ...]
    importance: Floats
    half_width: Floats
    scalars: Mapping[str, float | None]
    quality: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredModel:
    """Says what the store has of a model.

    Attributes
    ----------
    status
        The latest record of the topic of statuses; empty where there is none.
    status_ms
        Kafka's timestamp of it.
    """

    model_id: str
    explainers: tuple[StoredExplainer, ...]
    status: Mapping[str, Any]
    status_ms: int | None
    last_ms: int | None


@dataclass(frozen=True, slots=True)
class StoredIncident:
    """Holds the newest revision of an incident, as the topic has it.

    Attributes
    ----------
    time_ms, observation
        Of this revision.
    begun_ms
        When the incident began; of this revision where that is not known.
    event
        The whole where the incident was asked for by its id. In a list it has names of features alone, neither effects
        nor evidence, and of the explanation the threshold.
    """

    id: str
    model_id: str
    time_ms: int | None
    begun_ms: int | None
    observation: int
    is_open: bool
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """Says from where to where the store has importances of a version."""

    version: str
    first_ms: int | None
    last_ms: int | None
    first_observation: int
    last_observation: int


@dataclass(frozen=True, slots=True)
class StoredReason:
    """Counts dead letters of a model by reason and stage."""

    model_id: str
    reason: str
    stage: str
    n: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Window:
    """Holds the events of an explainer between two moments, put together into at most so many points.

    Attributes
    ----------
    n_events
        How many events the points are made of.
    time_ms, observation
        Of the last event of each point, (n_points,).
    features
        All features that the last event has, in the order of its ranks; then those that only earlier ones have.
    shown
        Which of `features` the matrices below are of: their positions, (n_shown,).
    importance, low, high
        Mean importance, least lower and largest upper bound of the 95 % interval of each point, (n_points, n_shown);
        NaN where not known.
    share, rank
        By all features of the last event of each point, (n_points, n_shown); rank 0 where a feature is not known.
    last_importance, last_half_width, last_share
        Of the last event, for all `features`.
    scalars, quality, quality_reference
        Mean of each point, (n_points,) each.
    """

    n_events: int
    time_ms: NDArray[np.int64]
    observation: NDArray[np.int64]
    features: tuple[str, ...]
    shown: NDArray[np.int64]
    importance: Floats
    low: Floats
    high: Floats
    share: Floats
    rank: NDArray[np.int64]
    last_importance: Floats
    last_half_width: Floats
    last_share: Floats
    scalars: Mapping[str, Floats]
    quality: Mapping[str, Floats] = field(default_factory=dict)
    quality_reference: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Holds one importance event as the store has it; numbers have the precision of float32."""

    model_id: str
    explainer: str
    removal: str
    loss: str
    loss_unit: str
    loss_largest: float | None
    version: str
    time_ms: int | None
    observation: int
    features: tuple[str, ...]
    importance: Floats
    half_width: Floats
    scalars: Mapping[str, float | None]
