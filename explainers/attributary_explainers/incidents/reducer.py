"""Reducer of the watches' findings to incidents of a model.

Each incident has one answer to every question.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self

from ..errors import InvalidParameterError, SnapshotError
from ..snapshots import Stored
from ..typing import Snapshot
from ..validation import check_integer, check_number
from .course import Course
from .findings import Finding, finding_of
from .incident import Advice, Effect, Evidence, Incident, Involved, Life, Mean, Reason, Severity, Since, What

_FORMAT = 2
_RANKS: dict[What, int] = {
    "relies_differently": 0, "harder": 1, "level": 2, "changed": 3, "worse": 4, "inputs": 5, "version": 6,
    "recovered": 7,
}  # fmt: skip
"""What may replace what, once it is confirmed: only what is more."""
_SEVERITIES: dict[Severity, int] = {"info": 0, "warning": 1, "critical": 2}
_MATERIAL = 1.1
"""A loss is back within a tenth of what it was."""
_USELESS = 1.25
"""Times a constant prediction, beyond which a model is of no use."""
_BAND = 2.0
_PATIENCE = 1.25
"""Windows within which a verdict comes, if any."""
_LONG = 3
"""Windows for which the loss of a learner has to be back, whatever is still open."""
_FORGOTTEN = 8
"""Windows after which a suspicion that nothing followed is withdrawn."""
_MOST_REVISIONS = 4
"""Words about one incident, but for those that it lasts; what comes after them waits for the next one."""
_MOST_EVIDENCE, _MOST_FEATURES = 20, 10
_MOST_KEYS = 50
"""Things found by all watches together that are followed in one incident."""


class Incidents(Stored):
    """Story of a model: incidents made of the findings of its watches.

    At most one incident is open. A first finding makes it `suspected`; it is `confirmed` by a verdict that rests on a
    window of observations, or `withdrawn`. What other watches find meanwhile is evidence of the same incident, which
    may raise what it is, and never lowers it once confirmed. It is `over` when nothing that was found is open any more
    and the loss is back or has settled. Call `update` once per observation.

    Parameters
    ----------
    learns
        Whether the model learns: then what looks worse may be followed, and is `changed` until it settles.
    window
        Valid range >= 20; observations, as of the watches.
    serious
        Valid range >= 0; share by which the loss has to rise to be critical.
    measure
        Name of what is given beside the loss, such as `error rate`; None: nothing is.
    """

    _unstored = ("compare",)

    def __init__(self, *, learns: bool, window: int = 1000, serious: float = 0.25, measure: str | None = None) -> None:
        if not isinstance(learns, bool):
            raise InvalidParameterError("learns", "True or False", learns)
        self.learns = learns
        self.window = check_integer("window", window, minimum=20)
        self.serious = check_number("serious", serious, minimum=0.0)
        self.measure = measure
        self.compare: Callable[[Incident], Iterable[Involved]] | None = None
        """Returns the features whose values moved since the open incident began; None: nobody looks."""
        self.n_observations = 0
        self.open: Incident | None = None
        self._loss, self._measured, self._constant = Course(window), Course(window), Course(window)
        self._has_labels = False
        self._n_incidents = 0
        self._says: dict[str, Finding] = {}
        """By key, the latest word of each watch on the open incident."""
        self._is_open: dict[str, bool] = {}
        self._quiet_since = 0
        """Observation since which nothing is open."""
        self._lasts = 1
        """Windows after which it is said that it lasts, doubled each time."""
        self._has_more = False
        """Whether another feature broke, or it began again, since the latest revision."""
        self._stays = False
        """Whether broken values have stayed for so long that they are the reference of their watch."""
        self._back_since: int | None = None
        """Observation since which the loss is where it was; None while it is above."""
        self._before: list[tuple[float, float] | None] = [None, None]
        """Mean and error of the loss, and of what is measured, before the open incident began."""

    def update(
        self,
        events: Iterable[Any] = (),
        *,
        loss: float | None = None,
        measured: float | None = None,
        constant: float | None = None,
    ) -> list[Incident]:
        """Take in an observation and the watches' reports; return revisions.

        Parameters
        ----------
        events
            Of `ChangeExplainer`, `LossMonitor`, `ImportanceShift` and `InputMonitor`, or findings.
        loss, measured, constant
            Loss of the model, what is measured beside it (1 for an error, or the absolute error), and the same of a
            constant prediction: its absolute error where that is measured, else its loss. None where there is no label.
        """
        self.n_observations += 1
        number = self.n_observations
        self._has_labels = self._has_labels or loss is not None
        is_full = loss is not None and self._loss.add(number, loss)
        if measured is not None:
            self._measured.add(number, measured)
        if constant is not None:
            self._constant.add(number, constant)
        told = self.note([*events, *(self._against_constant() if is_full else ())])
        if self.open is not None and (is_full or loss is None):
            told += self._look()
        return told

    def begin_measure(self, measure: str | None) -> None:
        """Begin the means anew, where a version is measured in another way."""
        self.measure = measure
        self._loss, self._measured, self._constant = (Course(self.window) for _ in range(3))
        self._before = [None, None]

    def begin_watch(self, watch: str) -> None:
        """Restart a watch, which will not report the end of earlier findings."""
        lost = [key for key, finding in self._says.items() if finding.watch == watch and self._is_open.get(key)]
        self._is_open.update(dict.fromkeys(lost, False))
        if lost and not any(self._is_open.values()):
            self._quiet_since = self.n_observations

    def close(self) -> list[Incident]:
        """End the open incident where another version takes over; return it."""
        return [] if self.open is None else [self._end("over", "replaced")]

    def note(self, events: Iterable[Any]) -> list[Incident]:
        """Take in reports between two observations; return revisions.

        Such reports are, for instance, of another version.
        """
        told: list[Incident] = []
        for event in events:
            finding = finding_of(event, self.n_observations, self._ago)
            if finding is not None:
                told += self._take(finding)
        if not self._has_more or self.open is None:
            return told
        if told:  # of this moment, and nobody has read it
            self.open = replace(self.open, revision=told[-1].revision - 1)
            return [*told[:-1], self._revise("confirmed", told[-1].reason)]
        return self._more()

    @property
    def _told(self) -> Incident:
        """The open incident, which must exist."""
        assert self.open is not None
        return self.open

    def _ago(self, n: int) -> int:
        """Return the observation that came `n` labelled ones ago."""
        number = self.n_observations
        return max(1, self._loss.ago(n, number) if self._has_labels else number - n)

    @property
    def _is_of_numbers(self) -> bool:
        return self.measure == "mean absolute error"

    def _times_constant(self, windows_ago: int = 0) -> float | None:
        """Return the ratio of the model's error to a constant's, or None.

        None where the model's is not surely above it.
        """
        own = (self._measured if self._is_of_numbers else self._loss).now(windows_ago)
        constant = self._constant.now(windows_ago)
        if own is None or constant is None or own[0] - _BAND * own[1] <= constant[0] + _BAND * constant[1]:
            return None
        return own[0] / constant[0] if constant[0] > 0.0 else math.inf

    def _against_constant(self) -> list[Finding]:
        """Report whether a model of numbers became useless, or no longer is.

        Probabilities may be above a constant on purpose, as of a model that was trained on balanced classes.
        """
        told = self.open
        if not self._is_of_numbers or self.n_observations < 2 * self.window:
            return []
        if told is not None and not self._has_lasted(told.what, 2):
            return []
        now, before = self._times_constant(), self._times_constant(1)
        was = self._is_open.get("constant", False) and self.open is not None
        if was:
            return [] if now is not None else [Finding("constant", "returned", "constant", closes=True)]
        if now is None or before is None or min(now, before) < _USELESS:
            return []
        first = self._ago(2 * self.window - 1)
        since = Since(first, first, self._ago(self.window))
        return [Finding("constant", "useless", "constant", opens=True, is_verdict=True, since=since)]

    def _has_lasted(self, what: What, windows: int) -> bool:
        """Whether a new version or restored state has lasted so many windows.

        True for any other incident.
        """
        is_another = what in ("version", "recovered")
        return not is_another or self.n_observations - self._told.since.observation >= windows * self.window

    # ------------------------------------------------------------ findings

    def _take(self, finding: Finding) -> list[Incident]:
        if finding.watch == "model" or (finding.watch == "version" and finding.opens):
            return self._replaced(finding)
        if self.open is None:
            is_learning = self.learns and finding.watch == "importance"  # more, which is no incident by itself
            if is_learning or (finding.closes and not finding.is_verdict):
                return []
            self._begin(finding)
            life: Life = "confirmed" if self._is_sure_by(finding) else "suspected"
            return [self._revise(life, life)]  # type: ignore[arg-type]
        return self._add(finding)

    def _begin(self, finding: Finding) -> None:
        self._n_incidents += 1
        number = self.n_observations
        self._says, self._is_open, self._lasts, self._before = {}, {}, 1, [None, None]
        self._has_more = self._stays = False
        self._back_since = None
        since = finding.since or Since(number, None, number)
        self.open = Incident(
            number=self._n_incidents, revision=0, what="harder", life="suspected", severity="info", reason="suspected",
            observation=number, since=since, effects=(), features=(), advice="nothing", intercept=None, again=0,
            evidence=(),
        )  # fmt: skip
        self._note(finding)

    def _note(self, finding: Finding) -> None:
        """Keep a finding as evidence of the open incident."""
        told = self._told
        number = self.n_observations
        is_known = finding.key in self._is_open or len(self._is_open) < _MOST_KEYS
        if is_known and (not finding.closes or finding.is_verdict):
            before = self._says.get(finding.key)
            features = finding.features or (before.features if before is not None else ())
            self._says[finding.key] = replace(finding, features=features)
        if finding.watch == "inputs" and finding.closes:
            if finding.says == "settled":
                self._stays = True
            else:
                self._says.pop(finding.key, None)  # its values are no matter any more
        is_another = finding.watch == "inputs" and finding.opens and told.life == "confirmed"
        self._has_more |= is_another and not self._is_open.get(finding.key, False)
        is_open = finding.opens or (not finding.closes and self._is_open.get(finding.key, False))
        if is_known:
            self._is_open[finding.key] = is_open
        if not any(self._is_open.values()):
            self._quiet_since = number
        one = Evidence(finding.watch, finding.says, number, is_open)
        evidence = (*told.evidence, one)[-_MOST_EVIDENCE:]
        since, again = told.since, told.again
        if finding.says == "nothing":  # an onset that rests on it does so no more
            self._says.pop(finding.key, None)
            known = [one.since for one in self._says.values() if one.since is not None]
            since = min(known, key=_width, default=since)
        if finding.since is not None:
            first = finding.since.observation if finding.since.low is None else finding.since.low
            is_later = finding.opens and told.life == "confirmed" and first > since.high + self.window
            again += is_later
            self._has_more |= is_later and finding.watch != "change"  # an alarm may be one of nothing
            if not is_later and _width(finding.since) < _width(since) and self._overlaps(finding.since, since):
                since = finding.since
        self.open = replace(told, evidence=evidence, since=since, again=again)
        courses = (self._loss, self._measured)
        self._before = [of.before(since.observation) or known for of, known in zip(courses, self._before, strict=True)]

    def _more(self) -> list[Incident]:
        """Revise the open incident for new findings, if revisions are left.

        Some are kept for its end and for its getting worse.
        """
        told = self._told
        n_said = told.revision - (self._lasts.bit_length() - 1)
        n_needed = 1 + (told.severity != "critical")  # that it is over, and that it is worse
        is_soon = 0 < self.n_observations - told.observation < self.window // 10  # and there may be more
        is_said = self._has_more and n_said + n_needed < _MOST_REVISIONS and not is_soon
        return [self._revise("confirmed", "raised")] if is_said else []

    def _add(self, finding: Finding) -> list[Incident]:
        told = self._told
        self._note(finding)
        if told.life == "suspected":
            if self._is_sure():
                return [self._revise("confirmed", "confirmed")]
            return self._withdrawn()
        what = self._what()
        return [self._revise("confirmed", "raised")] if _RANKS[what] > _RANKS[told.what] else []

    def _withdrawn(self) -> list[Incident]:
        """End a suspicion that nothing supports, after other watches had time."""
        if any(self._is_open.values()) or any(map(self._is_sure_by, self._says.values())):
            return []
        is_fresh = self.n_observations - self._quiet_since < self.window or self._has_risen(_MATERIAL - 1.0)
        return [] if self._was_loss() and is_fresh else [self._faded()]

    def _was_loss(self) -> bool:
        return any(one.watch == "loss" for one in self._says.values())

    def _faded(self) -> Incident:
        """End an unconfirmed suspicion; mark it settled if the loss is still up."""
        is_up = self._was_loss() and self._has_risen(_MATERIAL - 1.0)
        return self._settled() if is_up else self._end("withdrawn", "noise")

    def _settled(self) -> Incident:
        is_worse = self.learns and self._told.what in ("changed", "harder")
        return self._end("over", "settled", "worse" if is_worse else None)

    def _overlaps(self, found: Since, known: Since) -> bool:
        """Whether two onsets may be the same.

        An onset that was only noticed may have begun two windows before.
        """
        first = known.high - 2 * self.window if known.low is None else known.low
        low = found.observation if found.low is None else found.low
        return low <= known.high and found.high >= first

    def _waits_for_verdict(self) -> bool:
        """Whether the loss watch found something but gave no verdict yet."""
        return any(
            self._is_open.get(key, False) and one.watch == "loss" and not one.is_verdict
            for key, one in self._says.items()
        )

    def _is_sure(self) -> bool:
        """Whether a verdict rests on a window and no other is about to come."""
        told = self._told
        waits = self._waits_for_verdict() and self.n_observations - told.since.high < _PATIENCE * self.window
        verdicts = [one for one in self._says.values() if self._is_sure_by(one)]
        return any(one.watch == "inputs" for one in verdicts) or (bool(verdicts) and not waits)

    def _is_sure_by(self, finding: Finding) -> bool:
        """Whether a verdict alone confirms.

        A model that learns loses more for a while by its own doing, as a tree that tries another branch: only while its
        loss is surely up have its data changed, unless its reference, which does not move, says so.
        """
        if not finding.is_verdict or finding.watch == "importance":
            return False
        is_by_loss = self.learns and (finding.watch == "loss" or finding.says == "harder")
        return not is_by_loss or self._has_risen(_MATERIAL - 1.0)

    def _replaced(self, finding: Finding) -> list[Incident]:
        ended = self.close()
        self._begin(finding)
        life: Life = "confirmed" if finding.is_verdict else "suspected"
        return [*ended, self._revise(life, life)]  # type: ignore[arg-type]

    # ------------------------------------------------------------ what is known now

    def _what(self) -> What:
        found: set[What] = {"relies_differently"}
        for one in self._says.values():
            found.add(self._what_of(one))
        what = max(found, key=_RANKS.__getitem__)
        told = self._told
        is_lower = told.life == "confirmed" and _RANKS[what] < _RANKS[told.what]
        return told.what if is_lower else what

    def _what_of(self, finding: Finding) -> What:
        if finding.watch in ("inputs", "version"):
            return "inputs" if finding.watch == "inputs" else "version"
        if finding.watch in ("model", "constant"):
            return "recovered" if finding.watch == "model" else "worse"
        if finding.watch == "importance" or not self._has_labels:  # without labels nobody knows whether it is worse
            return "relies_differently"
        if self.learns:
            return "worse" if finding.says == "degraded" else "changed"
        if finding.says in ("worse", "rose", "degraded", "followed"):
            return "worse"
        is_by_loss = finding.says == "suspects" or (finding.watch == "change" and not self._has_loss_said())
        if is_by_loss:  # of a model that stands still: by its loss, until it is known better
            return "worse" if self._has_risen(self.serious) else "harder"
        return "level" if finding.says == "level" else "harder"

    def _has_loss_said(self) -> bool:
        """Whether the loss watch has reported the kind of the change.

        It knows what the model itself expected.
        """
        return any(one.watch == "loss" for one in self._says.values())

    def _has_risen(self, share: float) -> bool:
        """Whether the loss has surely risen by this share since the onset."""
        told = self._told
        before, after = self._before[0], self._loss.after(told.since.observation)
        latest = self._loss.now()
        if before is None or after is None or latest is None:
            return False
        now = latest if self.n_observations - told.since.observation >= self.window else after
        return now[0] - _BAND * now[1] > (1.0 + share) * before[0] + _BAND * before[1]

    def _severity(self, what: What) -> Severity:
        if what in ("harder", "relies_differently"):
            return "info"
        if what == "recovered":
            return "critical"
        if what == "changed":
            return "warning" if self._has_risen(_MATERIAL - 1.0) else "info"
        is_useless = self._has_lasted(what, 1) and self._times_constant() is not None
        is_serious = what in ("worse", "inputs", "version") and (self._has_risen(self.serious) or is_useless)
        if is_serious:
            return "critical"
        return "info" if what == "version" and not self._has_risen(0.0) else "warning"

    def _features(self) -> tuple[Involved, ...]:
        """Return the features of all findings, broken ones first, each once."""
        found: dict[Any, Involved] = {}
        order = {"inputs": 0, "loss": 1, "change": 2, "version": 2, "importance": 3, "model": 4, "constant": 4}
        for one in sorted(self._says.values(), key=lambda one: order[one.watch]):
            for feature in one.features:
                known = found.get(feature.name)
                if known is None:
                    found[feature.name] = feature
                elif known.delta is None:
                    found[feature.name] = replace(feature, moved=True, said=known.said)
        for feature in () if self.compare is None else self.compare(self._told):
            known = found.get(feature.name, feature)
            found[feature.name] = replace(known, moved=True, said=known.said or feature.said)
        ranked = sorted(found.values(), key=lambda one: (not one.is_broken, not one.moved and not one.significant))
        return tuple(ranked[:_MOST_FEATURES])

    def _advice(self, what: What, features: tuple[Involved, ...]) -> tuple[Advice, float | None]:
        n_significant = sum(one.significant for one in features)
        has_moved = {"worse": any(one.moved for one in features), "version": any(one.is_broken for one in features)}
        if what == "inputs" or has_moved.get(what, False):
            return "look_at_inputs", None
        if what == "level":
            intercepts = [one.intercept for one in self._says.values() if one.intercept is not None]
            return ("shift_intercept", intercepts[-1]) if intercepts else ("look_at_labels", None)
        if what == "worse":
            if n_significant != 1 and any(one.is_mirrored for one in self._effects()):
                return "look_at_labels", None
            if self.learns or self._is_open.get("constant", False):
                return "retrain", None
            # One broken column costs its own importance; labels that are wrong cost that of many at once.
            is_one = 0 < n_significant < max(3, len(features) / 2)
            return ("look_at_inputs" if is_one else "look_at_labels"), None
        if what == "version" and self._has_risen(0.0):
            return "roll_back", None
        return ("look_at_inputs", None) if what == "recovered" else ("nothing", None)

    def _effects(self) -> tuple[Effect, ...]:
        told = self._told
        at, found = told.since.observation, []
        for name, of, before in zip(("loss", self.measure), (self._loss, self._measured), self._before, strict=True):
            if name is not None:
                means = (before, of.after(at), of.now())
                found.append(Effect(name, *(None if of is None else Mean(of[0], _BAND * of[1]) for of in means)))
        constant = self._constant.now()
        if self._is_open.get("constant", False) and constant is not None:
            found.append(Effect("constant", None, None, Mean(constant[0], _BAND * constant[1])))
        return (*found, *[one.level for one in self._says.values() if one.level is not None][-1:])

    def _revise(self, life: Life, reason: Reason, what: What | None = None) -> Incident:
        told = self._told
        what = self._what() if what is None else what
        features = self._features()
        advice, intercept = self._advice(what, features)
        is_past = life in ("over", "withdrawn") and reason in ("returned", "noise", "replaced")
        if is_past or (life == "suspected" and what != "inputs"):
            advice, intercept = "nothing", None
        severity = self._severity(what)
        if life in ("over", "withdrawn") and what == told.what:
            severity = told.severity  # how bad it was
        elif told.life == "confirmed" and what != "changed":  # which recovers; anything else stays as bad as it was
            severity = max(severity, told.severity, key=_SEVERITIES.__getitem__)
        self.open = replace(
            told, revision=told.revision + 1, what=what, life=life, severity=severity, reason=reason,
            observation=self.n_observations, effects=self._effects(), features=features, advice=advice,
            intercept=intercept,
        )  # fmt: skip
        self._has_more = False
        return self._told

    def _end(self, life: Life, reason: Reason, what: What | None = None) -> Incident:
        told = self._told
        ended = self._revise(life, reason, told.what if what is None and told.revision else what)
        self.open = None
        return ended

    # ------------------------------------------------------------ as time goes on

    def _look(self) -> list[Incident]:
        """Confirm, raise or end the open incident as time goes on."""
        told = self._told
        number = self.n_observations
        age = number - told.since.high
        is_quiet = not any(is_open for key, is_open in self._is_open.items() if not key.startswith("importance"))
        if told.life == "suspected":
            is_importance = all(one.watch == "importance" for one in self._says.values())
            is_due = age >= _PATIENCE * self.window
            is_uncompared = is_due and self._is_open.get("version", False)  # nobody could compare the two versions
            if is_uncompared:
                self._is_open["version"], self._quiet_since = False, number
            is_up = self._was_loss() and self._has_risen(_MATERIAL - 1.0)
            is_up |= not self.learns and self._waits_for_verdict()
            if is_uncompared or self._is_sure() or (is_due and (is_importance or is_up)):
                return [self._revise("confirmed", "confirmed")]
            if ended := self._withdrawn():
                return ended
            # The verdict of an alarm may come late, and it may be that nobody is left to give one.
            return [self._faded()] if age >= _FORGOTTEN * self.window else []
        has_risen, what = self._has_risen(_MATERIAL - 1.0), told.what
        is_useless = self._is_open.get("constant", False)  # maybe from the first window on: nothing rose
        self._back_since = None if has_risen or is_useless else self._back_since or number
        # What a learner lost may be back long before the watch of its loss has a new reference.
        is_long_back = self.learns and what in ("changed", "worse")
        is_long_back = is_long_back and number - (self._back_since or number) >= _LONG * self.window
        is_quiet_for_long = is_quiet and number - self._quiet_since >= self.window and age >= 2 * self.window
        if what == "inputs" and is_quiet_for_long and not self._stays and self._has_risen(self.serious):
            return [self._revise("confirmed", "raised", "worse")]  # the values are fine again, and the model is not
        if is_quiet_for_long or is_long_back:
            if not has_risen:
                return [self._end("over", "settled" if what == "inputs" and self._stays else "returned")]
            # What stands still does not come back by itself: it is over when somebody has mended it.
            if self._has_settled() and (self.learns or not self._has_risen(self.serious)):
                return [self._settled()]
        if self.learns and what == "changed" and age >= 2 * self.window and self._has_risen(self.serious):
            what = "worse" if self._has_settled() else what
        if what != told.what or _SEVERITIES[self._severity(what)] > _SEVERITIES[told.severity]:
            return [self._revise("confirmed", "raised", what)]
        if more := self._more():
            return more
        # One that learns and is nearly back is not worth another word.
        is_on = self._has_risen(self.serious) if what == "changed" else has_risen or not is_quiet
        if is_on and age >= 2 * self._lasts * self.window and number - told.observation >= self.window:
            self._lasts *= 2
            return [self._revise("confirmed", "lasts")]
        return []

    def _has_settled(self) -> bool:
        latest, before = self._loss.now(), self._loss.now(1)
        if latest is None or before is None:
            return True
        apart = abs(latest[0] - before[0])
        return apart <= max(_BAND * math.hypot(latest[1], before[1]), (_MATERIAL - 1.0) * before[0])

    # ------------------------------------------------------------ state

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"format": _FORMAT, "state": super().snapshot()}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the incidents of a snapshot, which continue bit for bit.

        Raises
        ------
        SnapshotError
            It is of another format.
        """
        if snapshot.get("format") != _FORMAT:
            raise SnapshotError(f"expected a snapshot of Incidents of format {_FORMAT}: make a new one")
        return super().from_snapshot(snapshot["state"])

    def _complete(self) -> None:
        self.compare = None


def _width(since: Since) -> float:
    return float("inf") if since.low is None else since.high - since.low
