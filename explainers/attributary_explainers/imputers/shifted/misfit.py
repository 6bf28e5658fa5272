"""The diagnostic of shifted rows: which share of a feature's dependence on the others its draws miss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...compiled import compiled
from ...keeping.arrays import pack, unpack
from ...typing import Array, Snapshot
from .encoding import Encoding

N_WAVES = 32
SIGNIFICANT = 4.0
"""So many standard errors tell that a feature depends on others."""
LARGEST_WAVE = 20.0
"""So many times its variance does the square of a single mean: that tells it too, where the dependence is of a pair."""


@compiled
def look(z: Any, drawn: Any, marginal: Any, weights: Any, phase: Any, rate: float, mean: Any, variance: Any) -> None:
    """Add one observation to the means and variances of the waves' differences, in place; see `Misfit`."""
    d = len(z)
    for i in range(d):
        for r in range(len(phase)):
            at = phase[r]
            for j in range(d):
                at += z[j] * weights[i, j, r]
            here, own = np.cos(at), weights[i, i, r]
            for k in range(2):
                values = drawn[i] if k == 0 else marginal[i]
                total = 0.0
                for value in values:
                    total += np.cos(at + (value - z[i]) * own)
                step = total / len(values) - here - mean[k, i, r]
                mean[k, i, r] += rate * step
                variance[k, i, r] = (1.0 - rate) * (variance[k, i, r] + rate * step * step)


class Misfit:
    """Measures how far the stream is from the stream with one feature drawn again given all others.

    For each feature i there are random waves, cos(w_i z_i + w_S z_S + b): half of them of i and one more feature, which
    has most power against what pairs have in common, three eighths of i and two more, the others of all. z are scaled
    numbers; a category has a random number per level, 0 and pi where there are two. With g_r the exponentially
    weighted mean of (wave r of x with x_i drawn) - (wave r of x), and v_r its variance,

        distance_i = sum over r of g_r^2 - v_r,        share_i = distance_i of the draws / that of marginal draws,

    without bias an estimate of the square of a maximum mean discrepancy (Gretton et al., 2012), 0 where draws have the
    right distribution. The share is 0 where nothing is missed, 1 where draws are no better than interventional ones,
    NaN where the feature depends on no other one. What is returned is a lower bound, two standard errors below the
    estimate; and between the waves more can be missed.

    Parameters
    ----------
    alpha
        Valid range (0, 1]; smoothing factor per observation that is looked at.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self._start(Encoding())

    def _start(self, encoding: Encoding) -> None:
        d = len(encoding)
        self._of = _meaning(encoding)
        self.n, self._squares = 0, 0.0
        self.mean, self.variance = np.zeros((2, d, N_WAVES)), np.zeros((2, d, N_WAVES))
        # The waves follow from the number of features alone: they are no part of the state.
        rng = np.random.default_rng(d)
        self._weights = rng.standard_normal((d, d, N_WAVES)) * np.where(np.arange(N_WAVES) % 2, 1.5, 0.75)
        n_all, n_three = N_WAVES // 8, N_WAVES // 2
        self._weights[:, :, :n_all] /= math.sqrt(max(d, 1))
        for i in range(d):
            others = np.setdiff1d(np.arange(d), i)
            for r in range(n_all, N_WAVES):
                n_others = min(2 if r < n_three else 1, len(others))
                alone = np.isin(np.arange(d), [i, *rng.choice(others, n_others, replace=False)], invert=True)
                self._weights[i, alone, r] = 0.0
        self._phase = rng.random(N_WAVES) * 2.0 * math.pi
        self._level = rng.standard_normal((d, int(encoding.levels.max(initial=0)) + 1)) * 1.5
        # With two levels a wave that depends on the feature changes its sign: no other one tells as much.
        for j in np.flatnonzero(encoding.levels == 2):
            self._weights[:, j] = np.sign(self._weights[:, j])
            self._level[j, :2] = 0.0, math.pi

    def update(self, row: Array, drawn: Array, stored: Array, encoding: Encoding) -> None:
        """Look at an observation.

        Parameters
        ----------
        row
            Codes, shape (features,).
        drawn
            Shape (features, draws): draws of each feature given all others.
        stored
            Shape (draws, features): stored rows, whose values are marginal draws.
        """
        if _meaning(encoding) != self._of:
            self._start(encoding)
        self.n += 1
        rate = max(1.0 / self.n, self.alpha)
        z, others = self._scaled(row, encoding), self._scaled(drawn.T, encoding).T
        marginal = self._scaled(stored, encoding).T
        look(z, others, marginal, self._weights, self._phase, rate, self.mean, self.variance)
        self._squares = (1.0 - rate) ** 2 * self._squares + rate * rate

    def _scaled(self, values: Array, encoding: Encoding) -> Array:
        z = np.clip((values - encoding.center) / encoding.scale, -5.0, 5.0)
        for j in np.flatnonzero(~encoding.is_number):
            known = np.nan_to_num(values[..., j], nan=self._level.shape[1] - 1).astype(np.int64)
            z[..., j] = self._level[j, known]
        found: Array = np.nan_to_num(z, nan=0.0)
        return found

    def shares(self) -> dict[Any, tuple[float, float]]:
        """Return by feature the least share of the dependence that is missed, and how many standard errors tell it."""
        if self.n < 2 or self._squares >= 1.0:
            return {}
        noise = self.variance * self._squares / (1.0 - self._squares)
        distance = (self.mean**2 - noise).sum(axis=2)
        # Waves are correlated, as if each stood for eight.
        error = np.sqrt(2.0 * (noise**2).sum(axis=2) * 8.0)
        z = distance / np.maximum(error, 1e-300)
        largest = (self.mean[1] ** 2 / np.maximum(noise[1], 1e-300)).max(axis=1, initial=0.0)
        depends = (z[1] > SIGNIFICANT) | (largest > LARGEST_WAVE)
        share = np.maximum(distance[0] - 2.0 * error[0], 0.0) / np.maximum(distance[1], 1e-300)
        share = np.where(depends, np.minimum(share, 1.0), math.nan)
        return {name: (float(share[j]), float(z[0, j])) for j, (name, _) in enumerate(self._of)}

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "n": self.n,
            "squares": self._squares,
            "mean": pack(self.mean),
            "variance": pack(self.variance),
        }

    def restore(self, state: Snapshot, encoding: Encoding) -> None:
        """Take the state of one that looked at observations of this encoding."""
        self._start(encoding if len(unpack(state["mean"])[0]) else Encoding())
        self.n, self._squares = state["n"], state["squares"]
        self.mean, self.variance = unpack(state["mean"]), unpack(state["variance"])


def _meaning(encoding: Encoding) -> list[tuple[Any, int]]:
    return [(feature.name, feature.n_levels) for feature in encoding.features]
