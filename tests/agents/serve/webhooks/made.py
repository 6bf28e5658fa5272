"""Events and records of the topic of incidents, as the tests of webhooks need them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from attributary_agents.serve.webhooks.target import Revision


def incident(incident_id: str = "bank:obs:0:1", model_id: str = "bank", **changed: Any) -> dict[str, Any]:
    return {
        "event": "incident",
        "id": incident_id,
        "model_id": model_id,
        "what": "worse",
        "life": "confirmed",
        "severity": "warning",
        "reason": "confirmed",
        "since": {"observation": 1, "low": None, "high": 1, "time": "2026-11-01T11:40:30.000Z"},
        "features": {},
        "headline": f"{model_id} is worse",
        "action": "Can wait until morning: train it again.",
        "sentence": f"{model_id} is worse. Can wait until morning: train it again. It began at observation 1.",
        **changed,
    }


def event(n: int = 1, model_id: str = "bank", **changed: Any) -> Revision:
    at = f"{model_id}:obs:0:{n}"
    data = incident(at, model_id, **changed)
    return Revision(at, "/attributary/obs", "attributary.incident.v1", model_id, "2026-11-01T10:00:00.000Z", data)


def record(offset: int, *, event_id: str = "", partition: int = 0, model_id: str = "bank", **changed: Any) -> Any:
    event_id = event_id or f"{model_id}:obs:{partition}:{offset}:1"
    data = incident(changed.pop("incident_id", event_id), model_id, **changed)
    return SimpleNamespace(
        topic="incidents",
        partition=partition,
        offset=offset,
        key=model_id.encode(),
        value=json.dumps(data).encode(),
        headers=[("ce_id", event_id.encode())],
    )
