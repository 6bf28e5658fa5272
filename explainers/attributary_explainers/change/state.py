"""Holds what a change explainer knows about its stream, and stores and restores it."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import numpy as np

from ..batch.tables import BatchImportance
from ..incremental.base import SNAPSHOT_FORMAT
from ..losses.losses import Loss
from ..typing import Snapshot
from .alarms import Alarms
from .discrepancy import Distance
from .explanation import RejectedAlarm
from .reference import Measure, Reference

KEPT_REJECTED = 16
_COUNTS = ("n_observations", "n_rejected", "n_explained", "n_data_changes", "n_restarts")


class ChangeState:
    """Holds the parameters, counts, reference and recent observations of a `ChangeExplainer`."""

    name = "change"

    model: Any
    version: str | None
    window: int
    max_restarts: int
    min_observations: int
    explain_data: bool
    signal: str
    distance: Distance
    n_observations: int
    n_rejected: int
    n_explained: int
    n_data_changes: int
    n_restarts: int
    n_alarms: Counter[str]
    _measure: Measure
    _rng: np.random.Generator
    _alarms: Alarms
    _rejected: deque[RejectedAlarm]
    _recent: deque[tuple[dict[Any, Any], Any]]
    _reference: Reference | None
    _n_collected: int | None
    _alarm: tuple[str, int, int]

    @property
    def loss(self) -> Loss:
        """The loss of the importances."""
        return self._measure.loss

    @property
    def threshold(self) -> float:
        """Discrepancy above which a change is explained (tau)."""
        return self._alarms.threshold

    @property
    def detector_name(self) -> str | None:
        """Name of the drift detector; None without one."""
        return self._alarms.detector_name

    @property
    def discrepancy(self) -> float | None:
        """Smoothed distance between the reference's and the model's predictions; None without a reference."""
        return self._alarms.discrepancy.value if self._alarms.discrepancy else None

    @property
    def n_discrepancy(self) -> int:
        """Observations in `discrepancy`, since the reference was taken."""
        return 0 if self._alarms.discrepancy is None else self._alarms.discrepancy.n

    @property
    def reference_observation(self) -> int | None:
        """Observation after which the reference model was taken; None without one. Names the reference."""
        return self._reference.n_observations if self._reference else None

    @property
    def reference(self) -> dict[str, BatchImportance] | None:
        """Importance of the reference model on its data, by method; None without one."""
        return {m: of.batch for m, of in self._reference.measured.items()} if self._reference else None

    @property
    def is_collecting(self) -> bool:
        """Whether observations are being collected: for the first reference, or after an alarm."""
        return self._n_collected is not None

    @property
    def rejected(self) -> list[RejectedAlarm]:
        """The last alarms that were no change of the model, at most 16, the newest last; `n_rejected` counts all."""
        return list(self._rejected)

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments as plain data."""
        return {
            "signal": self.signal,
            "max_restarts": self.max_restarts,
            "min_observations": self.min_observations,
            "explain_data": self.explain_data,
            **self._alarms.parameters,
            **self._measure.parameters,
        }

    def snapshot(self) -> Snapshot:
        """Return everything but the current model; reference model and detector as the bytes of `dump_model`."""
        return {
            "format": SNAPSHOT_FORMAT,
            "explainer": self.name,
            "parameters": self.parameters,
            "version": self.version,
            "generator": self._rng.bit_generator.state,
            "alarms": self._alarms.snapshot(),
            "reference": self._reference.snapshot() if self._reference else None,
            "recent": [(dict(x), y) for x, y in self._recent],
            "collected": self._n_collected,
            "alarm": list(self._alarm),
            "rejected": [[r.n_observations, r.n_detected, r.route, r.discrepancy, r.threshold] for r in self._rejected],
            "n_alarms": dict(self.n_alarms),
            "counts": [getattr(self, name) for name in _COUNTS],
        }

    def _restore(self, snapshot: Snapshot) -> None:
        self._rng.bit_generator.state = snapshot["generator"]
        if snapshot["reference"]:
            self._reference = Reference.from_snapshot(snapshot["reference"])
        self._alarms.restore(snapshot["alarms"], self._reference and self._reference.model)
        self._recent.extend((dict(x), y) for x, y in snapshot["recent"])
        self._n_collected = snapshot["collected"]
        route, detected, restarts = snapshot["alarm"]
        self._alarm = (route, detected, restarts)
        self._rejected.extend(RejectedAlarm(*values) for values in snapshot["rejected"])
        self.n_alarms = Counter(snapshot["n_alarms"])
        for name, count in zip(_COUNTS, snapshot["counts"], strict=True):
            setattr(self, name, count)
