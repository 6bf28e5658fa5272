"""Explaining model change by the change in feature importance (Change section 4, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .base import SNAPSHOT_FORMAT, check_snapshot, snapshot_loss
from .change_explanation import ChangeExplanation
from .copying import dump_model, freeze, load_model
from .detectors import make_detector
from .discrepancy import Distance, as_distance, expected_discrepancy
from .errors import InvalidParameterError, NoPredictionError
from .losses import Loss
from .models import is_classifier, is_usable, model_function, resolve_loss
from .pfi import BatchImportance, batch_pfi
from .smoothing import SmoothedMean
from .typing import Features, Groups, Prediction, Snapshot
from .validation import check_choice, check_groups, check_integer, check_number


class ChangeExplainer:
    """Says when a model has become another one, and which features it relies on more or less than before.

    1. The first `window` observations give the reference: a frozen copy of the model, the data, and the batch
       PFI of that model on that data. The detector is not fed meanwhile.
    2. From then on the detector is fed the signal of each observation. On an alarm the next `window`
       observations are collected, that one included; alarms meanwhile are ignored.
    3. Then the expected discrepancy, the mean distance between the predictions of reference and current model
       over both data sets, is compared with `threshold`. Above it, the batch PFI of the current model on the
       collected data minus the reference's is the explanation, and the current model becomes the reference.
       Otherwise nothing is said, `n_rejected` counts it, and the reference stays.

    Call `update(x, y, y_pred)` once per observation, after the model has learnt it, with the prediction it
    made before: the current model of step 3 is the one that has learnt all `window` observations.

    `discrepancy` is the incremental estimate, smoothed over about `window` observations, of the distance
    between reference and current model, there at any time after step 1 (beyond the paper, its section 6).

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
        Name and parameters of the drift detector, see `make_detector`. ADWIN's `delta`: larger alarms more.
    signal
        What the detector reads: `zero_one` (the 0/1 error) or `loss`; None is zero_one for a classifier,
        loss otherwise.
    distance
        `label` (0 or 1), `probability` (half the L1 distance) or `number` (absolute difference); None is
        label for a classifier, number otherwise.
    loss
        Loss of the importances; None is zero_one for a classifier (the paper's), squared or score otherwise.
    groups, n_permutations, seed
        As for `batch_pfi`.

    Source: Muschalik, Fumagalli, Hammer, Huellermeier, Agnostic Explanation of Model Change based on Feature
    Importance, KI 36, 2022, equation 4 and Algorithm 1. Deviation: batch PFI has the factor N / (N - 1).

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

    name = "change"

    def __init__(
        self,
        model: Any,
        *,
        window: int = 300,
        threshold: float = 0.3,
        detector: str = "adwin",
        detector_params: Mapping[str, Any] | None = None,
        signal: str | None = None,
        distance: str | None = None,
        loss: str | Loss | Callable[[Any, Any], float] | None = None,
        groups: Groups | None = None,
        n_permutations: int = 1,
        seed: int | None = None,
    ) -> None:
        classifier = is_classifier(model)
        self.model = model
        self.window = check_integer("window", window, minimum=2)
        self.threshold = check_number("threshold", threshold, above=-1e-300)
        self.detector_name, self.detector_params = detector, dict(detector_params or {})
        self.loss = resolve_loss(model, "zero_one" if loss is None and classifier else loss)
        self.signal = check_choice("signal", signal or ("zero_one" if classifier else "loss"), ("zero_one", "loss"))
        self._signal = resolve_loss(model, "zero_one" if self.signal == "zero_one" else self.loss)
        self.distance: Distance = as_distance(distance or ("label" if classifier else "number"))
        self.groups = check_groups(groups)
        self.n_permutations = check_integer("n_permutations", n_permutations, minimum=1)
        self.n_observations = self.n_alarms = self.n_rejected = self.n_explained = 0
        # What the model cannot do shows now, not when the first reference is taken.
        for output in (self._signal.output, self.distance.output, self.loss.output):
            model_function(model, output)
        freeze(model)
        self._detector = make_detector(detector, detector_params)
        self._rng = np.random.default_rng(seed)
        self._reference: _Reference | None = None
        self._collecting: list[tuple[dict[Any, Any], Any]] | None = []
        self._n_detected = 0
        self._discrepancy = self._new_discrepancy()

    @property
    def discrepancy(self) -> float | None:
        """Smoothed distance between the reference's and the model's predictions; None without a reference."""
        return self._discrepancy.value

    @property
    def n_discrepancy(self) -> int:
        """Observations in `discrepancy`, since the reference was taken."""
        return self._discrepancy.weights.n

    @property
    def reference_observation(self) -> int | None:
        """Observation after which the reference model was taken; None without one. Names the reference."""
        return self._reference.n_observations if self._reference else None

    @property
    def reference(self) -> BatchImportance | None:
        """Importance of the reference model on its data."""
        return self._reference.importance if self._reference else None

    @property
    def is_collecting(self) -> bool:
        """Whether observations are being collected: for the first reference, or after an alarm."""
        return self._collecting is not None

    def update(self, x: Features, y: Any, y_pred: Any) -> ChangeExplanation | None:
        """Take in one observation that the model has just learnt.

        Parameters
        ----------
        x, y
            The observation; x is copied where it is kept.
        y_pred
            What the model predicted for x before learning: probabilities or a label for a classifier, a number
            otherwise. None, where it had no prediction yet, feeds neither detector nor discrepancy.

        Returns
        -------
        ChangeExplanation or None
            An explanation with the observation that completes it.
        """
        self.n_observations += 1
        prediction = self._as_prediction(y_pred)
        if self._reference is not None and is_usable(prediction):
            self._compare(self._reference, x, y, prediction)
        if self._collecting is None:
            return None
        self._collecting.append((dict(x), y))
        if len(self._collecting) < self.window:
            return None
        data, self._collecting = self._collecting, None
        try:
            if self._reference is None:
                self._take_reference(data)
                return None
            return self._explain(self._reference, data)
        except (NoPredictionError, InvalidParameterError):
            # The model has no prediction for some row, or an infinite loss: tried again with each further observation.
            self._collecting = data[1:]
            return None
        except Exception:
            self._collecting = data[1:]  # the caller's affair; without this it would never be tried again
            raise

    def _as_prediction(self, y_pred: Any) -> Prediction:
        if self.distance.output == "number" or y_pred is None or isinstance(y_pred, dict):
            return y_pred or None if isinstance(y_pred, dict) else y_pred
        return {y_pred: 1.0}

    def _compare(self, reference: _Reference, x: Features, y: Any, prediction: Prediction) -> None:
        referred = reference.function(x)
        if is_usable(referred):
            self._discrepancy.update(self.distance(referred, prediction))
        value = self._signal(y, prediction)
        if math.isfinite(value):
            self._detector.update(value)
            if self._detector.drift_detected and self._collecting is None:
                self.n_alarms += 1
                self._n_detected = self.n_observations
                self._collecting = []

    def _explain(self, reference: _Reference, data: list[tuple[dict[Any, Any], Any]]) -> ChangeExplanation | None:
        xs = [x for x, _ in (*reference.data, *data)]
        current = model_function(self.model, self.distance.output)
        value, n = expected_discrepancy(reference.function, current, xs, self.distance)
        if not value > self.threshold:
            self.n_rejected += 1
            return None
        updated = self._take_reference(data)
        self.n_explained += 1
        return ChangeExplanation(
            n_observations=self.n_observations,
            n_detected=self._n_detected,
            reference_observation=reference.n_observations,
            detector=self.detector_name,
            detector_params=self.detector_params,
            signal=self._signal.name,
            window=self.window,
            discrepancy=value,
            threshold=self.threshold,
            n_discrepancy=n,
            distance=self.distance.name,
            loss=self.loss.name,
            before=reference.importance.importance,
            after=updated.importance.importance,
            before_std_error=reference.importance.std_error,
            after_std_error=updated.importance.std_error,
        )

    def _take_reference(self, data: list[tuple[dict[Any, Any], Any]]) -> _Reference:
        importance = batch_pfi(
            self.model,
            data,
            loss=self.loss,
            n_permutations=self.n_permutations,
            groups=self.groups,
            seed=int(self._rng.integers(2**63)),
        )
        model = freeze(self.model)
        self._reference = _Reference(model, self.distance, data, importance, self.n_observations)
        self._discrepancy = self._new_discrepancy()
        return self._reference

    def _new_discrepancy(self) -> SmoothedMean:
        return SmoothedMean(alpha=2.0 / (self.window + 1))

    @property
    def parameters(self) -> dict[str, Any]:
        """What the explainer was made with, as plain data."""
        return {
            "window": self.window,
            "threshold": self.threshold,
            "detector": self.detector_name,
            "detector_params": dict(self.detector_params),
            "signal": self.signal,
            "distance": self.distance.name,
            "loss": self.loss.name,
            "groups": {group: list(features) for group, features in self.groups.items()},
            "n_permutations": self.n_permutations,
        }

    def snapshot(self) -> Snapshot:
        """Everything but the current model; reference model and detector as the bytes of `dump_model`."""
        return {
            "format": SNAPSHOT_FORMAT,
            "explainer": self.name,
            "parameters": self.parameters,
            "generator": self._rng.bit_generator.state,
            "detector": dump_model(self._detector),
            "reference": self._reference.snapshot() if self._reference else None,
            "collecting": None if self._collecting is None else [(dict(x), y) for x, y in self._collecting],
            "discrepancy": self._discrepancy.snapshot(),
            "counts": [
                self.n_observations,
                self.n_alarms,
                self.n_rejected,
                self.n_explained,
                self._n_detected,
            ],
        }

    @classmethod
    def from_snapshot(
        cls, snapshot: Snapshot, model: Any, *, loss: Loss | Callable[[Any, Any], float] | None = None
    ) -> ChangeExplainer:
        """The change explainer that the snapshot was taken of, over the model as it was then.

        Raises
        ------
        SnapshotError
            The snapshot is of another class, format version or loss.
        """
        check_snapshot(snapshot, cls.name)
        parameters = snapshot["parameters"]
        explainer = cls(model, **{**parameters, "loss": snapshot_loss(parameters["loss"], loss)})
        explainer._rng.bit_generator.state = snapshot["generator"]
        explainer._detector = load_model(snapshot["detector"])
        if snapshot["reference"]:
            explainer._reference = _Reference.from_snapshot(snapshot["reference"], explainer.distance)
        collecting = snapshot["collecting"]
        explainer._collecting = None if collecting is None else [(dict(x), y) for x, y in collecting]
        explainer._discrepancy = SmoothedMean.from_snapshot(snapshot["discrepancy"])
        counts = snapshot["counts"]
        explainer.n_observations, explainer.n_alarms, explainer.n_rejected = counts[:3]
        explainer.n_explained, explainer._n_detected = counts[3:]
        return explainer


class _Reference:
    """h_r, D_r and phi_r. Never changes, so its model is turned into bytes once."""

    def __init__(
        self,
        model: Any,
        distance: Distance,
        data: list[tuple[dict[Any, Any], Any]],
        importance: BatchImportance,
        n_observations: int,
    ) -> None:
        self.function = model_function(model, distance.output)
        self.data = data
        self.importance = importance
        self.n_observations = n_observations
        self._model = model
        self._bytes: bytes | None = None

    def snapshot(self) -> Snapshot:
        if self._bytes is None:
            self._bytes = dump_model(self._model)
        return {
            "model": self._bytes,
            "data": [(dict(x), y) for x, y in self.data],
            "importance": self.importance.importance,
            "std_error": self.importance.std_error,
            "n_observations": self.n_observations,
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, distance: Distance) -> _Reference:
        data = [(dict(x), y) for x, y in snapshot["data"]]
        importance = BatchImportance(snapshot["importance"], snapshot["std_error"], len(data))
        return cls(load_model(snapshot["model"]), distance, data, importance, snapshot["n_observations"])
