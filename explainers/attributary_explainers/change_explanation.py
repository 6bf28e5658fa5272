"""The result of explaining a model change: numbers, and a sentence for the person on call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from .ranking import ranks
from .typing import Importance

NAMED_IN_SENTENCE = 4
"""Features that the sentence names at most; the rest are counted."""


@dataclass(frozen=True)
class ChangeExplanation:
    """A model changed: here, by this much, in this way (Change, equation 4 and Algorithm 1).

    Attributes
    ----------
    n_observations
        Observation at which it was explained, counted from 1 since the explainer began (t).
    n_detected
        Observation at which the detector raised its alarm.
    reference_observation
        Observation after which the reference model was taken.
    detector, detector_params, signal
        What raised it, and what it read: `zero_one` or the name of the loss.
    window
        Observations in each of the two data sets (K).
    discrepancy, threshold, n_discrepancy, distance
        The expected discrepancy between reference and current model, the threshold that it exceeded (tau), the
        observations it is the mean of, and what was compared: `label`, `probability` or `number`.
    loss
        Loss that the importances are in.
    before, after, before_std_error, after_std_error
        Importance per feature of the reference model on its data and of the current model on its.
    """

    n_observations: int
    n_detected: int
    reference_observation: int
    detector: str
    detector_params: dict[str, Any]
    signal: str
    window: int
    discrepancy: float
    threshold: float
    n_discrepancy: int
    distance: str
    loss: str
    before: Importance
    after: Importance
    before_std_error: Importance
    after_std_error: Importance

    @property
    def features(self) -> list[Any]:
        """Every feature that either side knows, those of the reference first."""
        return list(dict.fromkeys((*self.before, *self.after)))

    @property
    def delta(self) -> Importance:
        """Change in importance per feature; negative where the model relies on it less than before."""
        return {f: self.after.get(f, 0.0) - self.before.get(f, 0.0) for f in self.features}

    @property
    def delta_std_error(self) -> Importance:
        """Standard error of `delta`, the two data sets taken as independent."""
        return {
            f: math.hypot(self.before_std_error.get(f, 0.0), self.after_std_error.get(f, 0.0)) for f in self.features
        }

    @property
    def before_ranks(self) -> dict[Any, int]:
        """Rank per feature before, 1 for the most important."""
        return ranks(self.before)

    @property
    def after_ranks(self) -> dict[Any, int]:
        """Rank per feature after, 1 for the most important."""
        return ranks(self.after)

    def significant(self, level: float = 0.05) -> list[Any]:
        """Features whose change stands out of the noise, the largest change first.

        Parameters
        ----------
        level
            Valid range (0, 1): probability that any feature is named when none has changed. Bonferroni over
            the features: |delta| > z(1 - level / 2d) standard errors.
        """
        delta, std_error = self.delta, self.delta_std_error
        z = NormalDist().inv_cdf(1.0 - level / (2 * max(len(delta), 1)))
        named = [f for f in delta if abs(delta[f]) > z * std_error[f]]
        return sorted(named, key=lambda f: (-abs(delta[f]), str(f)))

    def plot(self, **parameters: Any) -> Any:
        """Importance before and after; returns the matplotlib Axes. Parameters are those of `plots.change`."""
        from . import plots

        return plots.change(self, **parameters)

    def sentence(self, model_id: str = "the model", observation: int | None = None) -> str:
        """One plain English sentence: where, by how much, which features, and what is noise.

        Parameters
        ----------
        observation
            Number to give as the place, where the caller counts otherwise than from the explainer's beginning.
        """
        delta, named = self.delta, self.significant()
        at = f"{self.n_observations if observation is None else observation:,}".replace(",", " ")
        head = f"{model_id} changed at {at} (discrepancy {self.discrepancy:.2f} > {self.threshold:.2f})"
        if not named:
            return f"{head}: no feature's importance changed beyond noise"
        shown, hidden = named[:NAMED_IN_SENTENCE], len(named) - NAMED_IN_SENTENCE
        parts = [f"{f} {'gained' if delta[f] > 0 else 'lost'} {_amount(abs(delta[f]))}" for f in shown]
        if hidden > 0:
            parts.append(f"{hidden} more changed by less")
        rest = "; the others within noise" if len(named) < len(delta) else ""
        return f"{head}: {', '.join(parts)}{rest}"


def _amount(value: float) -> str:
    # Losses come in any unit: two decimals where they say something, significant digits where they do not.
    return f"{value:.2f}" if 0.005 <= value < 1000 else f"{value:.2g}"
