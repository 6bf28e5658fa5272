"""Holds the capacity model: what one record costs a worker, in yardsticks, and the memory that a worker takes.

A yardstick is what River's scaler and logistic regression of ten features take to predict and learn on the machine at
hand: coefficients are counted in it, so that they travel further than microseconds do. `python -m benchmarks.scale fit`
makes `capacity.json`, which says how.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Load:
    """What decides the price of a record; times in yardsticks.

    Attributes
    ----------
    features
        Of an observation.
    predict, learn
        What the model takes by itself, one record.
    draws
        Of each explainer: `n_samples`, times `n_permutations` of iSAGE.
    models
        On one worker.
    partitions
        On one worker.
    value_bytes
        Bytes of a record's value.
    stored
        Models stored for one record: distinct models of a checkpoint over its records.
    state_bytes
        Bytes that one model's state is stored in.
    step
        What the worker's own functions take for one record, from bytes to events, as it was timed; None where it was
        not.
    """

    features: int
    predict: float
    learn: float
    draws: tuple[int, ...] = ()
    models: int = 1
    partitions: int = 1
    value_bytes: int = 0
    stored: float = 0.0
    state_bytes: float = 0.0
    step: float | None = None


def by_settings(load: Load) -> dict[str, float]:
    """Return the terms of a record's price where nothing but the settings is known, by name."""
    rows = sum(draws * load.features for draws in load.draws)
    return {
        "record": 1.0,
        "features": float(load.features),
        "model": load.predict + load.learn,
        "explainers": float(len(load.draws)),
        "rows": float(rows),
        "values of rows": float(rows * load.features),
        "rows in predictions": rows * load.predict,
        **_around(load),
    }


def by_step(load: Load) -> dict[str, float]:
    """Return the terms of a record's price where the worker's own functions were timed on the records."""
    assert load.step is not None
    return {"record": 1.0, "step": load.step, "bytes": load.value_bytes / 1000.0, **_around(load)}


def _around(load: Load) -> dict[str, float]:
    """Return the terms of what stands around the model: others of its kind, partitions, checkpoints."""
    return {
        "other models": float(load.models > 1),
        "partitions": float(load.partitions - 1),
        "models stored": load.stored,
        "kilobytes stored": load.stored * load.state_bytes / 1000.0,
    }


@dataclass(frozen=True)
class Fit:
    """One fitted sum of terms.

    Attributes
    ----------
    coefficients
        Yardsticks for one of each term, by its name.
    error
        Largest relative residual of the points that it was fitted to, and the median of them all.
    """

    coefficients: dict[str, float]
    error: float
    typical_error: float

    def price(self, terms: Mapping[str, float]) -> float:
        """Return the sum, in yardsticks."""
        return sum(self.coefficients[name] * n for name, n in terms.items())


@dataclass(frozen=True)
class Capacity:
    """The whole capacity model.

    Attributes
    ----------
    worker_bytes
        Resident memory of a worker with one small model.
    bytes_per_stored
        Bytes in memory for one byte of a stored state.
    """

    by_settings: Fit
    by_step: Fit
    worker_bytes: float
    bytes_per_stored: float
    made_by: str


def read_capacity(data: Mapping[str, Any]) -> Capacity:
    """Return the capacity model that is written down as plain data."""
    fits = {
        name: Fit(dict(data[name]["coefficients"]), data[name]["error"], data[name]["typical_error"])
        for name in ("by_settings", "by_step")
    }
    memory = data["memory"]
    return Capacity(
        fits["by_settings"],
        fits["by_step"],
        memory["worker_bytes"],
        memory["bytes_per_stored"],
        data["made_by"],
    )


@cache
def installed_capacity() -> Capacity:
    """Return the capacity model of this release."""
    return read_capacity(json.loads((files(__package__) / "capacity.json").read_text()))
