"""Writes what pages that are open are told, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ..incident_rows import incident_row
from ..orders import order, shares
from ..rows import SCALARS, StoredIncident
from .parsing import Importance

Floats = NDArray[np.float64]

_EXACT = 22  # powers of ten up to this one are floats

MOST_FEATURES = 50
"""Features of an importance that pages are told of, the most important first."""


def importance_payload(event: Importance, time_ms: int | None) -> bytes:
    """Return what is told of an importance event."""
    by_rank = order(event.importance)[:MOST_FEATURES]
    numbers = np.column_stack([event.importance, event.half_width, shares(event.importance)])[by_rank]
    features = {
        event.names[at]: [*row, rank]
        for rank, (at, row) in enumerate(zip(by_rank.tolist(), _rounded(numbers).tolist(), strict=True), start=1)
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


def incident_payload(incident: StoredIncident) -> bytes:
    """Return what is told of an incident: the row of it."""
    return orjson.dumps(incident_row(incident))


def status_payload(model_id: str, status: Mapping[str, Any]) -> bytes:
    """Return what is told of a status."""
    told = {"model_id": model_id, "version": status.get("model_version")}
    return orjson.dumps(told | {name: status.get(name) for name in _STATUS})


_STATUS = ("state", "n_observations", "observations_per_second", "n_waiting", "n_expired", "n_refused", "guard")


def gone_payload(model_id: str) -> bytes:
    """Return what is told of a model of which nothing is left."""
    return orjson.dumps({"model_id": model_id})


def counts_payload(counts: Mapping[str, int]) -> bytes:
    """Return how many new dead letters there are of each model."""
    return orjson.dumps(dict(counts))


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _rounded(numbers: Floats) -> Floats:
    """Return numbers with six digits; those that are not known stay NaN, which becomes null."""
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = 5.0 - np.floor(np.log10(np.abs(numbers)))
    is_plain = np.abs(digits) <= _EXACT  # also those that are neither 0 nor NaN
    power = 10.0 ** np.where(is_plain, np.abs(digits), 0.0)
    # Numbers divided by an exact power of ten are the ones that are written shortest.
    rounded = np.where(digits >= 0, np.rint(numbers * power) / power, np.rint(numbers / power) * power)
    return np.where(is_plain, rounded, numbers)
