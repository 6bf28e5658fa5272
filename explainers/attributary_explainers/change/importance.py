"""Describes a change in importance by one method: before, after, its two parts, and what is beyond noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..losses.statement import loss_statement
from ..ranking import SIGNIFICANCE, largest_first, ndcg, ranks, shift
from ..typing import Importance


def holm(p_values: Mapping[Any, float]) -> dict[Any, float]:
    """Return p-values adjusted for testing all at once (Holm, 1979): a feature is named where it is below the level.

    The i-th smallest of d is multiplied by d - i + 1, and is at least as large as the one before. The probability to
    name any feature that has not changed is at most the level, however the features depend on each other.

    Examples
    --------
    >>> holm({"age": 0.01, "salary": 0.04, "loan": 0.03})
    {'age': 0.03, 'salary': 0.06, 'loan': 0.06}
    """
    adjusted, largest = {}, 0.0
    for i, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, min(1.0, (len(p_values) - i) * p_values[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


@dataclass(frozen=True)
class ImportanceChange:
    """Holds the importance of the reference model then, of the reference model now, and of the current model now.

    With h_r, D_r the reference model and its data, h_t, D_t the current ones,

        delta      = phi(h_t, D_t) - phi(h_r, D_r) = model_part + data_part,
        model_part = phi(h_t, D_t) - phi(h_r, D_t)        the data are the same: the models differ,
        data_part  = phi(h_r, D_t) - phi(h_r, D_r)        the model is the same: inputs or their meaning differ.

    All are per feature or group, in the unit of the loss; a feature that one side does not know has importance 0 there.
    Source: Change, equation 4 (delta); the parts are ours.

    Attributes
    ----------
    method
        `pfi` or `sage`.
    loss, loss_unit, loss_largest
        Name of the loss that the importances are in, its unit, and its largest value, None where there is none.
    before, crossed, after
        phi(h_r, D_r), phi(h_r, D_t) and phi(h_t, D_t), with their standard errors.
    model_part_std_error
        Of the model part: both models are evaluated on the same rows and draws, so it is usually smaller than those of
        the two.
    data_part_std_error, delta_std_error
        Of the data part and of the change: of two data sets taken as independent. Of a model version, which is
        compared on one data set, the data part is 0, and so is its error.
    before_loss, crossed_loss, after_loss
        Mean loss of h_r on D_r, of h_r on D_t and of h_t on D_t: what the change of the model is worth.
    memorised, memorised_std_error
        How much larger the loss of h_r was on the observations that came next, which it had not learnt, than on D_r,
        which it had. A model that remembers what it has learnt relies more on its features there, so parts up to this
        size say nothing. None: not known.
    """

    method: str
    loss: str
    loss_unit: str
    loss_largest: float | None
    before: Importance
    crossed: Importance
    after: Importance
    before_std_error: Importance
    crossed_std_error: Importance
    after_std_error: Importance
    model_part_std_error: Importance
    data_part_std_error: Importance
    delta_std_error: Importance
    before_loss: float
    crossed_loss: float
    after_loss: float
    memorised: float | None = 0.0
    memorised_std_error: float = 0.0

    @property
    def unit(self) -> str:
        """Name, unit and largest value of the loss, in words."""
        return loss_statement(self.loss, self.loss_unit, self.loss_largest)

    @property
    def features(self) -> list[Any]:
        """Every feature that either side knows, those of the reference first."""
        return list(dict.fromkeys((*self.before, *self.after)))

    @property
    def delta(self) -> Importance:
        """Change in importance per feature; negative where the model relies on it less than before."""
        return self._difference(self.after, self.before)

    @property
    def model_part(self) -> Importance:
        """Part of `delta` that comes from the change of the model, on the new data."""
        return self._difference(self.after, self.crossed)

    @property
    def data_part(self) -> Importance:
        """Part of `delta` that comes from the change of the data, under the reference model."""
        return self._difference(self.crossed, self.before)

    def _difference(self, a: Importance, b: Importance) -> Importance:
        return {f: a.get(f, 0.0) - b.get(f, 0.0) for f in self.features}

    @property
    def p_values(self) -> dict[Any, float]:
        """p-value per feature that its change is noise: two-sided normal test, adjusted for testing all (`holm`)."""
        return self._p_values(self.delta, self.delta_std_error, 0.0, 0.0)

    @property
    def model_part_p_values(self) -> dict[Any, float]:
        """p-value per feature that the model part is noise or was memorised; 1 where that is not known."""
        return self._part_p_values(self.model_part, self.model_part_std_error)

    @property
    def data_part_p_values(self) -> dict[Any, float]:
        """p-value per feature that the data part is noise or was memorised; 1 where that is not known."""
        return self._part_p_values(self.data_part, self.data_part_std_error)

    def _part_p_values(self, part: Importance, std_error: Importance) -> dict[Any, float]:
        if self.memorised is None:
            return dict.fromkeys(part, 1.0)
        return self._p_values(part, std_error, max(self.memorised, 0.0), self.memorised_std_error)

    def _p_values(
        self, change: Importance, std_error: Importance, margin: float, margin_std_error: float
    ) -> dict[Any, float]:
        losses = self.before_loss, self.crossed_loss, self.after_loss
        found = {}
        for f, value in change.items():
            # Differences of equal importances that were summed in different orders are nothing.
            rounding = 1e-12 * sum(map(abs, (*losses, self.before.get(f, 0.0), self.after.get(f, 0.0))))
            beyond = max(abs(value) - margin, 0.0) if not abs(value) <= rounding else 0.0
            found[f] = _p_value(beyond, math.hypot(std_error.get(f, 0.0), margin_std_error))
        return holm(found)

    def significant(self, level: float = SIGNIFICANCE) -> list[Any]:
        """Return the features whose change is beyond noise, the largest change first.

        Parameters
        ----------
        level
            Valid range (0, 1): probability that any feature is named when none has changed.
        """
        return largest_first(self.delta, [f for f, p in self.p_values.items() if p <= level])

    def cause(self, level: float = SIGNIFICANCE) -> str | None:
        """Return `model`, `data` or `both`: which parts are beyond noise in any feature; None where neither is.

        `data` is all of the data: a part of the change that the reference model shows as well, be it that other inputs
        come or that they mean something else for the target. `crossed_loss` beside `before_loss` helps to tell: where
        inputs mean something else, the reference model has become worse by more than it had `memorised`.
        """
        model = any(p <= level for p in self.model_part_p_values.values())
        data = any(p <= level for p in self.data_part_p_values.values())
        return "both" if model and data else "model" if model else "data" if data else None

    @property
    def before_ranks(self) -> dict[Any, int]:
        """Rank per feature before, 1 for the most important."""
        return ranks(self.before)

    @property
    def after_ranks(self) -> dict[Any, int]:
        """Rank per feature after, 1 for the most important."""
        return ranks(self.after)

    @property
    def shift(self) -> float:
        """Share of importance that has moved to other features, in [0, 1]."""
        return shift(self.before, self.after)

    @property
    def ndcg(self) -> float:
        """NDCG of the ranking after, with the shares before as relevance, in (0, 1]."""
        return ndcg(self.before, self.after)


def _p_value(change: float, std_error: float) -> float:
    if math.isnan(change) or math.isnan(std_error):
        return 1.0  # nothing is known
    if std_error == 0.0:  # no spread at all: any change is one
        return 0.0 if change != 0.0 else 1.0
    return math.erfc(change / std_error / math.sqrt(2.0))
