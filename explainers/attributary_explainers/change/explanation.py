"""Holds the explanation of a model change: numbers, and a sentence for the person on call."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .. import plots
from ..errors import InvalidParameterError
from ..ranking import BAND, SIGNIFICANCE, largest_first
from ..typing import Importance
from .importance import ImportanceChange

NAMED_IN_SENTENCE = 4
"""Changed features that the sentence names at most; the others are counted."""

QUIET_IN_SENTENCE = 3
"""Features within noise that the sentence names at most, the most important first; the others are counted."""


@dataclass(frozen=True)
class RejectedAlarm:
    """Records an alarm after which reference and current model turned out to predict alike.

    Attributes
    ----------
    n_observations, n_detected
        Observations at which it was rejected and raised.
    route
        `detector` or `discrepancy`.
    discrepancy, threshold
        The expected discrepancy, and the threshold that it did not exceed.
    """

    n_observations: int
    n_detected: int
    route: str
    discrepancy: float
    threshold: float


@dataclass(frozen=True)
class ChangeExplanation:
    """Says where a model changed, by how much, and in which features (Change, equation 4 and Algorithm 1).

    The attributes of `ImportanceChange` are there too, of the first method: `delta`, `significant()`, `cause` ...

    Attributes
    ----------
    kind
        `model`; or `data`, where the models predict alike and the importances of the reference have changed with the
        data (only with `explain_data`).
    route
        How it was noticed: `detector`, `discrepancy` (the incremental one above the threshold), or `version`: the model
        was replaced by another.
    n_observations
        Observation at which it was explained, counted from 1 since the explainer began (t).
    n_detected
        Observation at which the alarm was raised, from which on data were collected.
    reference_observation
        Observation after which the reference model was taken; that of the replacement for a version.
    detector, detector_params, signal
        The drift detector, None without one, and what it reads: `zero_one` or the name of the loss.
    window
        Observations in each of the two data sets (K); of a version, of the one data set.
    discrepancy, threshold, n_discrepancy, distance
        The expected discrepancy between reference and current model, the threshold (tau), the observations it is the
        mean of, and what was compared: `label`, `probability` or `number`.
    version_before, version
        Names of the model's versions, where the caller gave them.
    importances
        Method, `pfi` or `sage`, to the change in importance.
    """

    kind: str
    route: str
    n_observations: int
    n_detected: int
    reference_observation: int
    detector: str | None
    detector_params: dict[str, Any]
    signal: str
    window: int
    discrepancy: float
    threshold: float
    n_discrepancy: int
    distance: str
    version_before: str | None = None
    version: str | None = None
    importances: dict[str, ImportanceChange] = field(default_factory=dict)

    @property
    def first(self) -> ImportanceChange:
        """The change in importance by the first method.

        Raises
        ------
        InvalidParameterError
            The change explainer was made with `importances=()`.
        """
        if not self.importances:
            raise InvalidParameterError("importances", "pfi or sage, to have a change in importance", ())
        return next(iter(self.importances.values()))

    @property
    def cause(self) -> str | None:
        """Cause of the change by the first method: `model`, `data`, `both` or None; see `ImportanceChange.cause`."""
        return self.first.cause() if self.importances else None

    @property
    def loss(self) -> str:
        """Loss that the importances are in."""
        return self.first.loss

    @property
    def features(self) -> list[Any]:
        """Every feature that either side knows."""
        return self.first.features

    @property
    def before(self) -> Importance:
        """Importance of the reference model on its data."""
        return self.first.before

    @property
    def after(self) -> Importance:
        """Importance of the current model on the new data."""
        return self.first.after

    @property
    def before_std_error(self) -> Importance:
        """Standard error of `before`."""
        return self.first.before_std_error

    @property
    def after_std_error(self) -> Importance:
        """Standard error of `after`."""
        return self.first.after_std_error

    @property
    def delta(self) -> Importance:
        """Change in importance per feature; negative where the model relies on it less than before."""
        return self.first.delta

    @property
    def delta_std_error(self) -> Importance:
        """Standard error of `delta`."""
        return self.first.delta_std_error

    @property
    def model_part(self) -> Importance:
        """Part of `delta` that comes from the change of the model."""
        return self.first.model_part

    @property
    def data_part(self) -> Importance:
        """Part of `delta` that comes from the change of the data."""
        return self.first.data_part

    @property
    def before_ranks(self) -> dict[Any, int]:
        """Rank per feature before, 1 for the most important."""
        return self.first.before_ranks

    @property
    def after_ranks(self) -> dict[Any, int]:
        """Rank per feature after, 1 for the most important."""
        return self.first.after_ranks

    @property
    def shift(self) -> float:
        """Share of importance that has moved to other features."""
        return self.first.shift

    @property
    def ndcg(self) -> float:
        """NDCG of the ranking after against that before."""
        return self.first.ndcg

    @property
    def p_values(self) -> dict[Any, float]:
        """p-value per feature that its change is noise, adjusted for testing all."""
        return self.first.p_values

    def significant(self, level: float = SIGNIFICANCE) -> list[Any]:
        """Return the features whose change is beyond noise, as `ImportanceChange.significant` does."""
        return self.first.significant(level)

    def plot(self, **parameters: Any) -> Any:
        """Draw importance before and after; return the matplotlib Axes. Parameters are those of `plots.change`."""
        return plots.change(self, **parameters)

    def sentence(self, model_id: str = "the model", observation: int | None = None) -> str:
        """Return one English sentence: where, by how much, which features, what is noise, and what caused it.

        The number after each plus-minus sign is the half-width of a 95 % interval, 1.96 standard errors.

        Parameters
        ----------
        observation
            Number of the observation to name, for a caller that does not count from the explainer's beginning.
        """
        at = f"{self.n_observations if observation is None else observation:,}".replace(",", " ")
        return f"{self._head(model_id, at)}{self._body()}"

    def _head(self, model_id: str, at: str) -> str:
        if self.route == "version":
            old = f" from version {self.version_before}" if self.version_before is not None else ""
            new = f"went{old} to version {self.version}" if self.version is not None else "has a new version"
            return f"{model_id} {new} at {at} (discrepancy {self.discrepancy:.2f})"
        sides = compared(self.discrepancy, self.threshold)
        if self.kind == "data":
            return f"the data of {model_id} changed at {at}, the model did not (discrepancy {sides})"
        return f"{model_id} changed at {at} (discrepancy {sides})"

    def _body(self) -> str:
        if not self.importances:
            return ""
        first = self.first
        change, error, p_values = first.delta, first.delta_std_error, first.p_values
        if self.kind == "data":
            change, error, p_values = first.data_part, first.data_part_std_error, first.data_part_p_values
        named = largest_first(change, [f for f, p in p_values.items() if p <= SIGNIFICANCE])
        if not named:
            kept = f"; its loss is {_text(first.after_loss)}, that of the reference {_text(first.crossed_loss)}"
            return f": no feature's importance changed beyond noise{kept}"
        parts = [_moved(f, change[f], error.get(f, 0.0), whole=i == 0) for i, f in enumerate(named[:NAMED_IN_SENTENCE])]
        if (hidden := len(named) - NAMED_IN_SENTENCE) > 0:
            parts.append(f"{hidden} more changed by less")
        said = [", ".join(parts), *self._quiet(named), *self._caused()]
        return ": " + "; ".join(said)

    def _quiet(self, named: list[Any]) -> list[str]:
        """Return the text about features whose change is within noise, the most important first."""
        first, known = self.first, set(named)
        size = {f: max(abs(first.before.get(f, 0.0)), abs(first.after.get(f, 0.0))) for f in first.features}
        quiet = largest_first(size, [f for f in first.features if f not in known])
        if not quiet:
            return []
        shown = quiet[:QUIET_IN_SENTENCE] if len(quiet) > QUIET_IN_SENTENCE + 1 else quiet
        more = f" and {len(quiet) - len(shown)} more" if len(quiet) > len(shown) else ""
        return [f"{', '.join(map(str, shown))}{more} within noise"]

    def _caused(self) -> list[str]:
        if self.kind == "data" or self.route == "version" or self.cause is None:
            return []
        return [{"model": "due to the model", "data": "due to the data", "both": "due to model and data"}[self.cause]]


def compared(discrepancy: float, threshold: float) -> str:
    """Return both numbers with the sign between them, and as many decimals as it takes to tell them apart."""
    sign = ">" if discrepancy > threshold else "<="
    for decimals in range(2, 17):
        shown = f"{discrepancy:.{decimals}f}", f"{threshold:.{decimals}f}"
        if shown[0] != shown[1] or discrepancy == threshold:
            break
    return f"{shown[0]} {sign} {shown[1]}"


def _text(value: float) -> str:
    # Losses come in any unit: two decimals where they say something, significant digits where they do not.
    return f"{value:.2f}" if 0.005 <= abs(value) < 1000 or value == 0.0 else f"{value:.2g}"


def _moved(feature: Any, change: float, std_error: float, *, whole: bool) -> str:
    verb, of = ("gained", " of importance") if change > 0 else ("lost", " of its importance")
    return f"{feature} {verb} {_interval(abs(change), BAND * std_error)}{of if whole else ''}"


def _interval(value: float, half: float) -> str:
    """Return a number and the half-width of its interval, to as many decimals as the half-width needs."""
    if not (math.isfinite(half) and half > 0.0):
        return _text(value)
    decimals = max(-math.floor(math.log10(half)), 2 if half < 1.0 else 0)
    if decimals > 6 or value >= 1e6:
        return f"{value:.3g} ± {half:.1g}"
    return f"{value:.{decimals}f} ± {half:.{decimals}f}"
