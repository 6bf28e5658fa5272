"""Describes an importance change by a method: before, after, noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..losses.statement import loss_statement
from ..ranking import SIGNIFICANCE, holm, largest_first, ndcg, p_value, ranks, shift
from ..typing import Importance


@dataclass(frozen=True)
class ImportanceChange:
    """Importances of reference and present model, on rows neither learnt.

    delta = phi(h_t, D_t) - phi(h_r, D_r), with h_r the reference and D_r the first observations after it was taken, h_t
    the model now and D_t the recent observations. Where the data are as they were, and for versions, D_r is D_t.
    All are per feature or group, in the unit of the loss; a feature that one side does not know has importance 0 there.
    Source: Change, equation 4, whose D_r the reference has learnt.

    Attributes
    ----------
    method
        `pfi` or `sage`.
    loss, loss_unit, loss_largest
        Name of the loss that the importances are in, its unit, and its largest value, None where there is none.
    n_observations
        Observations that each of the two is measured on.
    before, after
        Importances of the reference and of the model now, with their standard errors.
    delta_std_error
        Of the change: where both models are evaluated on the same rows and draws, it is usually smaller than those of
        the two.
    before_loss, after_loss
        Mean loss of the two.
    margin
        Change that is of no interest, in the unit of the loss: p-values are of the part beyond it. 0 but for versions.
    is_paired
        Whether both models were evaluated on the same rows and draws.
    """

    method: str
    loss: str
    loss_unit: str
    loss_largest: float | None
    n_observations: int
    before: Importance
    after: Importance
    before_std_error: Importance
    after_std_error: Importance
    delta_std_error: Importance
    before_loss: float
    after_loss: float
    margin: float = 0.0
    is_paired: bool = False

    @property
    def unit(self) -> str:
        """Name, unit and largest value of the loss, in words."""
        return loss_statement(self.loss, self.loss_unit, self.loss_largest)

    @property
    def features(self) -> list[Any]:
        """Every feature that either side knows, the reference's first."""
        return list(dict.fromkeys((*self.before, *self.after)))

    @property
    def delta(self) -> Importance:
        """Change in importance per feature; negative if relied on less."""
        return {f: self.after.get(f, 0.0) - self.before.get(f, 0.0) for f in self.features}

    @property
    def p_values(self) -> dict[Any, float]:
        """Noise p-value per feature: two-sided normal test, adjusted by `holm`."""
        found = {}
        for f, value in self.delta.items():
            # Differences of equal importances that were summed in different orders are nothing.
            sizes = (self.before_loss, self.after_loss, self.before.get(f, 0.0), self.after.get(f, 0.0))
            beyond = abs(value) - self.margin
            found[f] = p_value(
                0.0 if beyond <= 1e-12 * sum(map(abs, sizes)) else beyond, self.delta_std_error.get(f, 0.0)
            )
        return holm(found)

    def significant(self, level: float = SIGNIFICANCE) -> list[Any]:
        """Return the features changed beyond noise, the largest change first.

        Parameters
        ----------
        level
            Valid range (0, 1): probability that any feature is named when none has changed.
        """
        return largest_first(self.delta, [f for f, p in self.p_values.items() if p <= level])

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
        """NDCG of the ranking after, in (0, 1]; relevance is the share before."""
        return ndcg(self.before, self.after)
