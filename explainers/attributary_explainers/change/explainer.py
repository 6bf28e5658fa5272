"""Explains a model change by the change in feature importance (Change section 4, Algorithm 1)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidParameterError, NoPredictionError
from ..incremental.base import check_snapshot, snapshot_loss
from ..losses.losses import Loss
from ..models.function import is_classifier, model_function, resolve_loss
from ..pickling import freeze
from ..predictions import is_usable
from ..ranking import SIGNIFICANCE
from ..typing import Features, Groups, Snapshot
from ..validation import check_choice, check_groups, check_integer
from .alarms import ROUTES, Alarms
from .discrepancy import Distance, as_distance, as_prediction
from .explanation import ChangeExplanation, RejectedAlarm
from .importance import ImportanceChange
from .reference import (
    Measure,
    MeasuredImportance,
    Reference,
    change_between,
    check_methods,
    importances_under,
    loss_of_importances,
)
from .state import KEPT_REJECTED, ChangeState
from .versions import compare_versions, draw_seed

Data = list[tuple[dict[Any, Any], Any]]


class ChangeExplainer(ChangeState):
    """Says when a model has become another one, and which features it relies on more or less than before.

    1. The first `min_observations` give the reference: a frozen copy of the model, the last `window` observations,
       and the importances of that model on them. Nothing is watched meanwhile.
    2. From then on two things raise an alarm: the drift detector, which is fed the signal of each observation; and the
       incremental discrepancy, the smoothed distance between the predictions of reference and current model, where it
       exceeds `threshold`. The next `window` observations are collected, that one included. Where the detector alarms
       again meanwhile, and the model has not changed yet, the collection starts again, `max_restarts` times: the data
       that explain a change are not from before it.
    3. Then the expected discrepancy, the mean distance between the predictions of reference and current model
       over both data sets, is compared with `threshold`. Above it, the importances of the current model on the
       collected data minus the reference's are the explanation, and the current model becomes the reference.
       Otherwise nothing is said, `rejected` keeps the alarm with its discrepancy, and the reference stays.

    Call `update(x, y, y_pred)` once per observation, after the model has learnt it, with the prediction it
    made before: the current model of step 3 is the one that has learnt all `window` observations. Where the model is
    replaced by another, call `new_version`: that is a change by definition, and explained at once.

    Parameters
    ----------
    model
        As for the explainers. It is copied when a reference is taken, so it must be picklable (a plain
        function is taken as it is).
    window
        Valid range >= 2; K in the paper. Larger gives smaller standard errors and later explanations.
    threshold
        Valid range >= 0; tau in the paper, in the unit of `distance`. Larger explains fewer changes.
    detector, detector_params
        Name and parameters of the drift detector, see `make_detector`; None has no detector. ADWIN's `delta`: larger
        alarms more.
    signal
        What the detector reads: `zero_one` (the 0/1 error) or `loss`; None is zero_one for a classifier,
        loss otherwise.
    watch_discrepancy
        Whether the incremental discrepancy raises alarms: slow change, of which no detector tells, is explained then,
        and so is what happens while a detector's false alarm is looked into. The paper's procedure has none.
    max_restarts
        Valid range >= 0; how often a further alarm of the detector starts a collection again, while the discrepancy on
        what has been collected is within the threshold. The paper's is 0.
    distance
        `label` (0 or 1), `probability` (half the L1 distance) or `number` (absolute difference); None is
        label for a classifier, number otherwise.
    importances
        Methods, `pfi` or `sage` or both; the first is that of the sentence. With `()` a change is only declared.
    loss
        Loss of the importances; None is zero_one for a classifier (the paper's), brier or, without probabilities,
        expected_zero_one where sage is among the importances, squared or score otherwise. With zero_one, sage is
        biased.
    groups, n_permutations
        As for `batch_pfi`.
    n_samples
        Valid range >= 1; draws per coalition, of sage alone.
    min_observations
        Observations until the first reference is taken, at least `window`, which None stands for. A model that still
        learns its first concept changes; this long it is left in peace.
    cooldown
        Valid range >= 0; observations after each new reference and each rejection in which no alarm is taken.
    batch_size
        Valid range >= 1; the reference is asked for so many observations at once, and the incremental discrepancy is
        late by so many. None is 32 where the model predicts many rows at once, else 1.
    explain_data
        Whether an alarm whose discrepancy stays within the threshold is explained as a change of the data where the
        importances of the reference differ on them beyond noise: of use for models that do not learn.
    version
        Name of the model's version, for explanations.
    seed
        Seed of the explainer's own generator.

    Source: Muschalik, Fumagalli, Hammer, Huellermeier, Agnostic Explanation of Model Change based on Feature
    Importance, KI 36, 2022, equation 4 and Algorithm 1; `watch_discrepancy=False, max_restarts=0` is that procedure.
    Deviation: batch PFI has the factor N / (N - 1).

    Examples
    --------
    >>> from river.datasets import synth
    >>> from river.forest import ARFClassifier
    >>> model = ARFClassifier(n_models=3, seed=1)
    >>> change = ChangeExplainer(model, window=300, threshold=0.3, detector_params={"delta": 0.025}, seed=1)
    >>> first = synth.STAGGER(classification_function=0, seed=1).take(1000)
    >>> second = synth.STAGGER(classification_function=2, seed=2).take(2000)
    >>> for x, y in (*first, *second):
    ...     y_pred = model.predict_one(x)
    ...     model.learn_one(x, y)
    ...     if explanation := change.update(x, y, y_pred):
    ...         print("color lost importance:", explanation.delta["color"] < 0)
    color lost importance: True
    """

    def __init__(
        self,
        model: Any,
        *,
        window: int = 300,
        threshold: float = 0.3,
        detector: str | None = "adwin",
        detector_params: Mapping[str, Any] | None = None,
        signal: str | None = None,
        watch_discrepancy: bool = True,
        max_restarts: int = 1,
        distance: str | None = None,
        importances: Sequence[str] = ("pfi",),
        loss: str | Loss | Callable[[Any, Any], float] | None = None,
        groups: Groups | None = None,
        n_permutations: int = 1,
        n_samples: int = 4,
        min_observations: int | None = None,
        cooldown: int = 0,
        batch_size: int | None = None,
        explain_data: bool = False,
        version: str | None = None,
        seed: int | None = None,
    ) -> None:
        classifier = is_classifier(model)
        self.model = model
        self.version = version
        self.window = check_integer("window", window, minimum=2)
        self.max_restarts = check_integer("max_restarts", max_restarts, minimum=0)
        self.min_observations = check_integer(
            "min_observations", self.window if min_observations is None else min_observations, minimum=self.window
        )
        self.explain_data = bool(explain_data)
        if self.explain_data and not importances:
            raise InvalidParameterError("importances", "pfi or sage where explain_data is on", importances)
        signal = ("zero_one" if classifier else "loss") if signal is None else signal
        self.signal = check_choice("signal", signal, ("zero_one", "loss"))
        distance = ("label" if classifier else "number") if distance is None else distance
        self.distance: Distance = as_distance(distance)
        self._measure = Measure(
            check_methods(importances),
            self.distance,
            loss_of_importances(model, loss, sage="sage" in importances),
            check_groups(groups),
            check_integer("n_permutations", n_permutations, minimum=1),
            check_integer("n_samples", n_samples, minimum=1),
        )
        self._rng = np.random.default_rng(seed)
        self._alarms = Alarms(
            window=self.window,
            threshold=threshold,
            detector=detector,
            detector_params=detector_params,
            signal=resolve_loss(model, "zero_one" if self.signal == "zero_one" else self._measure.loss),
            watch_discrepancy=watch_discrepancy,
            cooldown=cooldown,
            batch_size=batch_size,
            distance=self.distance,
            seed=self._seed,
        )
        self._check_model(model)
        self.n_observations = self.n_rejected = self.n_explained = self.n_data_changes = self.n_restarts = 0
        self.n_alarms: Counter[str] = Counter(dict.fromkeys(ROUTES, 0))
        self._rejected: deque[RejectedAlarm] = deque(maxlen=KEPT_REJECTED)
        self._recent: deque[tuple[dict[Any, Any], Any]] = deque(maxlen=self.window)
        self._reference: Reference | None = None
        # Observations collected so far, for the first reference or after an alarm; None where nothing is collected.
        self._n_collected: int | None = 0
        # Route of the alarm that is looked into, the observation at which it was raised, and restarts since.
        self._alarm = ("", 0, 0)

    def update(self, x: Features, y: Any, y_pred: Any) -> ChangeExplanation | None:
        """Take in one observation that the model has just learnt.

        Parameters
        ----------
        x, y
            The observation; x is copied.
        y_pred
            What the model predicted for x before learning: probabilities or a label for a classifier, a number
            otherwise; the distance `probability` takes a label as certain. None, where it had no prediction yet, feeds
            neither detector nor discrepancy.

        Returns
        -------
        ChangeExplanation or None
            An explanation with the observation that completes it.
        """
        self.n_observations += 1
        row, prediction = dict(x), as_prediction(y_pred, self.distance.output)
        alarm = self._alarms.update(self.n_observations, row, y, prediction) if is_usable(prediction) else None
        self._recent.append((row, y))
        if alarm is not None:
            self._on_alarm(alarm)
        if self._n_collected is None:
            if self._reference is not None and is_usable(prediction):
                self._reference.add_next(row, y)
            return None
        self._n_collected += 1
        if self._n_collected < (self.min_observations if self._reference is None else self.window):
            return None
        try:
            explanation = self._conclude(list(self._recent))
        except Exception as error:
            # The model has no prediction for some row, or an infinite loss: tried again when some rows have gone. What
            # the model raises is the caller's affair, and is not raised again with every row.
            self._n_collected -= max(1, self.window // 10)
            if isinstance(error, (NoPredictionError, InvalidParameterError)):
                return None
            raise
        self._n_collected = None
        return explanation

    def new_version(self, model: Any, version: str | None = None, *, explain: bool = True) -> ChangeExplanation | None:
        """Go on with another model in the place of the present one, and explain the change at once.

        Both models are evaluated on the recent observations, at most `window`: the data are the same, so the change is
        the model's alone, and its standard errors are those of a paired comparison. The new model, or what it will have
        learnt, is then the reference, and the detector starts afresh; an alarm that was being looked into is dropped.

        Parameters
        ----------
        model
            The new model; it must do what the parameters ask of a model.
        version
            Its name, for explanations.
        explain
            False only replaces the model: for a present one that no longer predicts at all.

        Returns
        -------
        ChangeExplanation or None
            None where there are fewer than two recent observations, or one of the two models predicts nothing for some.

        Raises
        ------
        ModelError
            The new model cannot be explained or copied. What a model raises is let through too. The present model
            stays in both cases.
        """
        self._check_model(model)
        data, before, found = list(self._recent), self.version, None
        if explain and len(data) >= 2:
            found = compare_versions(self._measure, self.model, model, data, self._rng)
        reference = None
        if found is not None and len(data) == self.window:
            reference = Reference(freeze(model), data, found.importances_of_new, self.n_observations, version)
        self.model, self.version = model, version
        self._alarms.restart()
        self._set_reference(reference)
        if found is None:
            return None
        self.n_explained += 1
        self._alarm = ("version", self.n_observations, 0)
        return self._explanation(
            "model", found.discrepancy, found.n, found.changes, self.n_observations, before, len(data)
        )

    def _check_model(self, model: Any) -> None:
        # What the model cannot do shows now, not when the first reference is taken.
        for output in (self._alarms.signal.output, self.distance.output, self._measure.loss.output):
            model_function(model, output)
        freeze(model)

    def _on_alarm(self, alarm: str) -> None:
        if self._n_collected is None:
            self.n_alarms[alarm] += 1
            self._alarm = (alarm, self.n_observations, 0)
            self._n_collected = 0
        elif alarm == "detector" and self._n_collected and self._alarm[2] < self.max_restarts:
            # Where the model has not changed yet, what was collected is from before this alarm. Where it has, its error
            # falls again, and that alarms, too. (A discrepancy that rises meanwhile is no news.)
            collected = list(self._recent)[-1 - self._n_collected : -1]
            if (then := self._reference) is not None:
                value, _ = self._measure.discrepancy(then.model, self.model, [*then.data, *collected])
                if value > self.threshold:
                    self._alarm = (*self._alarm[:2], self.max_restarts)
                    return
            self.n_restarts += 1
            self._alarm = (alarm, self.n_observations, self._alarm[2] + 1)
            self._n_collected = 0

    def _conclude(self, data: Data) -> ChangeExplanation | None:
        if self._reference is None:
            taken = self._measure.take([self.model], data, self._seed())
            self._set_reference(self._new_reference(data, importances_under(taken, 0)))
            return None
        reference = self._reference
        value, n = self._measure.discrepancy(reference.model, self.model, [*reference.data, *data])
        changed = value > self.threshold
        if not changed and not (self.explain_data and self._measure.methods):
            self._reject(value)
            return None
        taken = self._measure.take([reference.model, self.model], data, self._seed())
        changes = change_between(reference.measured, taken, self._measure.loss, reference.memorised(self._measure))
        if changed:
            self._set_reference(self._new_reference(data, importances_under(taken, 1)))
            self.n_explained += 1
        elif min(next(iter(changes.values())).data_part_p_values.values(), default=1.0) <= SIGNIFICANCE:
            # Only the data: were the model the new reference too, slow change could creep by in small steps.
            self._reference = reference.with_data(data, importances_under(taken, 0))
            self._alarms.dismiss(self._alarm[0], self.n_observations)
            self.n_data_changes += 1
        else:
            self._reject(value)
            return None
        kind, since = "model" if changed else "data", reference.n_observations
        return self._explanation(kind, value, n, changes, since, reference.version, len(data))

    def _reject(self, value: float) -> None:
        route, detected, _ = self._alarm
        self.n_rejected += 1
        self._rejected.append(RejectedAlarm(self.n_observations, detected, route, value, self.threshold))
        self._alarms.dismiss(route, self.n_observations)

    def _new_reference(self, data: Data, found: dict[str, MeasuredImportance]) -> Reference:
        return Reference(freeze(self.model), data, found, self.n_observations, self.version)

    def _set_reference(self, reference: Reference | None) -> None:
        """Compare the model with `reference` from now on; None starts collecting data for one."""
        self._reference = reference
        self._alarms.compare_with(None if reference is None else reference.model, self.n_observations)
        self._n_collected = 0 if reference is None else None

    def _seed(self) -> int:
        return draw_seed(self._rng)

    def _explanation(
        self,
        kind: str,
        discrepancy: float,
        n_discrepancy: int,
        changes: dict[str, ImportanceChange],
        since: int,
        version_before: str | None,
        window: int,
    ) -> ChangeExplanation:
        route, detected, _ = self._alarm
        return ChangeExplanation(
            kind=kind,
            route=route,
            n_observations=self.n_observations,
            n_detected=detected,
            reference_observation=since,
            detector=self.detector_name,
            detector_params=dict(self._alarms.detector_params),
            signal=self._alarms.signal.name,
            window=window,
            discrepancy=discrepancy,
            threshold=self.threshold,
            n_discrepancy=n_discrepancy,
            distance=self.distance.name,
            version_before=version_before,
            version=self.version,
            importances=changes,
        )

    @classmethod
    def from_snapshot(
        cls, snapshot: Snapshot, model: Any, *, loss: Loss | Callable[[Any, Any], float] | None = None
    ) -> ChangeExplainer:
        """Return the change explainer that the snapshot was taken of, over the model as it was then.

        Raises
        ------
        SnapshotError
            The snapshot is of another class, format version or loss.
        """
        check_snapshot(snapshot, cls.name)
        parameters = snapshot["parameters"]
        loss_then = snapshot_loss(parameters["loss"], loss)
        explainer = cls(model, **{**parameters, "loss": loss_then}, version=snapshot["version"])
        explainer._restore(snapshot)
        return explainer
