"""Answers which moments a dashboard of Grafana is to mark, in the form that its annotations have."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...config.settings import Config
from ..store.rows import StoredChange
from ..store.store import Store
from .changes import TOLD
from .choosing import model_of
from .words import gist, name

MOST = 1_000
"""Annotations at most."""

ENDS = ("importance_shift_released", "loss_shift_released")
"""Events that end what another one began: they are no annotation of their own where that one is there."""

Annotation = dict[str, Any]


def annotation_list(
    store: Store,
    config: Config,
    *,
    start_ms: int | None = None,
    end_ms: int | None = None,
    model_id: str | None = None,
    events: Collection[str] = (),
    last: int = 200,
) -> list[Annotation]:
    """Return what Grafana marks: time, timeEnd, title, text and tags of each, the newest first.

    A shift of importance or of the loss is a region up to its end; while it is open it ends with the window. Events
    without a time are left out, and alarms of which it is known what they were.

    Parameters
    ----------
    events
        Kinds of events; empty: all.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows the model.
    """
    if model_id is not None:
        model_of(store, config, model_id)
    wanted = tuple(events) or TOLD
    found = store.changes(
        model_id, start_ms=start_ms, end_ms=end_ms, events={*wanted, *ENDS}, last=min(max(last, 0), MOST)
    )
    begun = {change.id for change in found}
    ends = {change.closes: change for change in found if _kind(change) in ENDS and change.closes is not None}
    return [
        _annotation(change, ends.get(change.id), end_ms)
        for change in found
        if change.time_ms is not None
        and _kind(change) in wanted
        and (_kind(change) != "alarm" or change.is_open)
        and not (_kind(change) in ENDS and change.closes in begun)
    ]


def _kind(change: StoredChange) -> str:
    return str(change.event.get("event"))


def _annotation(change: StoredChange, end: StoredChange | None, end_ms: int | None) -> Annotation:
    event = change.event
    until = end.time_ms if end is not None else None
    if until is None and change.is_open and _kind(change) in ("importance_shift", "loss_shift"):
        until = end_ms
    tags = [change.model_id, _kind(change), *(str(event[key]) for key in ("verdict", "kind") if event.get(key))]
    return {
        "id": change.id,
        "time": change.time_ms,
        "timeEnd": until
        if until is not None and change.time_ms is not None and until > change.time_ms
        else change.time_ms,
        "title": f"{name(change.model_id)}: {gist(event)}",
        "text": str(event.get("sentence") or ""),
        "tags": tags,
    }
