"""Change explainer: tells drift, further learning and degradation apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

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
from .events import Alarm, ChangeEvent
from .examination import Examination
from .holdout.frozen import Frozen
from .holdout.holdout import HeldOut
from .judging import VERDICTS, Course, loss_of_verdicts
from .measure import Measure, check_methods
from .records import Deployed
from .watch import SignalWatch

ROUTES = ("detector", "discrepancy", "version")
"""What can raise an alarm."""

_DELTA = 0.025
"""ADWIN's, where nothing is said."""


class ChangeExplainer(Examination, Described):
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
