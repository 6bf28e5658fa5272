"""Makes records of output topics for tests of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attributary_agents.serve.store.rows import Arrived, Kind
from attributary_agents.serve.store.store import Store
from attributary_explainers.ranking import ranks, shares
from attributary_topics import ImportanceEvent, Source, encode_json
from attributary_topics.codec import decode_json
from attributary_topics.events import FeatureImportance, QualityFigure

from ..incidents import incident_event

T0 = 1_790_000_000_000
DAY_MS = 86_400_000

KEPT = {
    "importance": "select count(*) from importances",
    "incident": "select count(*) from incidents",
    "dead_letter": "select coalesce(sum(n), 0) from letters",
    "status": "select count(*) from statuses",
}


def n_records(store: Store, kind: Kind) -> int:
    """Return how many events of a kind a store keeps."""
    return int(store._rows(KEPT[kind])[0][0])


def importance(
    t: int | None,
    observation: int,
    features: Mapping[str, float] = {"age": 2.0, "salary": 1.0},
    *,
    model_id: str = "bank",
    explainer: str = "pfi",
    removal: str = "interventional",
    loss: str = "cross-entropy",
    version: str = "1",
    half_width: float | None = 0.5,
    quality: Mapping[str, tuple[float | None, float | None]] = {},
    offset: int | None = None,
    **scalars: Any,
) -> Arrived:
    """Return an importance event, as it is when it has been on the wire."""
    by_rank, share = ranks(features), shares(features)
    fields: dict[str, Any] = {
        "model_loss": 0.25,
        "baseline_loss": 0.5,
        "discrepancy": None,
        "shift": None,
        "ndcg": None,
    }
    event = ImportanceEvent(
        model_id=model_id,
        model_version=version,
        explainer=explainer,
        removal=removal,
        loss=loss,
        loss_unit="nats",
        loss_largest=None,
        alpha=0.01,
        observation=observation,
        n_observations=observation,
        quality={name: QualityFigure(*pair) for name, pair in quality.items()},
        reference_id=None,
        trigger="interval",
        stale=False,
        features={
            name: FeatureImportance(
                features[name],
                None if half_width is None else half_width / 2,
                half_width,
                share[name],
                by_rank[name],
            )
            for name in sorted(features, key=lambda name: by_rank[name])
        },
        source=Source("observations", 0, observation),
        **{**fields, **scalars},
    )
    at = observation if offset is None else offset
    return Arrived("importance", 0, at, f"{model_id}:o:0:{at}", model_id, t, decode_json(encode_json(event)))


def incident(incident_id: str, t: int | None, revision: int = 1, *, model_id: str = "bank", **more: Any) -> Arrived:
    """Return a revision of an incident."""
    event = incident_event(incident_id, revision, model_id=model_id, **more)
    return Arrived("incident", 0, 0, f"{incident_id}/{revision}", model_id, t, event)


def status(t: int, state: str = "explained", *, model_id: str = "bank", partition: int = 0, **more: Any) -> Arrived:
    """Return a record of the topic of statuses."""
    said = {"model_id": model_id, "state": state, "model_version": "1", "partition": partition, "n_observations": 9}
    return Arrived("status", 0, 0, model_id, model_id, t, {**said, **more})


def letter(letter_id: str, t: int, reason: str = "invalid_json", *, model_id: str = "bank") -> Arrived:
    """Return a dead letter."""
    return Arrived("dead_letter", 0, 0, letter_id, model_id, t, {"reason": reason, "stage": "decode"})
