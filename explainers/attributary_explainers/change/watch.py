"""Feeds a drift detector a signal without a unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidParameterError
from ..pickling import dump_model, load_model
from ..snapshots import attributes, set_attributes
from ..typing import Snapshot
from ..validation import LARGEST
from .detectors import DETECTORS_OF_ERRORS, make_detector


class SignalWatch:
    """Watches a loss with a drift detector, in any unit of the loss.

    The signal `zero_one` is 1 for a wrong label, else 0. The signal `loss` is l / (l + m) in [0, 1), where m is the
    mean loss of the first reference on observations that it had not learnt; from then on it stays, because another unit
    would be an alarm. Where losses can be negative, scores for example, it is 1/2 (1 + z / (1 + |z|)) with z = (l - m)
    / mean |l - m|. A detector whose bounds have an absolute part (ADWIN) else finds the same change later where numbers
    are smaller.

    `seed` gives the seed of each new detector; the other parameters are those of `ChangeExplainer`.
    """

    def __init__(
        self,
        detector: str | None,
        detector_params: Mapping[str, Any] | None,
        *,
        signal: str,
        one_sided: bool,
        seed: Callable[[], int],
    ) -> None:
        if detector is None and detector_params:
            raise InvalidParameterError("detector_params", "none where there is no detector", detector_params)
        if detector in DETECTORS_OF_ERRORS and signal != "zero_one":
            raise InvalidParameterError("signal", f"zero_one with {detector}, which reads errors: 0 or 1", signal)
        self.name, self.params = detector, dict(detector_params or {})
        self.signal, self.one_sided = signal, bool(one_sided)
        self.reads_errors = signal == "zero_one"
        self._seed = seed
        self._unit: tuple[float, float] | None = None
        self._is_provisional = False
        self._begin()

    def restart(self) -> None:
        """Restart for another model, whose losses are not comparable."""
        self._unit, self._is_provisional = None, False
        self._begin()

    @property
    def has_unit(self) -> bool:
        """Whether the size of a typical loss is known."""
        return self.reads_errors or self._unit is not None

    @property
    def needs_unit(self) -> bool:
        """Whether a typical loss is to be set, or set again."""
        return not self.has_unit or self._is_provisional

    def set_unit(self, losses: Sequence[float], *, provisional: bool = False) -> None:
        """Take the typical loss from observations that were not learnt yet.

        A provisional unit is replaced by the next one, and the detector begins anew with that.
        """
        if self._is_provisional:
            self._begin()
        self._is_provisional = provisional
        losses = [min(loss, LARGEST) for loss in losses]  # the sum of a few beyond is infinite
        mean = math.fsum(losses) / len(losses)
        around = math.fsum(abs(loss - mean) for loss in losses) / len(losses)
        self._unit = (mean, around if min(losses) < 0.0 else 0.0)

    def update(self, is_wrong: bool, loss: float) -> bool:
        """Take in an observation's outcome; return whether the detector alarms."""
        if self._detector is None:
            return False
        if self.reads_errors:
            value = 1.0 if is_wrong else 0.0
        elif self._unit is None:
            return False
        else:
            value = self.without_unit(loss)
        self._detector.update(value)
        return bool(self._detector.drift_detected)

    def without_unit(self, loss: float) -> float:
        """Return the signal `loss` for a loss."""
        mean, around = self._unit or (0.0, 0.0)
        if around > 0.0:
            z = (loss - mean) / around
            return 0.5 * (1.0 + z / (1.0 + abs(z)))
        return loss / (loss + mean) if loss > 0.0 else 0.0

    def _begin(self) -> None:
        """Take a detector that knows nothing."""
        self._detector: Any = None
        if self.name is not None:
            self._detector = make_detector(self.name, self.params, seed=self._seed(), one_sided=self.one_sided)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from, with the detector as bytes."""
        return {"detector": dump_model(self._detector), "state": attributes(self, ("_unit", "_is_provisional"))}

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the state from a snapshot."""
        self._detector = load_model(snapshot["detector"])
        set_attributes(self, snapshot["state"])
