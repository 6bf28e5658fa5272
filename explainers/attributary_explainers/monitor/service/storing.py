"""Stores a monitor as plain data, and has the models of another one go on from them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from ...errors import SnapshotError
from ..events import Outbox
from .model import MonitoredModel

_FORMAT = 1


def snapshot_of(models: Mapping[str, MonitoredModel], outbox: Outbox) -> dict[str, Any]:
    """Return plain data to restore from: all models at one moment, with the events that wait."""
    models = dict(models)
    with ExitStack() as held:
        for model in models.values():
            held.enter_context(model.lock)
        taken = {model_id: model.snapshot() for model_id, model in models.items()}
        return {"format": _FORMAT, "models": taken, "outgoing": outbox.snapshot()}


def restored(models: Mapping[str, MonitoredModel], snapshot: Any) -> dict[str, MonitoredModel]:
    """Return the models with what a snapshot tells of them; those that are given are as they were.

    Raises
    ------
    SnapshotError
        It is none, or one of other models, versions or settings.
    """
    if not isinstance(snapshot, Mapping):
        raise SnapshotError(
            f"expected what snapshot() has returned, got {type(snapshot).__name__}; of bytes, give pickle.loads(…)"
        )
    if snapshot.get("format") != _FORMAT or not {"models", "outgoing"} <= snapshot.keys():
        raise SnapshotError(
            f"expected a snapshot of a monitor, of format {_FORMAT}, got format {snapshot.get('format')!r} with "
            f"{', '.join(map(str, snapshot)) or 'nothing'}: begin without it, or with the release that took it"
        )
    if snapshot["models"].keys() != models.keys():
        raise SnapshotError(
            f"the snapshot is of the models {', '.join(snapshot['models'])}, and the monitor has "
            f"{', '.join(models) or 'none'}: add the same before you restore"
        )
    return {name: model.restored(snapshot["models"][name]) for name, model in models.items()}
