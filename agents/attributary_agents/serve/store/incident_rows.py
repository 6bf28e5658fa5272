"""Makes the row that says in a line what is known of an incident: of lists, and of what is told live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .rows import StoredIncident

Standing = Literal["bad", "suspected", "open", "over"]
"""How an incident stands: open and bad, being confirmed, open and not bad, over or withdrawn."""


def standing_of(event: Mapping[str, Any]) -> Standing:
    """Return how an incident stands: one that is critical is bad while it is only suspected, too."""
    life, severity = event["life"], event["severity"]
    if life in ("over", "withdrawn"):
        return "over"
    if severity == "critical" or (life == "confirmed" and severity == "warning"):
        return "bad"
    return "suspected" if life == "suspected" else "open"


def incident_row(incident: StoredIncident) -> dict[str, Any]:
    """Return the fields of `answers.incidents.IncidentRow`."""
    event = incident.event
    since = event["since"]
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
