"""Stores that are filled by hand-written events, and configurations that know their models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.serve.store.rows import Arrived, Kind
from attributary_agents.serve.store.store import Store
from attributary_topics import event_time

from ..incidents import incident_event

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = 1_790_000_000_000
SOURCE = {"topic": "attributary.observations.v1", "partition": 0, "offset": 1}
_number = count(1)

Value = float | None
Features = Mapping[str, Value | tuple[Value, Value]]
"""Feature to importance, or to importance and half width."""


def config_of(models: Mapping[str, Mapping[str, Any]], **sections: Any) -> Config:
    made = {"factory": "tests.agents.stand_ins:counting_classifier"}
    return parse_config({"models": {name: {**made, **model} for name, model in models.items()}, **sections})


def arrived(
    kind: Kind, model_id: str, time_ms: int | None, event: Mapping[str, Any], event_id: str | None = None
) -> Arrived:
    n = next(_number)
    return Arrived(kind, 0, n, event_id or f"{kind}-{n}", model_id, time_ms, event)


def importance(
    model_id: str, time_ms: int | None, observation: int, features: Features, explainer: str = "pfi", **fields: Any
) -> Arrived:
    pairs = {name: value if isinstance(value, tuple) else (value, None) for name, value in features.items()}
    known = {name: value for name, (value, _) in pairs.items() if value is not None}
    total = sum(max(value, 0.0) for value in known.values()) or 1.0
    order = sorted(pairs, key=lambda name: (-known.get(name, -1e300), name))
    event = {
        "model_id": model_id,
        "model_version": "1",
        "explainer": explainer,
        "removal": "interventional",
        "loss": "brier",
        "loss_unit": "squared probability",
        "loss_largest": 2.0,
        "alpha": 0.001,
        "observation": observation,
        "n_observations": observation,
        "model_loss": 0.31,
        "baseline_loss": 0.68,
        "quality": {"accuracy": {"value": 0.9, "reference": 0.95}},
        "discrepancy": 0.1,
        "shift": 0.04,
        "ndcg": 0.99,
        "reference_id": "2000",
        "trigger": "interval",
        "stale": False,
        "features": {
            name: {
                "importance": pairs[name][0],
                "std_error": None,
                "half_width": pairs[name][1],
                "share": max(known.get(name, 0.0), 0.0) / total,
                "rank": rank,
            }
            for rank, name in enumerate(order, start=1)
        },
        "source": SOURCE,
        **fields,
    }
    return arrived("importance", model_id, time_ms, event)


def incident(
    model_id: str, time_ms: int | None, since: int, incident_id: str | None = None, revision: int = 1, **fields: Any
) -> Arrived:
    """A revision of an incident that began at that time, and was told 100 observations and a minute later."""
    incident_id = incident_id or f"{model_id}:{since}"
    begun = None if time_ms is None else event_time(time_ms)
    given = {"since": since, "low": since - 5, "observation": since + 100, "time": begun, **fields}
    event = incident_event(incident_id, revision, model_id=model_id, **given)
    told_ms = None if time_ms is None else time_ms + MINUTE
    return arrived("incident", model_id, told_ms, event, f"{incident_id}/{revision}")


def status(model_id: str, time_ms: int, state: str = "explained", **fields: Any) -> Arrived:
    event = {
        "model_id": model_id,
        "state": state,
        "model_version": "1",
        "n_observations": 1000,
        "n_refused": 0,
        "observations_per_second": 42.0,
        "event_time": None,
        "partition": 0,
        **fields,
    }
    return arrived("status", model_id, time_ms, event, model_id)


def dead_letters(model_id: str, time_ms: int, reason: str, n: int, stage: str = "decode") -> list[Arrived]:
    return [arrived("dead_letter", model_id, time_ms + i, {"reason": reason, "stage": stage}) for i in range(n)]


def store_of(*records: Arrived | Iterable[Arrived]) -> Store:
    """A store in a temporary file that has taken the records."""
    store = Store()
    flat: Sequence[Arrived] = [
        one for record in records for one in ([record] if isinstance(record, Arrived) else record)
    ]
    store.take(flat)
    return store
