"""Which features of an observation are evaluated, where not all are: those whose increments differ most."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .typing import Snapshot

Array = npt.NDArray[np.float64]

_FLOOR = 0.1
_COMPLETE = 100
"""Observations whose features are all evaluated, to know the spread by."""


class Chosen:
    """The features that an observation is evaluated for: their numbers, and the probability that each had."""

    def __init__(self, numbers: npt.NDArray[np.intp], probabilities: Array) -> None:
        self.numbers, self.probabilities = numbers, probabilities

    def estimates(self, mean: Array, increments: Array, parts: Array, slots: Any) -> tuple[Array, Array, Any]:
        """Increments, parts and slots of all features, of those that were evaluated.

        m + (lambda - m) / p, with m the mean so far, for a feature that was; m itself, which leaves the mean where it
        is, for one that was not. Whatever m and p are, as long as they are known before: the expectation is lambda's.

        Parameters
        ----------
        mean
            Shape (features,): m.
        increments, parts, slots
            Shapes (chosen,), (chosen, draws) and (chosen, draws); slots can be None.
        """
        at, (k, n) = self.numbers, (len(mean), parts.shape[1])
        own, p = mean[at], self.probabilities
        all_increments, all_parts = mean.copy(), np.repeat(mean[:, None], n, axis=1)
        all_increments[at] += (increments - own) / p
        all_parts[at] += (parts - own[:, None]) / p[:, None]
        if slots is None:
            return all_increments, all_parts, None
        all_slots = np.zeros((k, n), dtype=np.intp)
        all_slots[at] = slots
        return all_increments, all_parts, all_slots


class FeatureSampling:
    """Chooses features with probabilities in proportion to the spread of their increments.

    For a given number of evaluations the variances of d estimates, each the square of a spread over a probability, sum
    to least where probabilities are in proportion to the spreads (Neyman's allocation). None is less than a tenth of
    the largest: a feature that begins to matter is noticed.

    Parameters
    ----------
    share
        Valid range (0, 1): share of the features per observation, in the mean; but one feature at least.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._variances: dict[Any, float] = {}

    def choose(self, names: Sequence[Any], n: int, rng: np.random.Generator) -> Chosen | None:
        """Choose among features by what is known after `n` observations; None: all of them, without a draw."""
        if n < _COMPLETE:
            return None
        spreads = np.sqrt([self._variances.get(name, math.nan) for name in names])
        known = np.isfinite(spreads)  # one that has never been evaluated is
        p = np.ones(len(names))
        if known.any():
            p[known] = probabilities(spreads[known], self._total(int(known.sum())))
        # One number for all of them: each with its probability, and always as many, give or take one.
        ends = np.floor(np.cumsum(p) + rng.random())
        numbers = np.flatnonzero(np.diff(ends, prepend=0.0))
        return Chosen(numbers, p[numbers])

    def _total(self, n_features: int) -> float:
        # A little more than one, so that rounding never leaves none.
        return min(max(self.share * n_features, 1.0 + 1e-9), float(n_features))

    def learn(
        self, names: Sequence[Any], chosen: Chosen | None, rate: float, deviations: Array, known: Collection[Any]
    ) -> None:
        """Take in what was evaluated.

        Parameters
        ----------
        rate
            Share of the observation in the mean.
        deviations
            Shape (chosen,): increments less the mean before.
        known
            Names to keep where there are many more: those of the mean.
        """
        numbers = range(len(names)) if chosen is None else chosen.numbers.tolist()
        weights = [rate] * len(names) if chosen is None else np.minimum(rate / chosen.probabilities, 1.0).tolist()
        for i, weight, square in zip(numbers, weights, (deviations * deviations).tolist(), strict=True):
            # Evaluated with the probability p, it stands for 1 / p observations.
            before = self._variances.get(names[i], square)
            self._variances[names[i]] = before + weight * (square - before)
        if len(self._variances) > 2 * len(known) + len(names):
            self._variances = {name: self._variances[name] for name in known if name in self._variances}

    def snapshot(self) -> Snapshot:
        """Plain data to restore from."""
        return {"names": list(self._variances), "variances": list(self._variances.values())}

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._variances = dict(zip(state["names"], state["variances"], strict=True))


def probabilities(spreads: Array, total: float) -> Array:
    """min(1, c * max(spread, a tenth of the largest)), with c such that they sum to `total`.

    Parameters
    ----------
    spreads
        Valid range >= 0; all equal counts where all are 0.
    total
        Valid range (0, len(spreads)].
    """
    largest = float(spreads.max())
    weights = np.maximum(spreads / largest, _FLOOR) if largest > 0.0 else np.ones(len(spreads))
    order = np.argsort(-weights, kind="stable")
    left, rest = total, float(weights.sum())
    p = np.ones(len(weights))
    for done, i in enumerate(order.tolist()):
        if weights[i] * left < rest:
            remaining = order[done:]
            p[remaining] = weights[remaining] * (left / rest)
            break
        left, rest = left - 1.0, rest - weights[i]
    return np.minimum(p, 1.0)
