"""View of the moments that a Grafana dashboard marks, as annotations."""

from __future__ import annotations

from typing import Any

from ...config.settings import Config
from ..store.rows import StoredIncident
from ..store.store import Store
from .choosing import model_of

MOST = 1_000
"""Annotations at most."""

Annotation = dict[str, Any]


def annotation_list(
    store: Store,
    config: Config,
    *,
    start_ms: int | None = None,
    end_ms: int | None = None,
    model_id: str | None = None,
    last: int = 200,
) -> list[Annotation]:
    """Return the annotations of incidents for Grafana, newest first.

    Each has time, timeEnd, title, text and tags; their order is that of the incidents' beginnings.

    An incident is a region from its beginning to its end; while it is open it ends with the window. Those without a
    time, and those that were withdrawn, are left out.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows the model.
    """
    if model_id is not None:
        model_of(store, config, model_id)
    found = store.incidents(model_id, start_ms=start_ms, end_ms=end_ms, last=min(max(last, 0), MOST))
    return [
        _annotation(one, one.begun_ms, end_ms)
        for one in found
        if one.begun_ms is not None and one.event["life"] != "withdrawn"
    ]


def _annotation(incident: StoredIncident, begun_ms: int, end_ms: int | None) -> Annotation:
    event = incident.event
    until = end_ms if incident.is_open else incident.time_ms
    return {
        "id": incident.id,
        "time": begun_ms,
        "timeEnd": begun_ms if until is None else max(until, begun_ms),
        "title": event["headline"],
        "text": event["sentence"],
        "tags": [incident.model_id, *(event[key] for key in ("what", "life", "severity"))],
    }
