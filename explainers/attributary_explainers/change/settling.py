"""Tells what needs no alarm: a model that has learnt more, and another version."""

from __future__ import annotations

import numpy as np

from .holdout.comparison import RecentLosses
from .holdout.frozen import Frozen
from .holdout.rows import arrays
from .judging.verdict import Estimate
from .pending import Explaining, Told
from .records import Deployed, Matured

_SETTLED = 0.25
"""Share of its gain that a model that has settled makes in the later half of its age, at most."""

_PATIENCE = 15
"""Windows after which a model counts as settled in any case."""

_SUSPECT = 1.5
"""Standard errors by which the reference is worse where a check is put off: it may be the beginning of a drift."""


class Settling(Explaining):
    """Looks at the model from time to time, and compares versions on fresh observations."""

    _asked: tuple[Frozen, RecentLosses] | None = None
    """What has been asked of the model of the last check. It is not stored: whoever has restored it asks again."""

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
            known = self._of_half(self._half).of(rows) - arrays(rows)[1]
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

    def _ask_half(self, now: int) -> None:
        """Ask the model of the last check about the next check's observations as they come.

        Asking about all of them when the check is due would take long.
        """
        n_of_next = now - (self._next_check - self.window)
        if self._half is not None and n_of_next > 0 and (rows := self._held.rows):
            self._of_half(self._half).of(rows, n_of_next)

    def _of_half(self, half: Frozen) -> RecentLosses:
        if self._asked is None or self._asked[0] is not half:
            self._asked = half, self._held.losses_of(half.model)
        return self._asked[1]

    def _finish(self, now: int) -> None:
        """Begin to explain what has waited for fresh observations."""
        if self._deployed is not None and now >= self._deployed.due:
            deployed, self._deployed = self._deployed, None
            self._compare_versions(deployed)
        if self._matured is not None and now >= self._matured.due:
            matured, self._matured = self._matured, None
            self._explain_matured(matured)

    def _explain_matured(self, matured: Matured) -> None:
        assert self._reference is not None
        told = Told(
            "check", matured.n, matured.reference_n, matured.version_before, self.version, matured.discrepancy,
            verdict="matured", losses=matured.losses,
        )  # fmt: skip
        self._explain(told, matured.old, self._reference.model, self._held.rows[:])

    def _compare_versions(self, deployed: Deployed) -> None:
        assert self._reference is not None
        told = Told("version", deployed.n, deployed.n, deployed.version_before, self.version, closes=deployed.n)
        self._explain(told, deployed.old, self._reference.model, self._held.rows[:])
