"""How soon the first word comes, how well it says since when, and whether it is told that all is well again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from statistics import median
from typing import NamedTuple

import numpy as np

from attributary_explainers import LossMonitor, LossShift
from benchmarks.harm.feeding import CHANGE_AT, Map, Row, Shift, feed, nothing, of_two
from benchmarks.harm.worlds import damages as d
from benchmarks.harm.worlds.kinds import KINDS, Make, clean, flipped, measured, served
from benchmarks.harm.worlds.subjects import SUBJECTS, subject

GOALS = {"35 % of labels flipped": "≤ 200", "noise, AUC down by .05": "≤ 1 000", "noise, AUC down by .03": "≤ 5 000"}
ABRUPT = (
    "35 % of labels flipped",
    "15 % of labels flipped",
    "best column permuted",
    "second and fifth column swapped",
    "second column in another unit",
    "positives 1.5 times as frequent",
)
DAMAGED = 8000
"""Rows until the damage is mended."""


@lru_cache
def noise_for(model: str, drop: float) -> float:
    """Standard deviations of an error of the three best columns that costs so much AUC of the population."""
    s = subject(model)
    best = measured(s, clean).auc
    low, high = 0.0, 4.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if best - measured(s, _noisy(middle)).auc < drop else (low, middle)
    return (low + high) / 2


def _noisy(size: float) -> Make:
    return served(d.noise(size), 1, 2, 3)


def _make(model: str, what: str) -> Make:
    if what == "35 % of labels flipped":
        return flipped(0.35)
    return KINDS[what].make if what in KINDS else _noisy(noise_for(model, float(what.rpartition(" ")[2])))


def run_word(model: str, what: str, seed: int) -> float:
    """Rows from the change to the first word; infinite where none came within 20 000."""
    s = subject(model)
    rng = np.random.default_rng([75, seed, list(GOALS).index(what), SUBJECTS.index(model)])
    at = CHANGE_AT + int(rng.integers(0, 1000))
    before, after = clean(s, rng, at), _make(model, what)(s, rng, CHANGE_AT)
    p, y = s.predict(np.vstack((before.x, after.x))), np.r_[before.y, after.y]
    told = feed(LossMonitor(learns=False, seed=seed), nothing(len(y)), y.tolist(), of_two(p), lambda e: _after(e, at))
    return told.after(at)[0].observation - at if told.after(at) else math.inf


def _after(event: object, at: int) -> bool:
    return isinstance(event, LossShift) and event.observation > at


def first_words(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """Median delays."""
    runs = 20 if full else 4
    for what, goal in GOALS.items():
        arguments = [(model, what, seed) for model in SUBJECTS for seed in range(1, 1 + runs)]
        delays: list[float] = of(run_word, arguments)
        each = "; ".join(f"{model} {median(delays[i * runs : (i + 1) * runs]):.0f}" for i, model in enumerate(SUBJECTS))
        yield Row(
            f"first word, {what}, {len(delays)} trials: rows, median",
            f"{median(delays):.0f} ({each}; told {sum(map(math.isfinite, delays)) / len(delays):.2f})",
            goal,
        )
        lines.append(f"{what}: {sorted(delays)}")


class Mended(NamedTuple):
    """What was told of damage that is mended after 8000 rows."""

    what: str
    model: str
    at: int
    mended: int
    shifts: tuple[Shift, ...]

    @property
    def over(self) -> bool:
        """Whether the damage was told, lasted as told, and was told as over after the repair."""
        open_then = [s for s in self.shifts if s.observation <= self.mended and (s.ended or math.inf) > self.mended]
        return bool(open_then) and open_then[-1].reason == "returned"

    @property
    def too_early(self) -> bool:
        """Whether a shift was told as over while the damage lasted."""
        return any(s.ended is not None and s.ended <= self.mended for s in self.shifts)


def run_mended(model: str, what: str, seed: int) -> Mended:
    """Clean, damaged for 8000 rows, and 20 000 clean rows."""
    s = subject(model)
    rng = np.random.default_rng([76, seed, ABRUPT.index(what), SUBJECTS.index(model)])
    at = CHANGE_AT + int(rng.integers(0, 1000))
    parts = clean(s, rng, at), _make(model, what)(s, rng, DAMAGED), clean(s, rng, CHANGE_AT)
    p, y = s.predict(np.vstack([part.x for part in parts])), np.concatenate([part.y for part in parts])
    told = feed(LossMonitor(learns=False, seed=seed), nothing(len(y)), y.tolist(), of_two(p))
    return Mended(what, model, at, at + DAMAGED, tuple(told.after(at)))


def ends(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """Errors of the onset, and what became of the shift after the repair."""
    runs = 5 if full else 1
    arguments = [(model, what, seed) for model in SUBJECTS for what in ABRUPT for seed in range(1, 1 + runs)]
    found: list[Mended] = of(run_mended, arguments)
    soon = [(f, f.shifts[0]) for f in found if f.shifts and f.shifts[0].observation <= f.at + 1000]
    errors = [abs(shift.onset[0] - (f.at + 1)) for f, shift in soon]
    inside = sum(shift.onset[1] <= f.at + 1 <= shift.onset[2] for f, shift in soon)
    yield Row(
        f"onset of an abrupt harm told within 1 000 rows ({len(soon)} of {len(found)}): off by, median",
        f"{median(errors):.0f} (within its interval {inside / len(soon):.2f})" if soon else "none",
        "≤ 150",
    )
    told = [f for f in found if any(s.observation <= f.mended for s in f.shifts)]
    share = sum(f.over for f in told) / max(len(told), 1)
    yield Row(
        f"told as over within 20 000 rows of the repair ({len(told)} told of {len(found)})",
        f"{share:.2f} (a shift ended before the repair in {sum(f.too_early for f in told)})",
        "≥ .9",
    )
    for f in found:
        lines.append(
            f"{f.model:8} {f.what:34} "
            + "; ".join(
                f"{s.final} +{s.observation - f.at}, onset off {s.onset[0] - f.at - 1:+d}"
                + (f", {s.reason} {s.ended - f.mended:+d} of the repair" if s.ended else ", open")
                for s in f.shifts
            )
        )
