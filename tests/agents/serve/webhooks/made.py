"""Events and records of the topic of changes, as the tests of webhooks need them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from attributary_agents.serve.webhooks.events import ToldEvent


def event(n: int = 1, kind: str = "explanation", sentence: str = "bank has changed") -> ToldEvent:
    data = {"event": kind, "model_id": "bank", "sentence": sentence}
    return ToldEvent(
        f"bank:obs:0:{n}", "/attributary/obs", "attributary.change.v1", "bank", "2026-11-01T10:00:00.000Z", data
    )


def record(offset: int, kind: str = "explanation", *, event_id: str = "", partition: int = 0) -> Any:
    value = json.dumps({"event": kind, "model_id": "bank", "sentence": f"bank: {offset}"}).encode()
    headers = [("ce_id", (event_id or f"bank:obs:{partition}:{offset}:1").encode())]
    return SimpleNamespace(
        topic="changes", partition=partition, offset=offset, key=b"bank", value=value, headers=headers
    )
