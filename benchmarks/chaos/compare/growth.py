"""Does it grow? Slopes with their standard errors, and sizes early and at last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.stats import t

from benchmarks.chaos.lab.lab import Lab
from benchmarks.process import Footprint

BLOCKS = 12
"""Neighbouring samples depend on each other, and would make the error far too small; means of long blocks hardly do."""

LEVEL = 0.001
"""Share of quantities that do not grow and are called growing all the same: some twenty are looked at."""


@dataclass(frozen=True)
class Slope:
    """How a quantity changes with time.

    Attributes
    ----------
    mean
        Of the quantity.
    per_hour
        Change in an hour, in the quantity's unit.
    error
        Standard error of that; NaN with fewer than three blocks.
    grows
        Whether it is above 0 by more than chance makes it in one of a thousand.
    """

    mean: float
    per_hour: float
    error: float
    grows: bool

    @property
    def share_per_hour(self) -> float:
        """The slope in parts of the mean; infinite or NaN where that is 0."""
        return self.per_hour / self.mean if self.mean else math.copysign(math.inf, self.per_hour)


def slope(seconds: Sequence[float], values: Sequence[float], blocks: int = BLOCKS) -> Slope:
    """Return the slope over samples; those that are NaN are left out.

    Parameters
    ----------
    seconds
        When each sample was taken.
    blocks
        Of equal duration; those without a sample do not count.
    """
    x, y = np.asarray(seconds, float), np.asarray(values, float)
    known = ~np.isnan(y)
    x, y = x[known] / 3600, y[known]
    if not len(x):
        return Slope(math.nan, math.nan, math.nan, False)
    length = (x[-1] - x[0]) / blocks or 1.0
    number = np.minimum((x - x[0]) // length, blocks - 1)
    means = np.array([(x[number == i].mean(), y[number == i].mean()) for i in np.unique(number)])
    n, (hours, levels) = len(means), means.T
    spread = ((hours - hours.mean()) ** 2).sum()
    if n < 2:
        return Slope(float(y.mean()), math.nan, math.nan, False)
    per_hour = float(((hours - hours.mean()) * (levels - levels.mean())).sum() / spread)
    if n < 3:
        return Slope(float(y.mean()), per_hour, math.nan, False)
    left = levels - levels.mean() - per_hour * (hours - hours.mean())
    error = math.sqrt(float((left**2).sum()) / (n - 2) / spread)
    return Slope(float(y.mean()), per_hour, error, per_hour > float(t.ppf(1 - LEVEL, n - 2)) * error)


MOST_GROWTH = 0.1
"""Part of its size by which the memory of a process may grow."""


def check_growth(
    lab: Lab, early: Sequence[Footprint], last: Sequence[Footprint], when: tuple[str, str], *, files: int
) -> None:
    """Check that memory has not grown much, and that open files are as many as they were, within so many.

    Parameters
    ----------
    when
        When the early ones were seen, and the last ones, in words.
    """
    before, after = (median(seen.rss for seen in part) for part in (early, last))
    said = f"{before / 1e6:.1f} MB {when[0]}, {after / 1e6:.1f} MB {when[1]}: {after / before - 1:+.1%}"
    lab.check("RSS grows by less than 10 %", after < (1 + MOST_GROWTH) * before, said)
    before, after = (median(seen.files for seen in part) for part in (early, last))
    lab.check(f"open files stay within {files}", abs(after - before) <= files, f"{before:.0f} to {after:.0f}")
