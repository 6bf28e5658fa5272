"""Watches whether a binary outcome still comes as often as predicted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..change.verdicts import Onset
from ..core.reliability import N_BOOKS, P_LEAST, Block
from ..snapshots import Stored
from ..typing import Array, Snapshot
from .guard import least_rise
from .law import DIRECTIONS, ROWS, SEEN, SHARES, Comparison, Recalibration, logit

_SLOPES = (-0.12, -0.25, -0.5, -0.8)
_LEVELS = (0.25, 0.5, 1.0, -0.25, -0.5, -1.0)
GRID: Array = np.array([*((a, 0.0) for a in _SLOPES), *((0.0, b) for b in _LEVELS), (-0.3, 0.4), (-0.3, -0.4)])
"""Moves of slope and level that are bet on."""
_SLACK = 2.0
"""Standard errors of the reference that each bet pays for not knowing it."""
_RICHEST = 1e100
_UNTESTED = 4
"""Blocks that are reference without a test."""


class Bets(Stored):
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
        if n <= _UNTESTED:
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


N_BINS = 12
N_SCALES = 11
LEAST_EVENTS = 30
"""Positives, and negatives, without which nothing is judged."""
N_FIRST = 256
"""Rows whose predictions choose the bins."""
_OVERLAP = 4
_INFORMATION = 2.0
"""Sum of p (1 - p) that a block has."""
_ROWS, _EARLY = 64, 8192
"""Rows that a block has at least, twice as many after so many rows in all; the first one has `N_FIRST`."""
_LONGEST, _LONG_ROWS = 8, 2048
"""A block ends after so many times the usual rows, whatever its information, or after so many rows if that is later."""
_FLOOD = 16.0
"""Sum of |y - p| that ends a block, times what came of it before for each that was to be expected."""
_MOST_BEFORE = 8
"""A window is at most so many times as long as what it is compared with."""
_CONFIRMED = 3.0
"""Standard errors by which a window has to be off for a word of the bets."""


@dataclass(frozen=True, slots=True)
class Sums(Stored):
    """Sums over rows: a reliability table, and the route's books.

    The table has the shape (3, bins); the route keeps `books` beside it.
    """

    table: Array
    books: Array

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.table + other.table, self.books + other.books)

    def __sub__(self, earlier: Sums) -> Sums:
        return Sums(self.table - earlier.table, self.books - earlier.books)

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.table[ROWS].sum())


NOTHING = Sums(np.zeros((3, N_BINS)), np.zeros(N_BOOKS))


@dataclass(frozen=True, slots=True)
class Mark(Stored):
    """The sums at the end of a block, and the number of its last observation.

    `spread` has sums of z^2 over the disjoint windows of each scale so far, of slope and of level, shape (scales, 2):
    seven digits of it are enough.
    """

    number: int
    sums: Sums
    spread: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros((N_SCALES, 2), dtype=np.float32))


@dataclass(frozen=True, slots=True)
class Passed:
    """A passed test: the window is off in a direction, a weight for each bin."""

    before: Sums
    window: Sums
    n_blocks: int
    direction: Array
    name: str
    slope: float


class ReliabilityTables(Stored):
    """Comparison of the last 1, 2, 4 ... 1024 blocks with all rows before.

    A window is compared as often as a quarter of it has come. If the model is as it was, the window's positives, given
    those of window and before, follow a known law (`law`), whatever the calibration was and at any base rate. A test
    passes if its P is at most

        (rows since the scale's last test) / (11 * once_in) * share of the direction,

    so the expected number of false ones in N rows is at most N / `once_in`, however the tests depend on each other.
    Half of the promise is for `Bets` on the same sums, which find more while there is little to compare with.
    A block ends when it has information enough, the sum of p (1 - p), not after a number of rows. `-log P` is
    divided by how much earlier windows varied beyond the law, where they surely did: a calibration that drifts slowly.

    Parameters
    ----------
    edges
        Logits between bins.
    once_in
        Rows in which one false test is allowed.
    only
        Directions that are looked for.
    """

    _unstored = ("block",)

    def __init__(self, edges: Array, once_in: float, only: Sequence[str] = DIRECTIONS) -> None:
        self.edges, self.once_in, self.only = edges, once_in, tuple(only)
        shares = np.where([name in only for name in DIRECTIONS], SHARES, 0.0)
        self._shares = shares / shares.sum()
        self._seen = np.zeros(N_SCALES)
        """Rows since the last test of each scale."""
        self.n_rows = 0
        self.block = Block(edges)
        """The open block: the route books each row there, and adds those in which the outcome came or not."""
        self.restart(NOTHING, 0, 0)

    def restart(self, reference: Sums, n_blocks: int, number: int) -> None:
        """Restart with this reference, with which later rows are compared."""
        self.n, self.number = n_blocks, number
        self.now = reference
        self.marks = {n_blocks: Mark(number, reference)} if n_blocks else {}
        self._spread = np.zeros((N_SCALES, 2))
        self._slope, self._fit_at = 1.0, 0.0
        self._bets = Bets(reference.table, self.once_in * 2.0)
        self._arm()

    def _arm(self) -> None:
        positives = self.now.table[SEEN].sum()
        enough = min(positives, self.now.table[ROWS].sum() - positives) >= LEAST_EVENTS
        self.is_armed = bool(self.n >= 1 and enough)
        """Whether there is enough to compare a block with."""
        least_rows = N_FIRST if not self.n_rows else _ROWS if self.n_rows < _EARLY else 2 * _ROWS
        most_rows = flood = math.inf
        if self.n:
            rows, expected, seen = self.now.table
            p = expected / np.maximum(rows, 1.0)
            usual = float(
                (seen * (1.0 - p) + (rows - seen) * p).sum() / max((2.0 * rows * p * (1.0 - p)).sum(), P_LEAST)
            )
            most_rows = max(_LONG_ROWS, _LONGEST * float(rows.sum()) / self.n)
            flood = _FLOOD * max(1.0, usual)
        # The block ends with the last event that is lacking.
        lacks = None if self.is_armed else [LEAST_EVENTS - n for n in self.n_events]
        self.block.end_at(_INFORMATION, least_rows, most_rows, flood, lacks)

    @property
    def n_events(self) -> tuple[int, int]:
        """Positives and negatives so far."""
        rows, _, seen = (self.now.table + self.block.table).sum(axis=1)
        return int(seen), int(rows - seen)

    @property
    def n_errors(self) -> int:
        """Outcomes that were predicted with less than a half."""
        rows, expected, seen = self.now.table
        return int(np.where(expected > 0.5 * rows, rows - seen, seen).sum())

    def least_share(self, share: float, n_rows: int) -> float:
        """Return the least share at which `n_rows` rows show a rise.

        By a normal law; `share` is that of so far.
        """
        level = n_rows / _OVERLAP / (2.0 * self.once_in) / N_SCALES * float(self._shares.max())
        return least_rise(share, share * (1.0 - share), n_rows, self.now.n, -float(ndtri(level)))

    def close_block(self) -> Sums:
        """Take the open block into the sums; return it."""
        block = Sums(self.block.table, self.block.books)
        self.block.empty()
        self.now, self.n = self.now + block, self.n + 1
        self.n_rows += block.n
        self._arm()
        return block

    def end_block(self, number: int) -> Passed | None:
        """Close the block, full at this observation; return the test passed."""
        block = self.close_block()
        self.number = number
        self._seen += block.n
        passed = self._ask()
        if self._bets.update(block.table, self.n) and passed is None and self.is_armed:
            passed = self._of_bets()
        if passed is None:
            self.marks[self.n] = Mark(number, self.now, self._spread.astype(np.float32))
            for n in [n for n in self.marks if self.n - n > _OVERLAP * min(n & -n, 256)]:
                del self.marks[n]
        return passed

    def _ask(self) -> Passed | None:
        due: list[tuple[int, Mark, int]] = []
        for j in range(N_SCALES):
            if self.n % max(1, 2**j // _OVERLAP):
                break
            start = self.n - 2**j
            if start in self.marks and 2**j <= _MOST_BEFORE * start:
                due.append((j, self.marks[start], start))
        if not self.is_armed:
            self._seen[:] = 0.0  # what was not watched is no allowance for later
            return None
        if not due:
            return None
        before = np.array([mark.sums.table for _, mark, _ in due])
        if self.n >= self._fit_at:
            self._slope, self._fit_at = float(Recalibration.of(before[0]).theta[0]), 1.1 * self.n
        compared = Comparison.of(self.now.table - before, before, self._slope)
        directions = compared.directions()
        z = np.array([compared.z(direction) for direction in directions])
        for i, (j, mark, start) in enumerate(due):
            needed = self._needed(j)
            self._seen[j] = 0.0
            if self.n % 2**j == 0:
                self._spread[j] += z[0, i] ** 2, z[3, i] ** 2
            # The tail is asked for where z is more than .6 of what a normal law would need.
            near = np.flatnonzero(z[:, i] > 0.6 * np.sqrt(2.0 * np.maximum(needed - 2.5, 1.0)))
            dispersion = self._dispersion(j, mark, start) if len(near) else np.ones(len(DIRECTIONS))
            for d in near.tolist():
                if compared[i].strength(directions[d, i]) / dispersion[d] >= needed[d]:
                    window = self.now - mark.sums
                    return Passed(mark.sums, window, 2**j, directions[d, i], DIRECTIONS[d], self._slope)
        return None

    def _needed(self, j: int) -> Array:
        """Return the -log P at which each direction of a scale passes now."""
        level = self._seen[j] / (2.0 * self.once_in) / N_SCALES * self._shares
        return np.where(level > 0.0, -np.log(np.clip(level, 1e-300, 0.2)), np.inf)

    def _dispersion(self, j: int, mark: Mark, start: int) -> Array:
        """Return the windows' excess variation over the law, by direction.

        The windows are of all scales up to `j`.
        """
        n = np.maximum(start // 2 ** np.arange(j + 1) - 1, 0)[:, None]
        mean = mark.spread[: j + 1] / np.maximum(n, 1)
        is_sure = (n >= 8) & (mean > 1.0 + 2.5 * np.sqrt(2.0 / np.maximum(n, 1)))
        slope, level = np.where(is_sure, mean, 1.0).max(axis=0).tolist()
        return np.array([slope, max(slope, level), max(slope, level), level, level])

    def _of_bets(self) -> Passed | None:
        """Return the bets' finding if the law confirms it, else None."""
        window, before, n_blocks = self._bets.window, self._bets.before, self._bets.n_blocks
        compared = Comparison.of(window, before, self._slope)
        directions = compared.directions()
        z = [
            float(compared.z(direction)) if name in self.only else 0.0
            for direction, name in zip(directions, DIRECTIONS, strict=True)
        ]
        best = int(np.argmax(z))
        if z[best] < _CONFIRMED:  # their null has two parameters; a calibration that is bent otherwise may refute it
            self._bets.forgive()
            return None
        start = max((n for n in self.marks if n <= self.n - n_blocks), default=min(self.marks, default=0))
        books = self.marks[start].sums.books if start in self.marks else NOTHING.books
        sums = Sums(before, books), Sums(window, self.now.books - books)
        return Passed(*sums, n_blocks, directions[best], DIRECTIONS[best], self._slope)

    def latest(self, n_blocks: int) -> Sums:
        """Return the sums of the latest `n_blocks` or more, as far as known."""
        n = max((n for n in self.marks if self.n - n >= n_blocks), default=None)
        return self.now if n is None else self.now - self.marks[n].sums

    def split(self, n_rows: int) -> tuple[Sums, Sums]:
        """Return the sums of before, and of the latest `n_rows` or more."""
        for n in sorted(self.marks, reverse=True):
            before = self.marks[n].sums
            if self.now.n - before.n >= n_rows:
                return before, self.now - before
        return NOTHING, self.now

    def onset(self, passed: Passed) -> tuple[Passed, Onset | None]:
        """Return the test with its window begun at the onset, and the onset.

        The onset is None if it is unknown. Of the marks it is the one from which on the window is off most clearly in
        the direction of the test; low and high are the marks next to those that are as likely, to 2 in the logarithm.
        """
        numbers = [n for n in sorted(self.marks) if 0 < n < self.n]
        marks = [self.marks[n] for n in numbers]
        if len(marks) < 2:
            return passed, None
        ends = [*(mark.number for mark in marks[1:]), self.number]
        before = np.array([mark.sums.table for mark in marks])
        z = np.maximum(Comparison.of(self.now.table - before, before, passed.slope).z(passed.direction), 0.0)
        likely = np.flatnonzero(0.5 * z * z >= 0.5 * z.max() ** 2 - 2.0)
        low = None if likely[0] == 0 else marks[int(likely[0]) - 1].number + 1
        best = int(z.argmax())
        sums, n_blocks = marks[best].sums, self.n - numbers[best]
        sharpened = replace(passed, before=sums, window=self.now - sums, n_blocks=n_blocks)
        return sharpened, Onset(marks[best].number + 1, low, ends[int(likely[-1])])

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {**super().snapshot(), "block": self.block.snapshot()}

    def _complete(self) -> None:
        stored: Any = self.block
        self.block = Block(self.edges)
        self.block.restore(stored)
        self._arm()


def edges_of(p: Array) -> Array:
    """Return logits between bins of like shares of rows and of information.

    The shape is (bins - 1,).

    Parameters
    ----------
    p
        Predictions of the first rows.
    """
    p = np.clip(p, P_LEAST, 1.0 - P_LEAST)
    x = logit(p)
    order = np.argsort(x, kind="stable")
    information = (p * (1.0 - p))[order]
    share = np.cumsum(information / information.sum() + 1.0 / len(p)) / 2.0
    places = np.searchsorted(share, np.arange(1, N_BINS) / N_BINS)
    return np.asarray(x[order][np.minimum(places, len(p) - 1)])
