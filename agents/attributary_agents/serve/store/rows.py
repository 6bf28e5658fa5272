"""Plain data that the store takes and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..answers import ReasonCount, Standing

Floats = NDArray[np.float64]
Pairs = Mapping[str, Sequence[float | None]]
"""Name to importance and half width, in the order of ranks; or to value and reference."""

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

DIGITS = 7
"""Significant digits of an importance and of its half width."""

_EXACT = 22  # powers of ten up to this one are floats


@dataclass(frozen=True, slots=True)
class Arrived:
    """Record of an output topic.

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
    """Live event for open pages: a growing id, a kind of docs/serve.md, JSON."""

    id: int
    event: str
    model_id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A single importance event.

    Attributes
    ----------
    features, importance, half_width
        In the order of ranks; NaN where a number is not known.
    scalars
        Those of `SCALARS` that the event has.
    quality
        Names of its metrics.
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
    time_ms: int | None
    observation: int
    n_observations: int
    features: tuple[str, ...]
    importance: Floats
    half_width: Floats
    scalars: Mapping[str, float]
    quality: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredExplainer(Snapshot):
    """Latest event of an explainer, with the extent of its stored events."""

    n_events: int
    first_ms: int | None
    last_ms: int | None
    first_observation: int
    last_observation: int


@dataclass(frozen=True, slots=True)
class StoredModel:
    """Explainers of a model, and its latest status with Kafka's timestamp.

    The status is empty where there is none.
    """

    model_id: str
    explainers: tuple[StoredExplainer, ...]
    status: Mapping[str, Any]
    status_ms: int | None
    last_ms: int | None


@dataclass(frozen=True, slots=True)
class StoredIncident:
    """Newest revision of an incident.

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


class StoredReason(ReasonCount):
    """Count of a model's dead letters of the same reason and stage."""

    model_id: str


@dataclass(frozen=True, slots=True)
class Window:
    """Events of an explainer between two moments, merged into a few points.

    Attributes
    ----------
    n_events
        How many events there are between the two.
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
    quality: Mapping[str, Floats]
    quality_reference: Mapping[str, Floats]


def standing_of(event: Mapping[str, Any]) -> Standing:
    """Return the standing of an incident.

    A critical incident is bad while it is only suspected, too.
    """
    life, severity = event["life"], event["severity"]
    if life in ("over", "withdrawn"):
        return "over"
    if severity == "critical" or (life == "confirmed" and severity == "warning"):
        return "bad"
    return "suspected" if life == "suspected" else "open"


def incident_row(incident: StoredIncident) -> dict[str, Any]:
    """Return the fields of `answers.incidents.IncidentRow`."""
    event, since = incident.event, incident.event["since"]
    told = ("model_version", "number", "revision", "what", "life", "severity", "reason", "headline", "sentence")
    return {
        "id": incident.id,
        "model_id": incident.model_id,
        **{name: event[name] for name in told},
        "standing": standing_of(event),
        "since": {name: since[name] for name in ("observation", "low", "high")} | {"time_ms": incident.begun_ms},
        "observation": incident.observation,
        "time_ms": incident.time_ms,
        "features": list(event["features"]),
        "mode": event.get("mode"),
    }


def rounded(numbers: Floats, digits: int = DIGITS) -> Floats:
    """Return numbers with so many significant digits.

    Numbers beyond 1e±22 are returned as they are.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(numbers)))
        is_plain = np.abs(places) <= _EXACT  # also false of 0 and NaN
        power = 10.0 ** np.where(is_plain, np.abs(places), 0.0)
        # Numbers divided by an exact power of ten are the ones that are written shortest.
        short = np.where(places >= 0, np.rint(numbers * power) / power, np.rint(numbers / power) * power)
    return np.where(is_plain, short, numbers)
