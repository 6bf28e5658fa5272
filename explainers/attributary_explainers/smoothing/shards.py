"""Merged importance of a model that is explained in shards.

A shard explains its share of the observations with an explainer of its own, and knows nothing of the others. What it
says now and then is merged here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..typing import Importance, Snapshot
from ..validation import check_number
from .importance import t_quantile

FADED = 1e-3
"""A shard that has been silent until its weight has fallen by this factor is left out until it reports again."""


PATIENCE = 2.0
"""A shard is overdue after so many times its last silence: the time that so many observations take varies."""


@dataclass(frozen=True, slots=True)
class ShardEstimate:
    """A shard's estimate of the importances of a model.

    Attributes
    ----------
    n_represented
        Observations that the importance stands for: those that were explained, and those that were passed over and
        have given them their weight. Fewer than the shard said before means that it began afresh.
    importance, std_error
        Feature or group to smoothed importance and its standard error, in the unit of the loss; NaN: not known.
    degrees_of_freedom
        Those of the standard errors; NaN: not known.
    """

    n_represented: int
    importance: Importance
    std_error: Importance
    degrees_of_freedom: float


@dataclass(frozen=True, slots=True)
class _Shard:
    """The last estimate of a shard, and its weight at that time.

    Attributes
    ----------
    weight
        Sum of the weights of its observations, at the time of its last estimate.
    at
        Number of observations of the whole model that had been reported then, without first estimates of shards.
    apart
        How many observations of the whole model had been reported since the shard's estimate before; of the first
        estimate, all that had been.
    new
        How many of them were the shard's.
    first
        How many observations the first estimate of the shard was of.
    """

    last: ShardEstimate
    weight: float
    at: int
    apart: float
    new: int
    first: int

    @property
    def is_first(self) -> bool:
        """Whether the shard has said nothing before."""
        return self.new == self.last.n_represented


class MergedImportance:
    """Weighted mean of shards' importances, with standard errors.

    **Weights.** One explainer of all observations weights an observation of age k by d^k, d = 1 - alpha', and so a
    shard by the sum over those that the shard has explained. Here the observations of a shard are known in blocks,
    those between two of its estimates. If the whole model reports S observations between the two, and m of them are the
    shard's, evenly among the others, then with every new estimate

        c <- c d^S + sum_{i < m} d^(i S / m) = c d^S + (1 - d^S) / (1 - d^(S / m)),

    and the shard's weight is w = c / (sum of all c). A shard's own smoothing weights its observations by (1 - alpha)^i,
    and with K shards of equal traffic the observation before is K ages back: so d = (1 - alpha)^(1 / K). The merge of
    K shards remembers as one explainer with alpha' = 1 - (1 - alpha)^(1 / K), about alpha / K, would. With alpha so
    small that nothing fades, d = 1, c is the number of the shard's observations, and the merge is the plain mean of
    all. With traffic p of a shard, c tends to p / (1 - d) to first order in alpha: w is its share of the traffic.

    When the observations of a shard's first estimate came is not known: they are taken to be spread over all
    observations that the shards have reported, and S is the sum of their numbers. So a shard with a hundredth of the
    traffic has a hundredth of the weight at once.

    **Silence.** Between two estimates of a shard the others report, too. What they report counts against it only once
    it has been silent for twice as long as the last time: then it fades by d for each further observation of the
    others, as its observations would fade for one explainer of all. Nothing here is a clock: the order of the estimates
    decides, and a replay gives the same. After its first estimate a shard is expected to be silent for as many
    observations of its own as the other shards, by its share of the traffic.

    **Standard error.** Shards explain different observations with draws of their own, so their errors are independent:

        std_error^2 = sum w^2 std_error_i^2,   degrees of freedom = std_error^4 / sum (w^4 std_error_i^4 / nu_i)

    by Welch and Satterthwaite. A feature that a shard has not seen has the importance 0 there, as it had before it was
    first seen. Sums over features are kept: what holds for each shard, as the efficiency of SAGE, holds for the merge.

    Parameters
    ----------
    alpha
        Valid range (0, 1]; the smoothing factor of each shard.

    Examples
    --------
    >>> merged = MergedImportance(alpha=1e-16)
    >>> merged.update(0, ShardEstimate(300, {"age": 1.0}, {"age": 0.2}, 20.0))
    >>> merged.update(1, ShardEstimate(100, {"age": 5.0}, {"age": 0.2}, 20.0))
    >>> {name: round(value, 3) for name, value in merged.importance.items()}
    {'age': 2.0}
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = check_number("alpha", alpha, above=0.0, maximum=1.0)
        self._shards: dict[int, _Shard] = {}
        self._n_reported = 0
        self._n_merged = 0
        """Shards in the merge: without those that have faded."""

    def update(self, shard: int, said: ShardEstimate) -> None:
        """Replace a shard's earlier report by its new report."""
        known = self._shards.get(shard)
        if known is not None and said.n_represented < known.last.n_represented:
            known = None
        new = said.n_represented - (known.last.n_represented if known else 0)
        n_shards = len({*self._merged(), shard})
        if known is None:
            others = sum(one.last.n_represented for number, one in self._shards.items() if number != shard)
            weight, apart = 0.0, float(new + others)
        else:
            self._n_reported += new
            weight, apart = known.weight, float(self._n_reported - known.at)
        weight = weight * self._faded(apart, n_shards) + self._block(new, apart, n_shards)
        self._shards[shard] = _Shard(said, weight, self._n_reported, apart, new, known.first if known else new)
        self._n_merged = n_shards
        self._n_merged = len(self._merged())

    def _faded(self, n: float, n_shards: int) -> float:
        """Return d^n."""
        if self.alpha == 1.0:
            return float(n == 0.0)
        return math.exp(math.log1p(-self.alpha) * n / n_shards)

    def _block(self, new: int, apart: float, n_shards: int) -> float:
        """Return the total weight of `new` observations spread over `apart`."""
        if new == 0 or self.alpha == 1.0:
            return float(new > 0)
        rate = math.log1p(-self.alpha) / n_shards * apart
        if not rate / new:  # too small for a float
            return float(new)
        return math.expm1(rate) / math.expm1(rate / new)

    def _silence(self, shard: _Shard) -> float:
        """Return the factor by which a silent shard has faded."""
        usual = shard.apart
        if shard.is_first and shard.new:  # all that it has seen: from one estimate to the next there are fewer
            others = [one for one in self._shards.values() if one is not shard]
            between = max((one.new for one in others if not one.is_first), default=0) or shard.new
            # Those that spoke first for the first time later were there before, too.
            whole = max(usual, float(shard.new + sum(one.first for one in others)))
            usual = whole * min(1.0, between / shard.new)
        return self._faded(max(0.0, self._n_reported - shard.at - PATIENCE * usual), self._n_merged)

    def _merged(self) -> dict[int, _Shard]:
        """Return the shards that have not faded; the others stay known."""
        return {number: shard for number, shard in sorted(self._shards.items()) if self._silence(shard) >= FADED}

    @property
    def weights(self) -> dict[int, float]:
        """Shard to its weight; they sum to 1."""
        weights = {number: shard.weight * self._silence(shard) for number, shard in self._merged().items()}
        total = math.fsum(weights.values())
        if not total:  # nobody has explained anything yet
            return dict.fromkeys(weights, 1.0 / len(weights)) if weights else {}
        return {number: weight / total for number, weight in weights.items()}

    @property
    def n_represented(self) -> int:
        """Observations that the importances of the shards stand for."""
        return sum(shard.last.n_represented for shard in self._merged().values())

    @property
    def importance(self) -> Importance:
        """Weighted mean of the shards' importances, in the unit of the loss."""
        weights = self.weights
        values = {number: self._shards[number].last.importance for number in weights}
        return {
            name: math.fsum(weight * values[number].get(name, 0.0) for number, weight in weights.items())
            for name in _names(values.values())
        }

    def mean(self, values: Mapping[int, float | None]) -> float | None:
        """Return the shards' weighted mean of a figure; None if no shard has it."""
        weights = self.weights
        known = [(weights[number], one) for number, one in values.items() if one is not None and number in weights]
        total = math.fsum(weight for weight, _ in known)
        return math.fsum(weight * value for weight, value in known) / total if total else None

    @property
    def std_error(self) -> Importance:
        """Standard error of `importance`; NaN where that of a shard is not known."""
        return {name: math.sqrt(math.fsum(parts.values())) for name, parts in self._variances().items()}

    @property
    def half_width(self) -> Importance:
        """Half-width of the 95 % interval; NaN where the standard error is."""
        widths = {}
        for name, parts in self._variances().items():
            variance = math.fsum(parts.values())
            spread = math.fsum(
                part * part / self._shards[number].last.degrees_of_freedom for number, part in parts.items() if part
            )
            widths[name] = t_quantile(variance * variance / spread) * math.sqrt(variance) if spread else variance
        return widths

    def _variances(self) -> dict[Any, dict[int, float]]:
        """Return each shard's part of the squared error, by feature."""
        weights = self.weights
        errors = {number: self._shards[number].last.std_error for number in weights}
        return {
            name: {number: _square(weight * errors[number].get(name, 0.0)) for number, weight in weights.items()}
            for name in _names(errors.values())
        }

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "alpha": self.alpha,
            "n_reported": self._n_reported,
            "n_merged": self._n_merged,
            "shards": {number: asdict(shard) for number, shard in self._shards.items()},
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> MergedImportance:
        """Return the merge that the snapshot was taken of."""
        merged = cls(snapshot["alpha"])
        merged._n_reported, merged._n_merged = snapshot["n_reported"], snapshot["n_merged"]
        for number, shard in snapshot["shards"].items():
            merged._shards[number] = replace(_Shard(**shard), last=ShardEstimate(**shard["last"]))
        return merged


def _square(value: float) -> float:
    return value * value


def _names(values: Iterable[Importance]) -> list[Any]:
    return list(dict.fromkeys(name for one in values for name in one))
