"""/changes and /changes/<model id>: the last change of each model on this worker, as JSON."""

from __future__ import annotations

from typing import Any

from ..config.settings import Config
from ..worker.view import WorkerView

PREFIX = "/changes"


def answer(path: str, config: Config, view: WorkerView) -> tuple[str, Any]:
    """Status and body: an object for JSON, or text.

    Parameters
    ----------
    path
        `/changes`, or with `/` and a model id, decoded.
    """
    found = _last_changes(view)
    if found is None:
        return "503 Service Unavailable", "the worker is at an observation that takes long: ask again"
    model_id = path.removeprefix(PREFIX).removeprefix("/")
    if not model_id:
        return "200 OK", found
    if model_id in found:
        return "200 OK", found[model_id]
    if model_id not in config.models:
        return "404 Not Found", f"no model {model_id!r} is configured, but {', '.join(config.models)}"
    return "404 Not Found", (
        f"this worker knows no change of {model_id!r}: it has not changed, or is on another worker. The topic "
        f"{config.kafka.topics.changes} has all changes: attributary changes {model_id}"
    )


def _last_changes(view: WorkerView) -> dict[str, dict[str, Any]] | None:
    """By model id, of the models here that have changed; None while a step takes longer than a second."""
    if not view.lock.acquire(timeout=1.0):
        return None
    try:
        states = [state for partition in view.partitions.values() for state in partition.models.values()]
        return {state.model_id: state.last_change for state in states if state.last_change is not None}
    finally:
        view.lock.release()
