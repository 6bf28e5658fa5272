"""Stands in for what aiokafka's consumer, in Faust's thread, has noted of the partitions that it fetches."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from faust.types import TP


def noted(end: int | None, *, stable: int | None = None, position: int | None = None, age_s: float = 0.0) -> Any:
    """Return what is noted of a partition after a fetch of that age; before the first one where there is no end."""
    return SimpleNamespace(
        highwater=end,
        lso=stable,
        timestamp=None if end is None else round((time.time() - age_s) * 1000),
        has_valid_position=position is not None,
        position=position,
    )


def client_thread(states: Mapping[TP, Any]) -> Any:
    """Return the thread of a consumer to which these partitions are assigned."""
    assignment = SimpleNamespace(tps=states.keys(), state_value=states.__getitem__)
    subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))
    return SimpleNamespace(_consumer=SimpleNamespace(_subscription=subscription))
