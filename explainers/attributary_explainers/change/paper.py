"""Explains a model change as the paper does (Change, Algorithm 1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from ..batch.contributions import Contributions
from ..batch.slices import finish
from ..errors import InvalidParameterError, NoPredictionError
from ..losses.losses import AnyLoss
from ..models.function import is_classifier, model_function, resolve_loss
from ..notebook.described import Described
from ..notebook.rows import as_row, check_groups_there
from ..pickling import freeze
from ..predictions import is_usable
from ..typing import Features, Groups
from ..validation import check_choice, check_groups, check_integer, check_number, generator_of
from .detectors import make_detector
from .discrepancy import as_distance, as_prediction, expected_discrepancy
from .events import ChangeExplanation
from .measure import Measure, change_of, independent

Data = list[tuple[dict[Any, Any], Any]]


class PaperChangeExplainer(Described):
    """Explains model changes by Algorithm 1 of the paper, for its tables.

    Elsewhere, use `ChangeExplainer`.

    1. The first `window` observations give the reference: a frozen copy of the model, those observations, and the
       importances of the model on them. The detector is fed nothing meanwhile.
    2. When the detector alarms, the next `window` observations are collected, that one included; further alarms are
       ignored meanwhile.
    3. Then the mean distance between the predictions of both models over both data sets, in the unit of the distance,
       is compared with `threshold`. Above it, the importances of the model on the new data minus those of the
       reference on its own data are the explanation, and the model is the new reference. Otherwise nothing is said.

    Parameters
    ----------
    window, threshold
        K and tau in the paper; valid ranges >= 2 and >= 0.
    detector, detector_params
        See `make_detector`.
    signal
        `zero_one` or `loss`, which the detector reads as it is; None is zero_one for a classifier, else loss.
    distance
        `label`, `probability` or `number`; None is label for a classifier, else number.
    importances, loss, groups, n_permutations, n_samples
        As for `ChangeExplainer`; the loss of a classifier is zero_one by default, as in the paper.
    seed
        Seed of the generator.

    Source: Muschalik, Fumagalli, Hammer, Huellermeier, Agnostic Explanation of Model Change based on Feature
    Importance, KI 36, 2022, equation 4 and Algorithm 1. Deviation: batch PFI has the factor N / (N - 1).
    """

    _replaced = ("model",)

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
        importances: Sequence[str] = ("pfi",),
        loss: AnyLoss | None = None,
        groups: Groups | None = None,
        n_permutations: int = 1,
        n_samples: int = 4,
        seed: int | None = None,
    ) -> None:
        classifier = is_classifier(model)
        self.model = model
        self.window = check_integer("window", window, minimum=2)
        self.threshold = check_number("threshold", threshold, minimum=0.0)
        self.distance = as_distance(distance or ("label" if classifier else "number"))
        self._measure = Measure(
            tuple(importances),
            resolve_loss(model, "zero_one" if loss is None and classifier else loss),
            check_groups(groups),
            n_permutations,
            n_samples,
        )
        signal = check_choice("signal", signal or ("zero_one" if classifier else "loss"), ("zero_one", "loss"))
        self.signal = resolve_loss(model, "zero_one") if signal == "zero_one" else self._measure.loss
        self._rng = generator_of(seed)
        self.detector, self.detector_params = detector, dict(detector_params or {})
        self._detector: Any = make_detector(detector, detector_params, seed=self._seed())
        self.n_observations = self.n_rejected = self.n_alarms = 0
        self._recent: deque[tuple[dict[Any, Any], Any]] = deque(maxlen=self.window)
        self._reference: tuple[Any, Data, dict[str, Contributions], int] | None = None
        self._n_collected: int | None = 0
        self._detected = 0

    @property
    def reference_observation(self) -> int | None:
        """Observation after which the reference was taken, or None."""
        return None if self._reference is None else self._reference[3]

    def update(self, x: Features, y: Any, y_pred: Any) -> ChangeExplanation | None:
        """Take in an observation just learnt, and the prediction made before."""
        x = as_row(x)
        if not self.n_observations:
            check_groups_there(self._measure.groups, x)
        self.n_observations += 1
        prediction = as_prediction(y_pred, self.distance.output)
        self._recent.append((dict(x), y))
        if self._reference is not None and is_usable(prediction):
            self._detector.update(self.signal(y, prediction))
            if self._detector.drift_detected and self._n_collected is None:
                self._n_collected, self._detected = 0, self.n_observations
                self.n_alarms += 1
        if self._n_collected is None:
            return None
        self._n_collected += 1
        if self._n_collected < self.window:
            return None
        try:
            explanation = self._conclude(list(self._recent))
        except (NoPredictionError, InvalidParameterError):
            self._n_collected -= max(1, self.window // 10)  # tried again when some rows have gone
            return None
        self._n_collected = None
        return explanation

    def _conclude(self, data: Data) -> ChangeExplanation | None:
        if self._reference is None:
            self._refer(data)
            return None
        model, data_then, then, since = self._reference
        functions = [model_function(of, self.distance.output) for of in (model, self.model)]
        rows = [x for x, _ in (*data_then, *data)]
        value, n = expected_discrepancy(functions[0], functions[1], rows, self.distance)
        if value <= self.threshold:
            self.n_rejected += 1
            return None
        now = self._refer(data)
        return ChangeExplanation(
            route="detector",
            n_observations=self.n_observations,
            n_detected=self._detected,
            reference_observation=since,
            detector=self.detector,
            detector_params=self.detector_params,
            signal="score" if self.signal.is_score else self.signal.name,
            one_sided=False,
            window=self.window,
            discrepancy=value,
            threshold=self.threshold,
            n_discrepancy=n,
            distance=self.distance.name,
            scale="absolute",
            verdict=None,
            importances={
                name: change_of(name, self._measure.loss, a := then[name], b, independent(a.std_error, b.std_error))
                for name, b in now.items()
            },
        )

    def _refer(self, data: Data) -> dict[str, Contributions]:
        """Make the model on these data the reference; return contributions."""
        steps = self._measure.steps([self.model], data, self._seed())
        taken = {method: of[0] for method, of in finish(steps).items()}
        self._reference = (freeze(self.model), data, taken, self.n_observations)
        return taken

    def _seed(self) -> int:
        return int(self._rng.integers(2**31))
