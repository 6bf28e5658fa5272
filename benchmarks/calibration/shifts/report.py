"""The lines about shifts of importance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..verdicts import Row
from .measure import REFERENCE, Null, median, nulls, powers
from .streams import PROMISED, STREAMS

RUNS, POWER_RUNS = 200, 50
_MOST = 0.05
_MOST_DELAY = 2000.0
_LATE = REFERENCE + 10_000
_EARLY = 15_000

POWERS = (
    ("iid", False, 2.0, _LATE, 0),
    ("iid", False, 2.0, _EARLY, 0),
    ("iid", True, 2.0, _LATE, 0),
    ("iid", False, 0.5, _LATE, 0),
    ("iid", False, 1.5, _LATE, 0),
    ("AR(1), rho .9", False, 2.0, _LATE, 0),
    ("t5", False, 2.0, _LATE, 0),
    ("season of 1440", False, 2.0, _LATE, 0),
    ("regimes of 300", False, 2.0, _LATE, 0),
    ("iid", False, 2.0, _LATE, 10_000),
)
"""Stream, whether classes, the factor of the importance, when it begins, and how long it takes."""


def rows(*, quick: bool = False, jobs: int = 1) -> list[Row]:
    """Return all lines; quickly, three of them with two runs each."""
    if quick:
        return [null_row(kind, 2, jobs) for kind in PROMISED[:2]] + [power_row(*POWERS[0], 2, jobs)]
    lines = [null_row(kind, RUNS, jobs) for kind in STREAMS]
    return lines + [power_row(*case, POWER_RUNS, jobs) for case in POWERS]


def null_row(kind: str, runs: int, jobs: int) -> Row:
    """Return the line of streams without a shift."""
    found = nulls(kind, runs, jobs)
    share = float(np.mean([run.n_shifts > 0 for run in found]))
    n_shifts = sum(run.n_shifts for run in found)
    promised = kind in PROMISED
    text = f"{share:.3f} of {runs} ({n_shifts} in all)" + "".join(_of_reference(found))
    to_reach = f"at most {_MOST:.2f}" if promised else "no promise"
    return Row(f"shift told, none there, {kind}", to_reach, text, share <= _MOST if promised else None)


def _of_reference(found: Sequence[Null]) -> Iterator[str]:
    least = [run.least_change for run in found if run.n_reference]
    yield f"; tells {np.median(least):.0%} of the total" if least else "; never ready"
    periods = [run.period for run in found if run.period is not None]
    if len(periods) > len(found) / 10:
        yield f"; period {np.median(periods):.0f} in {len(periods) / len(found):.0%}"


def power_row(kind: str, classes: bool, factor: float, at: int, ramp: int, runs: int, jobs: int) -> Row:
    """Return the line of streams with a shift."""
    found = powers(kind, classes, factor, at, ramp, runs, jobs)
    told = [run for run in found if np.isfinite(run.delay)]
    delay = median([run.delay for run in found])
    what = f"importance x {factor:g}, {kind}, {'classes' if classes else 'numbers'}, after {at}"
    what += f", over {ramp}" if ramp else ""
    text = f"{len(told) / runs:.2f}, delay {delay:.0f}"
    if told:
        right = np.mean([run.right for run in told])
        onset = median([run.onset_error for run in told])
        held = np.mean([run.held for run in told])
        text += f", named {right:.2f}, onset {onset:+.0f}, level held {held:.2f}, early {sum(r.early for r in found)}"
    required = (kind, factor, ramp) == ("iid", 2.0, 0) and not classes
    return Row(
        what, f"median below {_MOST_DELAY:.0f}" if required else "", text, delay < _MOST_DELAY if required else None
    )
