"""The last change of a model, in short: what leads from a spike in a metric to the event that explains it.

Part of the model's state, so that the next owner of its partition can tell it, too. The event itself is in the changes
topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prometheus_client.samples import Exemplar

from attributary_topics import ChangeEvent

from .model_state import ModelState

_EXEMPLAR_ID = "event_id"
_EXEMPLAR_LENGTH = 128 - len(_EXEMPLAR_ID)
"""OpenMetrics allows 128 characters for names and values of an exemplar's labels."""


def in_short(event: ChangeEvent, headers: Sequence[tuple[str, bytes | None]], timestamp_ms: int) -> dict[str, Any]:
    """What is kept of an event: which it is, where it came from, and what it says."""
    context = {name: value.decode() for name, value in headers if value is not None}
    return {
        "id": context["ce_id"],
        "time": context.get("ce_time"),
        "timestamp_ms": timestamp_ms,
        "model_id": event.model_id,
        "kind": event.kind,
        "route": event.route,
        "observation": event.observation,
        "discrepancy": event.discrepancy,
        "threshold": event.threshold,
        "n_discrepancy": event.n_discrepancy,
        "cause": event.cause,
        "sentence": event.sentence,
        "source": {
            "topic": event.source.topic,
            "partition": event.source.partition,
            "offset": event.source.offset,
        },
    }


def exemplar(state: ModelState, route: str) -> Exemplar | None:
    """What stands beside the count of changes of a route: the id of the last one; its end, where it is too long."""
    last = state.last_change
    if last is None or last["kind"] != "model" or last["route"] != route:
        return None
    return Exemplar({_EXEMPLAR_ID: last["id"][-_EXEMPLAR_LENGTH:]}, 1.0, last["timestamp_ms"] / 1000)
