"""Holds what a change explainer knows about its stream, and stores and restores it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..incremental.base import SNAPSHOT_FORMAT
from ..losses.losses import Loss
from ..typing import Snapshot
from .discrepancy import Distance
from .holdout.frozen import Frozen, dump
from .holdout.holdout import HeldOut
from .holdout.rows import Row, arrays
from .judging.course import Course
from .judging.verdict import Losses, losses_of
from .measure import Measure
from .records import Deployed, Examined, Matured, Reference, plain, restored
from .watch import SignalWatch

_CLOCKS = ("_born", "_next_check", "_quiet_until", "_detector_quiet_until", "_n_dismissed", "_matured_at_age")


class ChangeState:
    """Holds the parameters, counts and reference of a `ChangeExplainer`, and what is open."""

    name = "change"

    model: Any
    version: str | None
    window: int
    threshold: float
    scale: str
    margin: float
    watch_discrepancy: bool
    distance: Distance
    n_observations: int
    n_not_confirmed: int
    n_skipped: int
    """Observations that nothing was made of: no prediction, or a loss that is NaN or infinite."""
    n_alarms: Counter[str]
    n_explained: Counter[str]
    _measure: Measure
    _rng: np.random.Generator
    _watch: SignalWatch
    _held: HeldOut
    _course: Course

    def _forget(self) -> None:
        """Begin anew with a model: no reference, nothing open."""
        self._reference: Reference | None = None
        self._examined: Examined | None = None
        self._matured: Matured | None = None
        self._deployed: Deployed | None = None
        self._half: Frozen | None = None
        self._before_course: Frozen | None = None
        self._discrepancy = (0.0, 0)
        self._born = self._held.n_rows
        self._next_check = 0
        self._quiet_until = self._detector_quiet_until = self._n_dismissed = 0
        self._matured_at_age: int | None = None
        self._is_degraded = False
        self._held.compare_with(None)

    @property
    def loss(self) -> Loss:
        """The loss of the importances."""
        return self._measure.loss

    @property
    def loss_of_verdicts(self) -> Loss:
        """The loss that verdicts rest on."""
        return self._held.loss

    @property
    def detector_name(self) -> str | None:
        """Name of the drift detector; None without one."""
        return self._watch.name

    @property
    def discrepancy(self) -> float | None:
        """Discrepancy over the last window, a tenth of a window old at most; None before it is known."""
        return self._discrepancy[0] if self._discrepancy[1] else None

    @property
    def n_discrepancy(self) -> int:
        """Observations in `discrepancy`."""
        return self._discrepancy[1]

    @property
    def reference_observation(self) -> int | None:
        """Observation after which the reference model was taken; None without one. Names the reference."""
        return self._reference.n if self._reference else None

    @property
    def is_examining(self) -> bool:
        """Whether an alarm that was told is open."""
        return self._examined is not None and not self._examined.is_muted

    @property
    def pattern(self) -> str | None:
        """`trend` or `recurring` while such a pattern, which was told, goes on; else None."""
        return self._course.pattern if self._course.is_told(self._held.n_rows) else None

    def _losses(self, rows: Sequence[Row], later: Sequence[Row], then: Sequence[float] | None = None) -> Losses:
        then = self._held.then if then is None else then
        return losses_of(self._held.loss, then, arrays(rows)[0], arrays(later)[1])

    def _about(
        self, route: str, detected: int, reference: int, before: str | None, discrepancy: tuple[float, int]
    ) -> dict[str, Any]:
        """Return what every event says."""
        return {
            "route": route,
            "n_observations": self.n_observations,
            "n_detected": detected,
            "reference_observation": reference,
            "detector": self._watch.name,
            "detector_params": dict(self._watch.params),
            "signal": "score" if self._watch.signal == "loss" and self._held.loss.is_score else self._watch.signal,
            "one_sided": self._watch.one_sided,
            "window": self.window,
            "discrepancy": discrepancy[0],
            "threshold": self.threshold,
            "n_discrepancy": discrepancy[1],
            "distance": self.distance.name,
            "scale": self.scale,
            "version_before": before,
            "version": self.version,
        }

    @property
    def _the_reference(self) -> Frozen:
        assert self._reference is not None
        return self._reference.model

    @property
    def _version_of_reference(self) -> str | None:
        return self._reference.version if self._reference else None

    def _refer(self, model: Frozen, n: int | None = None, rows: Sequence[Row] = ()) -> None:
        """Take a reference; `rows` are observations that it has not learnt either."""
        now = self._held.n_rows
        self._reference = Reference(model, self.n_observations if n is None else n, now - len(rows), self.version)
        self._half, self._next_check = None, now + self.window
        self._n_dismissed = self._quiet_until = self._detector_quiet_until = 0
        self._is_degraded, self._discrepancy = False, (0.0, 0)
        self._held.compare_with(model.model, rows)
        if self._held.is_born_known and not self._watch.has_unit:
            self._watch.set_unit(self._held.birth, provisional=True)

    def _seed(self) -> int:
        return int(self._rng.integers(2**31))

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments as plain data."""
        return {
            "window": self.window,
            "threshold": self.threshold,
            "discrepancy": self.scale,
            "distance": self.distance.name,
            "watch_discrepancy": self.watch_discrepancy,
            "detector": self._watch.name,
            "detector_params": dict(self._watch.params),
            "one_sided": self._watch.one_sided,
            "signal": self._watch.signal,
            "margin": self.margin,
            "batch_size": self._held.batch_size,
            **self._measure.parameters,
        }

    def snapshot(self) -> Snapshot:
        """Return everything but the current model; frozen models and the detector as the bytes of `dump_model`."""
        return {
            "format": SNAPSHOT_FORMAT,
            "explainer": self.name,
            "parameters": self.parameters,
            "version": self.version,
            "generator": self._rng.bit_generator.state,
            "watch": self._watch.snapshot(),
            "held": self._held.snapshot(),
            "course": self._course.snapshot(),
            "reference": plain(self._reference),
            "examined": plain(self._examined),
            "matured": plain(self._matured),
            "deployed": plain(self._deployed),
            "half": dump(self._half),
            "before_course": dump(self._before_course),
            "clocks": [getattr(self, name) for name in _CLOCKS],
            "is_degraded": self._is_degraded,
            "discrepancy": list(self._discrepancy),
            "counts": [
                self.n_observations,
                self.n_not_confirmed,
                self.n_skipped,
                dict(self.n_alarms),
                dict(self.n_explained),
            ],
        }

    def _restore(self, snapshot: Snapshot) -> None:
        self._rng.bit_generator.state = snapshot["generator"]
        self._watch.restore(snapshot["watch"])
        self._course = Course(**snapshot["course"])
        self._reference = restored(Reference, snapshot["reference"])
        self._held.restore(snapshot["held"], self._reference and self._reference.model.model)
        self._examined = restored(Examined, snapshot["examined"])
        self._matured = restored(Matured, snapshot["matured"])
        self._deployed = restored(Deployed, snapshot["deployed"])
        self._half, self._before_course = Frozen.load(snapshot["half"]), Frozen.load(snapshot["before_course"])
        for name, value in zip(_CLOCKS, snapshot["clocks"], strict=True):
            setattr(self, name, value)
        self._is_degraded = snapshot["is_degraded"]
        self._discrepancy = (snapshot["discrepancy"][0], snapshot["discrepancy"][1])
        self.n_observations, self.n_not_confirmed, self.n_skipped, alarms, explained = snapshot["counts"]
        self.n_alarms, self.n_explained = Counter(alarms), Counter(explained)
