"""Bets against a reference that grows, for streams that have just begun."""

from __future__ import annotations

from typing import Self

import numpy as np

from ...typing import Array, Snapshot
from .law import ROWS, SEEN, Recalibration

_SLOPES = (-0.12, -0.25, -0.5, -0.8)
_LEVELS = (0.25, 0.5, 1.0, -0.25, -0.5, -1.0)
GRID: Array = np.array([*((a, 0.0) for a in _SLOPES), *((0.0, b) for b in _LEVELS), (-0.3, 0.4), (-0.3, -0.4)])
"""Moves of slope and level that are bet on."""
_SLACK = 2.0
"""Standard errors of the reference that each bet pays for not knowing it."""
_RICHEST = 1e100
_FIRST = 4
"""Blocks that are reference without a test."""


class Bets:
    """An e-detector (Shin, Ramdas and Rinaldo, 2024) on recalibrations.

        M_g <- (1 + M_g) exp(log likelihood ratio of g in a block - slack_g)

    It passes when the mean of M_g is `once_in` over the rows of a block. Blocks enter the reference when it is below 1.

    Attributes
    ----------
    before, window
        Tables of the reference, and of what has come since it stood still.
    n_blocks
        Blocks of the window.
    """

    def __init__(self, reference: Array, once_in: float) -> None:
        self.once_in = once_in
        self.before: Array = reference.copy()
        self.window: Array = np.zeros_like(reference)
        self.n_blocks = 0
        self._wealth = np.zeros(len(GRID))
        self._fit: Recalibration | None = None
        self._fit_at = 0.0

    def update(self, block: Array, n: int) -> bool:
        """Take in the table of block number `n`; return whether the test passes."""
        if n <= _FIRST:
            self.before = self.before + block
            return False
        if self._fit is None or n >= self._fit_at:
            self._fit, self._fit_at = Recalibration.of(self.before), 1.05 * n
        fit, design = self._fit, self._fit.design(block)
        q = 1.0 / (1.0 + np.exp(-(fit.theta @ design)))
        moved = GRID @ design
        gain = (block[SEEN] * moved - block[ROWS] * np.log1p(q * np.expm1(moved))).sum(axis=1)
        information = (block[ROWS] * q * (1.0 - q) * design) @ design.T
        pull = GRID @ information
        slack = _SLACK * np.sqrt(np.einsum("gi,ij,gj->g", pull, fit.covariance, pull))
        self._wealth = np.minimum((1.0 + self._wealth) * np.exp(np.minimum(gain - slack, 300.0)), _RICHEST)
        self.window, self.n_blocks = self.window + block, self.n_blocks + 1
        mean = float(self._wealth.mean())
        n_rows = float((self.before + self.window)[ROWS].sum())
        if mean < 1.0:
            self.before, self.window, self.n_blocks = self.before + self.window, np.zeros_like(block), 0
        return mean * n_rows / n >= self.once_in

    def forgive(self) -> None:
        """Take the window into the reference, and begin to bet anew."""
        self.before, self.window, self.n_blocks = self.before + self.window, np.zeros_like(self.window), 0
        self._wealth, self._fit = np.zeros(len(GRID)), None

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        fit = self._fit
        return {
            "before": self.before.tobytes(),
            "window": self.window.tobytes(),
            "n_blocks": self.n_blocks,
            "wealth": self._wealth.tobytes(),
            "fit": None if fit is None else [fit.theta.tobytes(), fit.covariance.tobytes(), fit.centre],
            "fit_at": self._fit_at,
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, once_in: float) -> Self:
        """Return the bets that the snapshot was taken of."""
        before, window = (np.frombuffer(snapshot[name]).reshape(3, -1).copy() for name in ("before", "window"))
        bets = cls(before, once_in)
        bets.window, bets.n_blocks = window, snapshot["n_blocks"]
        bets._wealth = np.frombuffer(snapshot["wealth"]).copy()
        if snapshot["fit"] is not None:
            theta, covariance, centre = snapshot["fit"]
            bets._fit = Recalibration(np.frombuffer(theta), np.frombuffer(covariance).reshape(2, 2), centre)
        bets._fit_at = snapshot["fit_at"]
        return bets
