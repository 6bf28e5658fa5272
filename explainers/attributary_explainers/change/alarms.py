"""Raises alarms that a model may have changed: by a drift detector, and by the incremental discrepancy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InvalidParameterError
from ..evaluation.function import FastFunction
from ..losses.losses import Loss
from ..models.function import model_function
from ..pickling import dump_model, load_model
from ..typing import Features, Prediction, Snapshot
from ..validation import check_integer, check_number
from .detectors import DETECTORS_OF_ERRORS, make_detector
from .discrepancy import Distance, IncrementalDiscrepancy

ROUTES = ("detector", "discrepancy")
"""What can raise an alarm."""

_BATCH_SIZE = 32


class Alarms:
    """Watches the drift detector and the incremental discrepancy, except in the quiet times after an alarm.

    Parameters
    ----------
    signal
        Loss whose value the detector is fed.
    seed
        Gives the seed of each new detector.
    window, threshold, detector, detector_params, watch_discrepancy, cooldown, batch_size, distance
        As for `ChangeExplainer`.
    """

    def __init__(
        self,
        *,
        window: int,
        threshold: float,
        detector: str | None,
        detector_params: Mapping[str, Any] | None,
        signal: Loss,
        watch_discrepancy: bool,
        cooldown: int,
        batch_size: int | None,
        distance: Distance,
        seed: Callable[[], int],
    ) -> None:
        if detector is None and not watch_discrepancy:
            raise InvalidParameterError("detector", "a name where watch_discrepancy is off: else nothing alarms", None)
        if detector is None and detector_params:
            raise InvalidParameterError("detector_params", "none where there is no detector", detector_params)
        if detector in DETECTORS_OF_ERRORS and signal.name != "zero_one":
            raise InvalidParameterError("signal", f"zero_one with {detector}, which reads errors: 0 or 1", signal.name)
        self.window = window
        self.threshold = check_number("threshold", threshold, minimum=0.0)
        self.detector_name, self.detector_params = detector, dict(detector_params or {})
        self.signal, self.distance = signal, distance
        self.watch_discrepancy = bool(watch_discrepancy)
        self.cooldown = check_integer("cooldown", cooldown, minimum=0)
        self.batch_size = None if batch_size is None else check_integer("batch_size", batch_size, minimum=1)
        self.discrepancy: IncrementalDiscrepancy | None = None
        self._seed = seed
        self._detector = self._new_detector()
        self._quiet_until = self._discrepancy_quiet_until = 0

    def compare_with(self, reference: Any, n_observations: int) -> None:
        """Compare with this reference model from now on; with None, nothing alarms."""
        self.discrepancy = None if reference is None else self._new_discrepancy(reference)
        self._quiet_until = n_observations + self.cooldown
        self._discrepancy_quiet_until = 0

    def restart(self) -> None:
        """Replace the detector by a new one: errors of another model say nothing about this one's."""
        self._detector = self._new_detector()

    def dismiss(self, route: str, n_observations: int) -> None:
        """Stay quiet for a while after an alarm by this route that was no change of the model."""
        self._quiet_until = n_observations + self.cooldown
        if route == "discrepancy":
            # It may stay just above the threshold for long: looked at again when there are other data to look at.
            self._discrepancy_quiet_until = n_observations + self.window

    def update(self, n_observations: int, x: Features, y: Any, prediction: Prediction) -> str | None:
        """Take in one observation with the model's prediction for it; return the route of an alarm, or None.

        Parameters
        ----------
        n_observations
            Number of the observation.
        x
            Its features; kept until the reference has been asked.
        """
        if self.discrepancy is None:
            return None
        alarm = None
        self.discrepancy.update(x, prediction)
        if self._differs(self.discrepancy, n_observations):
            alarm = "discrepancy"
        value = self.signal(y, prediction)
        if self._detector is not None and math.isfinite(value):
            self._detector.update(value)
            if self._detector.drift_detected:
                alarm = "detector"
        return alarm if n_observations > self._quiet_until else None

    def _differs(self, discrepancy: IncrementalDiscrepancy, n_observations: int) -> bool:
        # Fewer than half a window of observations say little.
        known = self.watch_discrepancy and discrepancy.n >= self.window // 2
        return known and n_observations > self._discrepancy_quiet_until and (discrepancy.value or 0.0) > self.threshold

    def _new_discrepancy(self, reference: Any) -> IncrementalDiscrepancy:
        function = model_function(reference, self.distance.output)
        size = self.batch_size
        if size is None:
            # A fast path is fast for one row, too: it does not wait for more.
            waits = hasattr(function, "many") and not isinstance(function, FastFunction)
            size = min(_BATCH_SIZE, self.window) if waits else 1
        return IncrementalDiscrepancy(function, self.distance, 2.0 / (self.window + 1), size)

    def _new_detector(self) -> Any:
        if self.detector_name is None:
            return None
        return make_detector(self.detector_name, self.detector_params, seed=self._seed())

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments without the signal, as plain data."""
        return {
            "window": self.window,
            "threshold": self.threshold,
            "detector": self.detector_name,
            "detector_params": dict(self.detector_params),
            "watch_discrepancy": self.watch_discrepancy,
            "cooldown": self.cooldown,
            "batch_size": self.batch_size,
        }

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from; the detector as the bytes of `dump_model`."""
        return {
            "detector": dump_model(self._detector),
            "discrepancy": self.discrepancy.snapshot() if self.discrepancy else None,
            "quiet_until": [self._quiet_until, self._discrepancy_quiet_until],
        }

    def restore(self, snapshot: Snapshot, reference: Any) -> None:
        """Take back what `snapshot` gave, over the reference model of then."""
        self._detector = load_model(snapshot["detector"])
        if reference is not None:
            self.discrepancy = self._new_discrepancy(reference)
            self.discrepancy.restore(snapshot["discrepancy"])
        self._quiet_until, self._discrepancy_quiet_until = snapshot["quiet_until"]
