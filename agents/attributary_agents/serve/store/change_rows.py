"""Makes the row that says in a line what the topic of changes has said once: of lists, and of what is told live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .rows import StoredChange


def change_row(change: StoredChange) -> dict[str, Any]:
    """Return the fields of `answers.changes.ChangeRow`."""
    event = change.event
    version = _text(event, "model_version")
    return {
        "id": change.id,
        "event": _text(event, "event") or "",
        "model_id": change.model_id,
        "model_version": version or "",
        "model_version_before": _text(event, "model_version_before"),
        "route": _text(event, "route"),
        "verdict": _text(event, "verdict") or _text(event, "kind"),
        "feature": _text(event, "feature"),
        "time_ms": change.time_ms,
        "observation": change.observation,
        "sentence": _text(event, "sentence") or "",
        "is_open": change.is_open,
        "mode": _text(event, "mode"),
    }


def _text(event: Mapping[str, Any], name: str) -> str | None:
    value = event.get(name)
    return value if isinstance(value, str) else None
