"""Change explainer: tells drift, further learning and degradation apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidParameterError
from ..incremental.base import check_parameters, check_snapshot, snapshot_loss
from ..losses.labels import check_label
from ..losses.losses import AnyLoss
from ..models.function import model_function, resolve_loss
from ..notebook.cards import counts, figure
from ..notebook.described import Described
from ..notebook.rows import as_row, check_groups_there
from ..pickling import freeze, is_loading
from ..predictions import check_probabilities, is_usable, most_probable
from ..typing import Features, Groups, Snapshot
from ..validation import check_choice, check_groups, check_integer, check_number, generator_of
from .discrepancy import as_distance, as_prediction, distance_for
from .events import Alarm, ChangeEvent, NotConfirmed
from .holdout import HeldOut, RecentLosses
from .measure import Measure, check_methods
from .rows import Row, arrays, column_of
from .state import ChangeState, Deployed, Examined, Frozen, Matured, Told
from .verdicts import DRIFTS, VERDICTS, Course, Estimate, Losses, loss_of_verdicts, onset_of
from .watch import SignalWatch

ROUTES = ("detector", "discrepancy", "version")
"""What can raise an alarm."""

_DELTA = 0.025
"""ADWIN's, where nothing is said."""

_YOUNG = 20
"""A reference that is younger than this part of a window is compared with nothing."""

_SETTLED = 0.25
"""Share of its gain that a model that has settled makes in the later half of its age, at most."""

_PATIENCE = 15
"""Windows after which a model counts as settled in any case."""

_SUSPECT = 1.5
"""Standard errors by which the reference is worse where a check is put off: it may be the beginning of a drift."""


class ChangeExplainer(ChangeState, Described):
    """Says when and how a model changed, and which features gained or lost.

    It compares the model with a *reference*, a frozen copy from before, on observations that neither has learnt: what
    the model predicted before it learnt them, and what the reference says to any observation after it was taken.

    1. After the first `window` observations the reference is taken.
    2. An alarm is raised by the drift detector; or where the discrepancy over the last window exceeds `threshold` and
       one of the two models has become worse. It is told at once, as `Alarm`.
    3. `window` observations later the losses say what happened (`Losses.verdict`). *Followed* and *harder* mean that
       the data have changed; then the present model is the new reference. *Degraded* is looked at once more, a window
       later, before it is told, and the reference stays. Anything else is told as `NotConfirmed`.
    4. At ages of one, two, four ... windows the model is looked at without an alarm. Where it has learnt more, and has
       settled, it is told as *matured*, once after each change, and is the new reference.

    Importances are measured in slices, one with each observation that follows, on the models and observations as they
    are when the verdict is due. So their event comes some observations later; `finish` makes it now.

    Changes that follow one another within ten windows are a trend, or go back and forth; that is said with the second,
    and the others are told only if they are twice as large as all before (`Course`).

    Call `update(x, y, y_pred)` once per observation, after the model has learnt it, with the prediction it made before.
    Where the model is replaced by another, call `new_version`: both are compared on the `window` observations that
    come next.

    Parameters
    ----------
    model
        As for the explainers. It is copied when a reference is taken, so it must be picklable (a plain
        function is taken as it is).
    window
        Valid range >= 20; K in the paper. Larger sees smaller changes and gives smaller standard errors, and explains
        later; alarms come as soon with any.
    threshold
        Valid range >= 0; tau in the paper, in the unit of `discrepancy`. Larger lets the models differ more before
        that is an alarm.
    discrepancy
        `relative`: mean distance of the predictions over the mean distance of two targets, without a unit: 1 is as far
        apart as two observed targets. `absolute`: the mean distance, in the unit of `distance`, as in the paper.
    distance
        `label` (0 or 1) or `probability` (half the L1 distance) where the model predicts classes, `number` (absolute
        difference) where it predicts numbers; None is number where the loss reads numbers, label otherwise. Where the
        model is a plain function and the loss is the user's own, the first prediction decides.
    watch_discrepancy
        Whether the discrepancy raises alarms: no detector sees slow change.
    detector, detector_params
        Name and parameters of the drift detector, see `make_detector`; None has no detector. ADWIN's `delta`, here
        0.025 by default: larger alarms more.
    one_sided
        Whether only a rise of the loss alarms: a model that gets better is no reason to worry.
    signal
        What the detector reads: `zero_one` (the 0/1 error) or `loss`, without a unit (`SignalWatch`); None is zero_one
        where the model predicts labels or probabilities, loss otherwise. The loss of an anomaly detector is its score,
        and events call it so.
    importances
        Methods, `pfi` or `sage` or both; the sentence is about the first. With `()` there are only verdicts.
    loss
        Loss of the importances, as for the explainers. Verdicts rest on Brier, 0/1 or absolute loss
        (`loss_of_verdicts`).
    groups, n_permutations
        As for `batch_pfi`.
    n_samples
        Valid range >= 1; draws per coalition, of sage alone.
    margin
        Valid range >= 0; for versions: share of the total importance that does not count as a difference. Even two
        models that were taught equally long differ a little.
    batch_size
        Valid range >= 1; the reference is asked for so many observations at once. None is 32 where the model predicts
        many rows at once, as by a fast path, else 1.
    own_labels
        Whether there are no labels, and `y` is what the model predicts: the importances of each of two models are then
        measured against its own predictions. Verdicts and losses say nothing.
    version
        Name of the model's version, for events.
    seed
        Seed of the explainer's own generator.

    Source: Muschalik, Fumagalli, Hammer, Huellermeier, Agnostic Explanation of Model Change based on Feature
    Importance, KI 36, 2022. `PaperChangeExplainer` is its Algorithm 1; verdicts, the relative discrepancy and versions
    are ours.

    Examples
    --------
    >>> from river.datasets import synth
    >>> from river.forest import ARFClassifier
    >>> model = ARFClassifier(n_models=3, seed=1)
    >>> change = ChangeExplainer(model, window=300, seed=1)
    >>> first = synth.STAGGER(classification_function=0, seed=1).take(1000)
    >>> second = synth.STAGGER(classification_function=2, seed=2).take(1000)
    >>> for x, y in (*first, *second):
    ...     y_pred = model.predict_proba_one(x)
    ...     model.learn_one(x, y)
    ...     for event in change.update(x, y, y_pred):
    ...         print(type(event).__name__, getattr(event, "verdict", "…"))
    Alarm …
    ChangeExplanation followed
    """

    _replaced = ("model", "version")

    _asked: tuple[Frozen, RecentLosses] | None = None
    """What the model of the last check was asked. It is not stored: after a restart it is asked again."""

    def __init__(
        self,
        model: Any,
        *,
        window: int = 1000,
        threshold: float = 0.2,
        discrepancy: str = "relative",
        distance: str | None = None,
        watch_discrepancy: bool = True,
        detector: str | None = "adwin",
        detector_params: Mapping[str, Any] | None = None,
        one_sided: bool = True,
        signal: str | None = None,
        importances: Sequence[str] = ("pfi",),
        loss: AnyLoss | None = None,
        groups: Groups | None = None,
        n_permutations: int = 1,
        n_samples: int = 4,
        margin: float = 0.2,
        batch_size: int | None = None,
        own_labels: bool = False,
        version: str | None = None,
        seed: int | None = None,
    ) -> None:
        self.model, self.version = model, version
        self.window = check_integer("window", window, minimum=20)
        self.threshold = check_number("threshold", threshold, minimum=0.0)
        self.scale = check_choice("discrepancy", discrepancy, ("relative", "absolute"))
        self.watch_discrepancy = bool(watch_discrepancy)
        self.margin = check_number("margin", margin, minimum=0.0)
        if detector is None and not self.watch_discrepancy:
            raise InvalidParameterError("detector", "a name where watch_discrepancy is off: else nothing alarms", None)
        self._measure = Measure(
            check_methods(importances),
            resolve_loss(model, loss),
            check_groups(groups),
            check_integer("n_permutations", n_permutations, minimum=1),
            check_integer("n_samples", n_samples, minimum=1),
            bool(own_labels),
        )
        if detector == "adwin" and detector_params is None:
            detector_params = {"delta": _DELTA}
        judged = loss_of_verdicts(model, loss)
        is_number = judged.output in ("number", "any")
        self.distance = distance_for(judged.output, distance)
        self._is_distance_open = distance is None and judged.output == "any"
        self._rng = generator_of(seed)
        self._watch = SignalWatch(
            detector,
            detector_params,
            signal=check_choice("signal", signal or ("loss" if is_number else "zero_one"), ("zero_one", "loss")),
            one_sided=one_sided,
            seed=self._seed,
        )
        self._held = HeldOut(
            self.window,
            judged,
            self.distance,
            relative=self.scale == "relative",
            batch_size=None if batch_size is None else check_integer("batch_size", batch_size, minimum=1),
        )
        self._check_functions(model)  # what the model cannot do shows now, not when the first reference is taken
        if not is_loading():
            freeze(model)
        self._are_names_known = not self._measure.groups
        self.n_observations = self.n_not_confirmed = self.n_skipped = 0
        self.n_alarms: Counter[str] = Counter(dict.fromkeys(ROUTES, 0))
        self.n_explained: Counter[str] = Counter(dict.fromkeys((*VERDICTS, "version"), 0))
        self._course = Course(self.window)
        self._pending = []
        self._forget()

    def update(self, x: Features, y: Any, y_pred: Any) -> tuple[ChangeEvent, ...]:
        """Take in an observation just learnt; return its events, mostly none.

        Parameters
        ----------
        x, y
            The observation; x is copied. It is a mapping, a pandas Series, a data frame with one row or a named tuple.
        y_pred
            What the model predicted for x before learning: probabilities or a label for a classifier, a number
            otherwise. Observations are skipped where it is None (no prediction yet), or where the loss is NaN or
            infinite: `n_skipped` counts them.

        Raises
        ------
        InvalidParameterError
            The first observation has no feature of a group.

        Returns
        -------
        Alarm, ChangeExplanation and NotConfirmed, in their order.

        Raises
        ------
        LabelError
            There is no label, or the first one is of another type than the model's classes.
        ModelError
            The model predicts numbers, and `y_pred` is not one; or its probabilities are none (`ProbabilityError`).
        """
        if type(x) is not dict:
            x = as_row(x)
        if not self._are_names_known and x:
            check_groups_there(self._measure.groups, x)
            self._are_names_known = True
        if self._is_distance_open and y_pred is not None:
            self._is_distance_open = False
            if isinstance(y_pred, dict):  # the loss is the user's own, of whatever the model predicts
                self.distance = self._held.distance = as_distance("label")
        held, watch = self._held, self._watch
        if held.output != "label":
            check_probabilities(y_pred)
        is_dict = type(y_pred) is dict
        prediction = y_pred if is_dict and y_pred else as_prediction(y_pred, self.distance.output)
        if y is None or (type(y) is float and y != y) or not self.n_observations:
            check_label(self._measure.loss, y, prediction)
        self.n_observations += 1
        loss = held.loss(y, prediction) if is_usable(prediction) else math.nan
        if not math.isfinite(loss):
            self.n_skipped += 1
            return ()
        is_label = not (is_dict or isinstance(y_pred, dict))
        held.add(self.n_observations, x, y, prediction, is_label=is_label, loss=loss)
        if self._reference is None:
            if held.n_rows - self._born >= self.window:
                self._refer(Frozen.of(self.model))
            return ()
        is_wrong = watch.reads_errors and isinstance(prediction, dict) and most_probable(prediction) != y
        return tuple(self._take_steps(held.n_rows, watch.update(is_wrong, loss)))

    def _take_steps(self, now: int, is_alarm: bool) -> list[ChangeEvent]:
        """Do the work due after an observation; return the events."""
        events = self._go_on() if self._pending else []
        self._finish(now)
        looks = now % max(1, self.window // 10) == 0
        if looks:
            self._look(now)
            self._ask_half(now)
        if self._examined is not None:
            events += self._examine(now)
        elif (is_alarm or looks) and (route := self._alarm(now, is_alarm, looks)):
            events += self._raise(route, now)
        if self._examined is None and now >= self._next_check:
            self._check(now)
        return events

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

    def know_names(self) -> None:
        """Accept every observation, even a first that lacks a group's features."""
        self._are_names_known = True

    def new_version(self, model: Any, version: str | None = None, *, explain: bool = True) -> tuple[ChangeEvent, ...]:
        """Replace the model by another version and, if asked, compare the two.

        Both are frozen, and compared on the `window` observations that come next, which neither has learnt: the data
        and draws are the same, and a feature is named where its importance differs by more than `margin` of the total,
        beyond noise. The new version is the reference, and detector and patterns start afresh. Explanations that are
        under way go on: they are of what was before.

        Parameters
        ----------
        model
            The new model; it must do what the parameters ask of a model.
        version
            Its name, for events.
        explain
            False only replaces the model: for a present one that no longer predicts at all.

        Returns
        -------
        What closes an open alarm of the old version, and the alarm of the new one, which its explanation closes.

        Raises
        ------
        ModelError
            The new model cannot be explained or copied. The present model stays.
        """
        self._check_functions(model)
        new = Frozen.of(model)
        old = Frozen.of(self.model) if explain else None
        events = self._close_replaced()
        before, self.model, self.version = self.version, model, version
        self._forget()
        self._watch.restart()
        self._course = Course(self.window)
        self._refer(new)
        if old is None:
            return tuple(events)
        now = self._held.n_rows
        self._deployed = Deployed(old, self.n_observations, now + self.window, before)
        self.n_alarms["version"] += 1
        of = self._about("version", self.n_observations, self.n_observations, before, (0.0, 0))
        return (*events, Alarm(**of, due=self.n_observations + self.window))

    def _facts(self) -> list[tuple[str, str]]:
        told = {"alarms": self.n_alarms, "explained": self.n_explained}
        return [
            *super()._facts(),
            ("reference taken after observation", figure(self.reference_observation)),
            (f"discrepancy ({self.scale}, threshold {figure(self.threshold)})", figure(self.discrepancy)),
            *((name, counts(numbers)) for name, numbers in told.items()),
            ("an alarm is open", "yes" if self.is_examining else "no"),
        ]

    def _check_functions(self, model: Any) -> None:
        for output in (self._held.output, self._measure.loss.output):
            model_function(model, output)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, model: Any, *, loss: AnyLoss | None = None) -> ChangeExplainer:
        """Return the change explainer of a snapshot, with the model it had then.

        Raises
        ------
        SnapshotError
            The snapshot is of another class, format version or loss.
        """
        check_snapshot(snapshot, cls.name)
        parameters = snapshot["parameters"]
        loss_then = snapshot_loss(parameters["loss"], loss)
        explainer = cls(model, **{**parameters, "loss": loss_then}, version=snapshot["version"])
        explainer.restore(snapshot)
        return explainer

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot of an explainer with the same parameters.

        Raises
        ------
        SnapshotError
            The snapshot is of another class, format version or set of parameters.
        """
        check_snapshot(snapshot, self.name)
        check_parameters(self.name, self.parameters, snapshot["parameters"])
        self.version = snapshot["version"]
        self._restore(snapshot)
        self.know_names()


def _path(rows: Sequence[Row]) -> list[tuple[int, float]]:
    return list(zip(column_of(rows, "n"), column_of(rows, "reference_loss"), strict=True))
