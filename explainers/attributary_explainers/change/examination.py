"""Examines alarms; and, without any, a model that learns and new versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .events import Alarm, ChangeEvent, NotConfirmed
from .holdout import RecentLosses
from .records import Examined, Frozen, Matured, Told
from .rows import Row, arrays, column_of
from .state import ChangeState
from .verdicts import DRIFTS, Estimate, Losses, onset_of

_YOUNG = 20
"""A reference that is younger than this part of a window is compared with nothing."""

_SETTLED = 0.25
"""Share of its gain that a model that has settled makes in the later half of its age, at most."""

_PATIENCE = 15
"""Windows after which a model counts as settled in any case."""

_SUSPECT = 1.5
"""Standard errors by which the reference is worse where a check is put off: it may be the beginning of a drift."""


class Examination(ChangeState):
    """Examination of alarms and, at times, of a model without an alarm."""

    _asked: tuple[Frozen, RecentLosses] | None = None
    """What the model of the last check was asked. It is not stored: after a restart it is asked again."""

    def _look(self, now: int) -> None:
        """Measure the discrepancy of the last window, each tenth of a window."""
        rows = self._held.rows
        if len(rows) > 1:
            self._discrepancy = (self._held.discrepancy(rows), len(rows))
        if self._watch.needs_unit and self._examined is None and len(rows) >= self.window // 2:
            self._watch.set_unit(list(rows.reference_loss))

    def _alarm(self, now: int, is_alarm: bool, looks: bool) -> str | None:
        """Return the route by which an alarm is raised now, or None."""
        assert self._reference is not None
        age = now - self._reference.at
        is_known = age >= self.window // 2 or (age >= self.window // _YOUNG and self._held.is_born_known)
        if is_alarm and is_known and now > self._detector_quiet_until:
            return "detector"
        if not (looks and self.watch_discrepancy and age >= self.window and now > self._quiet_until):
            return None
        if self._discrepancy[0] <= self.threshold:
            return None
        # A model that learns leaves its reference behind; that is no alarm while neither has become worse.
        # It lost less before, when it went on learning: that is no alarm either, so its own losses alone count.
        losses = self._losses(rows := self._held.rows, rows, self._held.baseline)
        self._is_degraded &= losses.gain.mean < 0
        is_worse = losses.gain_sign < 0 and not self._is_degraded
        return "discrepancy" if losses.worsened_sign > 0 or is_worse else None

    def _raise(self, route: str, now: int) -> list[ChangeEvent]:
        if self._matured is not None:  # told on what there is: what comes now may be after a drift
            matured, self._matured = self._matured, None
            if matured.due - now <= 3 * self.window // 4:
                self._explain_matured(matured)
        is_muted = self._course.is_told(now)
        self._examined = Examined(route, self.n_observations, now, now + self.window, is_muted, self._discrepancy)
        self._examined.path = path = _path(self._held.rows)
        # What comes shortly before an alarm may already be after the change.
        self._held.baseline_until = path[-1 - self.window // 5][0] if len(path) > self.window // 5 else 0
        return [] if is_muted else [self._tell_alarm(self._examined)]

    def _tell_alarm(self, examined: Examined) -> Alarm:
        self.n_alarms[examined.route] += 1
        return Alarm(**{**self._about_examined(examined), "n_observations": examined.n}, due=examined.n + self.window)

    def _examine(self, now: int) -> list[ChangeEvent]:
        """Go on with an open alarm."""
        examined = self._examined
        assert examined is not None
        if examined.copy is None and now - examined.at >= self.window // 2:
            examined.copy, examined.copy_n = Frozen.of(self.model), self.n_observations
            path, examined.path = [*examined.path, *_path(self._held.since(examined.n))], []
            examined.onset = onset_of([loss for _, loss in path], [n for n, _ in path], examined.n)
        if now < examined.due:
            return []
        rows = self._held.since(examined.n)
        later = [row for row in rows if row.n > examined.copy_n]
        if len(later) < 2:
            return self._dismiss(now, examined, None, None)
        losses = self._losses(rows, later)
        discrepancy = self._held.discrepancy(later)
        verdict, differs = losses.verdict, discrepancy > self.threshold
        examined.discrepancy = (discrepancy, len(later))
        if verdict in DRIFTS:
            return self._changed(now, examined, losses, later, verdict)
        if losses.is_doubtful and differs and not self._is_degraded:
            if not examined.is_doubt:  # a tree that was replaced is better again soon
                examined.is_doubt, examined.due = True, now + self.window
                return []
            if verdict == "degraded":
                return self._degraded(now, examined, losses, later)
        if losses.worsened_sign > 0 and verdict == "degraded":  # the data have changed, whatever became of the model
            return self._changed(now, examined, losses, later, "harder")
        return self._dismiss(now, examined, verdict, losses, later if verdict == "easier" else ())

    def _changed(
        self, now: int, examined: Examined, losses: Losses, later: list[Row], verdict: str
    ) -> list[ChangeEvent]:
        """Tell drift; the copy of the model becomes the reference."""
        reference, copy, is_first = self._reference, examined.copy, not self._course.is_alive(now)
        assert reference is not None
        assert copy is not None
        assert losses.worsened is not None
        pattern = "trend"
        if self._before_course is not None and not is_first:
            former = self._held.losses(self._before_course.model, later)
            gain = Estimate.of(arrays(later)[0] - former)
            pattern = "recurring" if gain.sign(2.0) > 0 else "trend"
        told, found = self._course.add(now, examined.discrepancy[0], losses.worsened.mean, pattern)
        self._before_course = reference.model if is_first else None
        if told:
            events = self._told(examined, verdict, losses, found, later, self._before(examined))
            self._matured_at_age = None
        else:
            events = self._not_confirmed(examined, verdict, losses)
        self._examined = None
        self._born = now - len(later)
        self._refer(copy, examined.copy_n, later)
        return events

    def _before(self, examined: Examined) -> Sequence[Row]:
        """Return the reference's first rows, before the onset if enough remain."""
        onset, first = examined.onset, self._held.first[:]
        before = first if onset is None else [row for row in first if row.n < onset.observation]
        return before if len(before) >= self.window // _YOUNG else first

    def _degraded(self, now: int, examined: Examined, losses: Losses, later: list[Row]) -> list[ChangeEvent]:
        """Tell that the model is worse than its reference, which stays."""
        told, found = self._course.add(now, examined.discrepancy[0], -losses.gain.mean, "recurring")
        if not told:
            return self._dismiss(now, examined, "degraded", losses)
        self._is_degraded = True
        self._close(now)
        return self._told(examined, "degraded", losses, found, later)

    def _dismiss(
        self, now: int, examined: Examined, found: str | None, losses: Losses | None, later: Sequence[Row] = ()
    ) -> list[ChangeEvent]:
        """Close an alarm, not confirmed; with `later` the model is the reference."""
        events = self._not_confirmed(examined, found, losses)
        self._close(now)
        if later and examined.copy is not None:  # the data are easier: what is harder later is measured from here
            self._refer(examined.copy, examined.copy_n, later)
        return events

    def _close(self, now: int) -> None:
        """Watch on; a detector that alarms for nothing is heard ever more rarely."""
        self._examined, self._held.baseline_until = None, None
        self._quiet_until = now + self.window
        self._detector_quiet_until = now + self.window * (0, 2, 4)[min(self._n_dismissed, 2)]
        self._n_dismissed += 1

    def close(self) -> list[ChangeEvent]:
        """Finish open work because another version takes over; return events.

        Alarms are closed as not confirmed. Use it for a version that this explainer cannot go on with: explanations
        under way are finished at once.
        """
        return [*self.finish(), *self._close_replaced()]

    def _close_replaced(self) -> list[ChangeEvent]:
        events: list[ChangeEvent] = []
        if (deployed := self._deployed) is not None:
            of = self._about("version", deployed.n, deployed.n, deployed.version_before, (0.0, 0))
            events.append(NotConfirmed(**of, closes=deployed.n, found="replaced"))
            self.n_not_confirmed += 1
        if self._examined is not None:
            events += self._not_confirmed(self._examined, "replaced", None)
        self._deployed = self._examined = None
        return events

    def _told(
        self,
        examined: Examined,
        verdict: str,
        losses: Losses,
        pattern: str | None,
        later: Sequence[Row],
        before: Sequence[Row] | None = None,
    ) -> list[ChangeEvent]:
        """Start explaining an examined alarm; return the alarm if it was muted."""
        reference, copy = self._reference, examined.copy
        assert reference is not None
        assert copy is not None
        told = Told(
            examined.route, examined.n, reference.n, reference.version, self.version, examined.discrepancy, verdict,
            examined.n, losses, examined.onset, pattern,
        )  # fmt: skip
        self._explain(told, reference.model, copy, later, before)
        return [self._tell_alarm(examined)] if examined.is_muted else []

    def _not_confirmed(self, examined: Examined, found: str | None, losses: Losses | None) -> list[ChangeEvent]:
        if examined.is_muted:
            return []
        self.n_not_confirmed += 1
        return [NotConfirmed(**self._about_examined(examined), closes=examined.n, found=found, losses=losses)]

    def _about_examined(self, examined: Examined) -> dict[str, Any]:
        assert self._reference is not None
        since = self._reference.n
        return self._about(examined.route, examined.n, since, self._version_of_reference, examined.discrepancy)

    def _check(self, now: int) -> None:
        """Check whether the model has learnt beyond the reference and settled."""
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
        self._half, self._next_check = half, next_check = Frozen.of(self.model), now + max(self.window, age)
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
        """Ask the last check's model about the next check's rows as they come.

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
        """Start the due explanations that waited for fresh observations."""
        if self._deployed is not None and now >= self._deployed.due:
            deployed, self._deployed = self._deployed, None
            n, before = deployed.n, deployed.version_before
            told = Told("version", n, n, before, self.version, closes=n)
            self._explain(told, deployed.old, self._the_reference, self._held.rows[:])
        if self._matured is not None and now >= self._matured.due:
            matured, self._matured = self._matured, None
            self._explain_matured(matured)

    def _explain_matured(self, matured: Matured) -> None:
        told = Told(
            "check", matured.n, matured.reference_n, matured.version_before, self.version, matured.discrepancy,
            verdict="matured", losses=matured.losses,
        )  # fmt: skip
        self._explain(told, matured.old, self._the_reference, self._held.rows[:])


def _path(rows: Sequence[Row]) -> list[tuple[int, float]]:
    return list(zip(column_of(rows, "n"), column_of(rows, "reference_loss"), strict=True))
