"""Tells what needs no alarm: a model that has learnt more, and another version."""

from __future__ import annotations

import math

import numpy as np

from .events import ChangeEvent, ChangeExplanation, NotConfirmed
from .held.frozen import Frozen
from .held.rows import arrays
from .judging.verdict import Estimate, losses_of
from .records import Deployed, Matured
from .state import ChangeState

_SETTLED = 0.25
"""Share of its gain that a model that has settled makes in the later half of its age, at most."""

_PATIENCE = 15
"""Windows after which a model counts as settled in any case."""

_SUSPECT = 1.5
"""Standard errors by which the reference is worse where a check is put off: it may be the beginning of a drift."""


class Settling(ChangeState):
    """Looks at the model from time to time, and compares versions on fresh observations."""

    def _check(self, now: int) -> None:
        """See whether the model has learnt more than the reference knew, and has settled."""
        reference, rows = self._reference, self._held.rows
        assert reference is not None
        if len(rows) < 2:
            self._next_check = now + self.window
            return
        losses = self._losses(rows, rows)
        worsened = losses.worsened
        if worsened is not None and worsened.mean > _SUSPECT * worsened.std_error:
            self._next_check = now + self.window  # it may be the beginning of a drift
            return
        settled, age = False, now - self._born
        if self._half is not None:
            known = self._held.losses(self._half.model, rows) - arrays(rows)[1]
            since = Estimate.of(known[np.isfinite(known)])
            settled = since.mean + since.std_error < _SETTLED * losses.gain.mean or age >= _PATIENCE * self.window
        self._is_degraded &= losses.is_doubtful
        half = Frozen.of(self.model)
        next_check = now + max(self.window, age)
        self._half, self._next_check = half, next_check
        discrepancy = self._held.discrepancy(rows)
        if not (settled and losses.verdict == "matured" and discrepancy > self.threshold):
            return
        is_due = self._matured_at_age is None or age >= 4 * self._matured_at_age
        if is_due and not self._course.is_told(now):
            self._matured_at_age = age
            self._matured = Matured(
                reference.model, self.n_observations, now + self.window, reference.n, reference.version, losses,
                (discrepancy, len(rows)),
            )  # fmt: skip
        self._refer(half)
        self._next_check = next_check

    def _finish(self, now: int) -> list[ChangeEvent]:
        """Tell what has waited for fresh observations."""
        events: list[ChangeEvent] = []
        if self._deployed is not None and now >= self._deployed.due:
            deployed, self._deployed = self._deployed, None
            events += self._compare_versions(deployed)
        if self._matured is not None and now >= self._matured.due:
            matured, self._matured = self._matured, None
            events += self._tell_matured(matured)
        return events

    def _tell_matured(self, matured: Matured) -> list[ChangeEvent]:
        assert self._reference is not None
        importances, failure = self._importances(matured.old, self._reference.model, self._held.rows)
        if importances and not any(change.significant() for change in importances.values()):
            return []
        self.n_explained["matured"] += 1
        of = self._about("check", matured.n, matured.reference_n, matured.version_before, matured.discrepancy)
        return [
            ChangeExplanation(**of, verdict="matured", losses=matured.losses, importances=importances, failure=failure)
        ]

    def _compare_versions(self, deployed: Deployed) -> list[ChangeEvent]:
        reference, rows = self._reference, self._held.rows
        assert reference is not None
        old = self._held.losses(deployed.old.model, rows) if rows else np.array([])
        known = [row for row, loss in zip(rows, old, strict=True) if math.isfinite(loss)]
        discrepancy, losses = (0.0, 0), None
        if len(known) > 1:
            losses = losses_of(self._held.loss, None, old[np.isfinite(old)], arrays(known)[0])
            discrepancy = (self._held.apart(deployed.old.model, known), len(known))
        of = self._about("version", deployed.n, deployed.n, deployed.version_before, discrepancy)
        if losses is None:
            self.n_not_confirmed += 1
            return [NotConfirmed(**of, closes=deployed.n, found=None)]
        importances, failure = self._importances(deployed.old, reference.model, known, margin=self.margin)
        self.n_explained["version"] += 1
        return [
            ChangeExplanation(
                **of, verdict=None, closes=deployed.n, losses=losses, importances=importances, failure=failure
            )
        ]
