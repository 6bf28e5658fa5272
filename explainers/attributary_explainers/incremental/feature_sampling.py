"""Sampling of features, mostly of features whose increments vary most."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ..removal.imputer import Indices
from ..typing import Array, Snapshot

_FLOOR = 0.2
"""Part of the evaluations that all features share alike."""
_COMPLETE = 100
"""Observations whose features are all evaluated, to know the spread by."""


class Chosen:
    """An observation's chosen features: numbers and probabilities."""

    def __init__(self, numbers: Indices, probabilities: Array) -> None:
        self.numbers, self.probabilities = numbers, probabilities

    def estimates(self, mean: Array, increments: Array) -> Array:
        """Return an estimate of every feature's increment, shape (features,).

        A chosen feature has m + (lambda - m) / p, with m the mean so far; any other has m, which leaves the mean where
        it is. The expectation is that of lambda for any m and p that are known before.

        Parameters
        ----------
        mean
            Shape (features,): m.
        increments
            Shape (chosen,).
        """
        found = mean.copy()
        found[self.numbers] += (increments - mean[self.numbers]) / self.probabilities
        return found


class FeatureSampling:
    """A sampler of features by the variance of increments to the power 3/4.

    With p the probability of a feature and v the variance of its increments, its estimates have the variance v / p.
    Probabilities in proportion to the root of v make the sum of these least (Neyman's allocation), and in proportion to
    v they make the largest one least, which is where the features matter. The power between them has nearly the sum of
    the first and the largest of the second. A fifth of the evaluations go to all features alike, so that none has less
    than a fifth of the share: a feature that begins to matter is noticed.

    Parameters
    ----------
    share
        Valid range (0, 1): share of the features per observation, in the mean; but one feature at least.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._variances: dict[Any, float] = {}  # of names that the last observation did not have
        self._names: tuple[Any, ...] = ()
        self._now: Array = np.zeros(0)  # of those that it had; -1: never evaluated

    def choose(self, names: tuple[Any, ...], n: int, rng: np.random.Generator) -> Chosen | None:
        """Choose features after `n` observations; None: all, without a draw."""
        if n < _COMPLETE:
            return None
        variances, u = self._of(names), rng.random()
        n_known = float((variances >= 0.0).sum())
        # A little more than one, so that rounding never leaves none.
        p = probabilities(variances, min(max(self.share * n_known, 1.0 + 1e-9), n_known))
        # One number for all of them: each with its probability, and always as many, give or take one.
        ends = np.floor(np.cumsum(np.concatenate(((u,), p))))
        numbers = np.flatnonzero(np.diff(ends) > 0.0)
        return Chosen(numbers, p[numbers])

    def learn(
        self, names: tuple[Any, ...], chosen: Chosen | None, rate: float, deviations: Array, known: Collection[Any]
    ) -> None:
        """Learn the variances of the evaluated features' increments.

        Parameters
        ----------
        rate
            Share of the observation in the mean.
        deviations
            Shape (chosen,): increments less the mean before.
        known
            Names to keep where there are many more: those of the mean.
        """
        k = len(names)
        numbers, p = (np.arange(k), np.ones(k)) if chosen is None else (chosen.numbers, chosen.probabilities)
        variances, squares = self._of(names), deviations * deviations
        # Evaluated with the probability p, it stands for 1 / p observations.
        before = variances[numbers]
        moved = before + np.minimum(rate / p, 1.0) * (squares - before)
        variances[numbers] = np.where(before < 0.0, squares, moved)
        if len(self._variances) > 2 * len(known) + k:
            self._variances = {name: self._variances[name] for name in known if name in self._variances}

    def _of(self, names: tuple[Any, ...]) -> Array:
        if names != self._names:
            self._put_back()
            self._names, self._now = names, np.array([self._variances.pop(name, -1.0) for name in names])
        return self._now

    def _put_back(self) -> None:
        self._variances.update((n, v) for n, v in zip(self._names, self._now.tolist(), strict=True) if v >= 0.0)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        self._put_back()
        state = {"names": list(self._variances), "variances": list(self._variances.values())}
        self._variances = {name: v for name, v in self._variances.items() if name not in self._names}
        return state

    def restore(self, state: Snapshot) -> None:
        """Take the state that `snapshot` gave."""
        self._variances = dict(zip(state["names"], state["variances"], strict=True))
        self._names, self._now = (), np.zeros(0)


def probabilities(variances: Array, total: float) -> Array:
    """Return min(1, c (0.8 w + 0.2 / n)), where c makes them sum to `total`.

    w are the variances to the power 3/4, over their sum.

    Parameters
    ----------
    variances
        Shape (n,). Valid range >= 0; all are alike where all are 0. Unknown ones are -1, and have 1 beyond the total.
    total
        Valid range (0, n]; what the probabilities sum to.
    """
    known = variances >= 0.0
    largest = variances.max(initial=0.0)
    root = np.sqrt(np.maximum(variances, 0.0) / largest) if largest > 0.0 else np.ones(len(variances))
    p: Array = root * np.sqrt(root)
    p = (1.0 - _FLOOR) * (p / max(float(p[known].sum()), 1e-300)) + _FLOOR / max(int(known.sum()), 1)
    is_sure, left = ~known, total
    while True:
        # Those beyond 1 are cut to it, and the others share what they leave.
        rest = float(p[~is_sure].sum())
        beyond = ~is_sure & (p * left >= rest)
        if not beyond.any():
            return np.where(is_sure, 1.0, p * (left / rest) if rest > 0.0 else 1.0)
        is_sure |= beyond
        left -= float(beyond.sum())
