"""The diagnostic of shifted rows: the share of dependence draws miss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..snapshots import pack, unpack
from ..typing import Array, Snapshot
from .statistics import Encoding

N_WAVES = 32
SIGNIFICANT = 4.0
"""So many standard errors tell that a feature depends on others."""
FARTHEST = 5.0
"""Scaled numbers count as at most so far out."""
LARGEST_WAVE = 20.0
"""So many times its variance does the square of a single mean: that tells it too, where the dependence is of a pair."""


class Misfit:
    """Distance of the stream from a copy with a feature drawn again.

    The feature is drawn given all others.

    For each feature i there are random waves, cos(w_i z_i + w_S z_S + b): half of them of i and one more feature, which
    has most power against what pairs have in common, three eighths of i and two more, the others of all. z are scaled
    numbers; a category has a random number per level, 0 and pi where there are two. With g_r the exponentially
    weighted mean of (wave r of x with x_i drawn) - (wave r of x), and v_r its variance,

        distance_i = sum over r of g_r^2 - v_r,        share_i = distance_i of the draws / that of marginal draws,

    where the distance is an unbiased estimate of a squared maximum mean discrepancy (Gretton et al., 2012), 0 where
    draws have the right distribution. The share is 0 where nothing is missed, 1 where draws are no better than
    interventional ones, NaN where the feature depends on no other one. `shares` returns a lower bound, two standard
    errors below the estimate; and more can be missed between the waves.

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
        self._encoding, self._of = encoding, _meaning(encoding)
        self.n, self._squares = 0, 0.0
        self._shares: dict[Any, tuple[float, float]] | None = None
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
        if encoding is not self._encoding:
            if _meaning(encoding) != self._of:
                self._start(encoding)
            self._encoding = encoding
        self.n += 1
        self._shares = None
        rate = max(1.0 / self.n, self.alpha)
        z = self._places(row, encoding)
        at = self._phase + z @ self._weights
        here, own = np.cos(at), np.diagonal(self._weights).T
        for k, values in enumerate((drawn.T, stored)):
            moves = self._places(values, encoding) - z
            step = np.cos(at + moves[:, :, None] * own).mean(axis=0) - here - self.mean[k]
            self.mean[k] += rate * step
            self.variance[k] = (1.0 - rate) * (self.variance[k] + rate * step * step)
        self._squares = (1.0 - rate) ** 2 * self._squares + rate * rate

    def _places(self, codes: Array, encoding: Encoding) -> Array:
        """Return the inputs of the waves: scaled numbers (0 if missing), levels."""
        z = np.clip((codes - encoding.center) / encoding.scale, -FARTHEST, FARTHEST)
        levels = np.where(np.isnan(codes) | encoding.is_number, self._level.shape[1] - 1, codes).astype(np.intp)
        level: Array = self._level[np.arange(len(encoding)), levels]
        return np.where(encoding.is_number, np.nan_to_num(z), level)

    def shares(self) -> dict[Any, tuple[float, float]]:
        """Return by feature the least share missed, and its distance from 0.

        The distance is that of the draws, in standard errors.
        """
        if self.n < 2 or self._squares >= 1.0:
            return {}
        if self._shares is None:  # they are asked for several times between two looks
            share, told = self._missed()
            names = [name for name, _ in self._of]
            self._shares = dict(zip(names, zip(share.tolist(), told.tolist(), strict=True), strict=True))
        return dict(self._shares)

    def _missed(self) -> tuple[Array, Array]:
        """Return both by feature; see `shares`."""
        noise, squares = self.variance * (self._squares / (1.0 - self._squares)), self.mean**2
        distance = (squares - noise).sum(axis=2)
        error = np.sqrt(2.0 * 8.0 * (noise * noise).sum(axis=2))  # waves are correlated, as if each stood for eight
        largest = (squares[1] / np.maximum(noise[1], 1e-300)).max(axis=1, initial=0.0)
        told = distance / np.maximum(error, 1e-300)
        share = np.minimum(np.maximum(distance[0] - 2.0 * error[0], 0.0) / np.maximum(distance[1], 1e-300), 1.0)
        return np.where((told[1] > SIGNIFICANT) | (largest > LARGEST_WAVE), share, np.nan), told[0]

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "n": self.n,
            "squares": self._squares,
            "mean": pack(self.mean),
            "variance": pack(self.variance),
        }

    def restore(self, state: Snapshot, encoding: Encoding) -> None:
        """Restore the state, recorded with observations of this encoding."""
        self._start(encoding if len(unpack(state["mean"])[0]) else Encoding())
        self.n, self._squares = state["n"], state["squares"]
        self.mean, self.variance = unpack(state["mean"]), unpack(state["variance"])


def _meaning(encoding: Encoding) -> list[tuple[Any, int]]:
    return [(feature.name, feature.n_levels) for feature in encoding.features]
