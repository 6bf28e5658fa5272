"""Writes what pages that are open are told, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from ..change_rows import change_row
from ..orders import order, shares
from ..packing import known
from ..rows import SCALARS, StoredChange
from .parsing import Importance

MOST_FEATURES = 50
"""Features of an importance that pages are told of, the most important first."""


def importance_payload(event: Importance, time_ms: int | None) -> bytes:
    """Return what is told of an importance event."""
    by_rank = order(event.importance)[:MOST_FEATURES].tolist()
    share = shares(event.importance)
    features = {
        event.names[at]: [_short(event.importance[at]), _short(event.half_width[at]), _short(share[at]), rank]
        for rank, at in enumerate(by_rank, start=1)
    }
    scalars = dict(zip(SCALARS, event.scalars, strict=True))
    told = {
        "model_id": event.model_id,
        "explainer": event.explainer,
        "time_ms": time_ms,
        "observation": event.observation,
        "version": event.version,
        "n_features": len(event.names),
        "n_observations": event.n_observations,
        **{name: _short(value) for name, value in scalars.items() if name not in _LEFT_OUT},
        "features": features,
    }
    return orjson.dumps(told)


_LEFT_OUT = ("ndcg", "label_delay_median_s")


def change_payload(change: StoredChange) -> bytes:
    """Return what is told of a change: the row of it."""
    return orjson.dumps(change_row(change))


def status_payload(model_id: str, status: Mapping[str, Any]) -> bytes:
    """Return what is told of a status."""
    told = {"model_id": model_id, "version": status.get("model_version")}
    return orjson.dumps(told | {name: status.get(name) for name in _STATUS})


_STATUS = ("state", "n_observations", "observations_per_second", "n_waiting", "n_expired", "n_refused")


def gone_payload(model_id: str) -> bytes:
    """Return what is told of a model of which nothing is left."""
    return orjson.dumps({"model_id": model_id})


def counts_payload(counts: Mapping[str, int]) -> bytes:
    """Return how many new dead letters there are of each model."""
    return orjson.dumps(dict(counts))


def _short(value: Any) -> float | None:
    number = known(value)
    return None if number is None else float(f"{number:.6g}")
