"""Compares how large a process was early with how large it is at last, by medians."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.process import Footprint

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
