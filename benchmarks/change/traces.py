"""The discrepancy of held-out rows beside that of learnt ones and the exact value, at every stage of a drift."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from attributary_explainers.change.discrepancy import as_distance
from attributary_explainers.change.heldout import HeldOut, Row
from attributary_explainers.losses.losses import as_loss
from benchmarks.change.runner import seed_of
from benchmarks.change.settings import WINDOW, WINDOWS
from benchmarks.change.shared import Frozen, SharedModel
from benchmarks.change.shared import Row as Features
from benchmarks.change.statistics import quantile
from benchmarks.change.streams import Drift, Stream

REFERENCE = 2000
"""Observation after which the reference is taken: the model is mature, and no drift has begun."""

STEP = 50
"""Observations from one comparison to the next, twice as many for a slow model."""


N_FRESH = 1000
"""Rows of the exact value; their standard error is at most 0.016."""

WINDOWED = "windowed"
ESTIMATES = (*(f"incremental K={window}" for window in WINDOWS), f"{WINDOWED} K={WINDOW}")


def step_of(stream: Stream) -> int:
    """Observations from one comparison to the next, for this stream."""
    return 2 * STEP if stream.slow_model else STEP


@dataclass
class Trace:
    """Values of one run at the observations `n`; those of `ESTIMATES`, and `exact`."""

    n: list[int]
    values: dict[str, list[float]]


def trace(stream: Stream, index: int) -> Trace:
    """One run: the reference is taken once and kept, so that all estimates are of the same two models."""
    seed = seed_of(index)
    shared = SharedModel(stream.model(seed), stream.rows(N_FRESH, 2_000_000 + seed))
    held = [HeldOut(k, as_loss("zero_one"), as_distance("label"), relative=False, batch_size=None) for k in WINDOWS]
    recent: deque[Features] = deque(maxlen=WINDOW)
    state, data = None, list[Features]()
    found = Trace([], {name: [] for name in (*ESTIMATES, "exact")})
    for n, (x, y) in enumerate(stream.observations(seed), start=1):
        y_pred = shared.predict_proba_one(x)
        shared.learn_one(x, y)
        recent.append(x)
        for of in held:
            of.add(Row(n, dict(x), y, y_pred, False, as_loss("zero_one")(y, y_pred)))
        if n == REFERENCE:
            state, data = shared.frozen(), list(recent)
            for of in held:
                of.compare_with(state)
        elif state is not None and n % step_of(stream) == 0:
            found.n.append(n)
            estimates = [of.discrepancy(of.rows) for of in held]
            estimates.append(windowed(state, shared, [*data, *recent]))
            for name, value in zip(ESTIMATES, estimates, strict=True):
                found.values[name].append(value)
            found.values["exact"].append(shared.distance_from(state))
    return found


def windowed(reference: Frozen, current: SharedModel, rows: Sequence[Features]) -> float:
    """Share of the rows that two models label differently (Change, equation 4)."""
    return fmean(reference.predict_one(x) != current.predict_one(x) for x in rows)


def moments(drift: Drift, n: int) -> dict[str, int]:
    """Observations at which the estimates are compared, by what they are; a sudden drift has no middle."""
    end = drift.start + drift.length
    found = {"before": drift.start}
    if drift.length:
        found |= {"quarter": drift.start + drift.length // 4, "middle": drift.start + drift.length // 2, "end": end}
    return found | {"end + 100": end + 100, "end + 300": end + 300, "end + 1000": end + 1000, "last": n}


def crossing(n: Sequence[int], values: Sequence[float], level: float, start: int) -> float:
    """Observations from the start until the values reach the level, linear between two of them; infinite if never."""
    before: tuple[int, float] | None = None
    for at, value in zip(n, values, strict=True):
        if at >= start:
            if value >= level:
                if before is None or value == before[1]:
                    return float(at - start)
                return before[0] + (at - before[0]) * (level - before[1]) / (value - before[1]) - start
            before = at, value
    return math.inf


def compare(stream: Stream, traces: Sequence[Trace]) -> dict[str, Any]:
    """Per moment the mean exact value and each estimate's bias and root mean squared error; delays to the new level."""
    assert stream.drift is not None
    start = stream.drift.start
    at: dict[str, Any] = {}
    for name, n in moments(stream.drift, stream.n).items():
        i = traces[0].n.index(n)
        exact = [t.values["exact"][i] for t in traces]
        at[name] = {"n": n, "exact": round(fmean(exact), 4)}
        for estimate in ESTIMATES:
            errors = [t.values[estimate][i] - e for t, e in zip(traces, exact, strict=True)]
            at[name][estimate] = {
                "bias": round(fmean(errors), 4),
                "rmse": round(math.sqrt(fmean(error * error for error in errors)), 4),
            }
    levels = [_new_level(t, stream.n) for t in traces]
    delays: dict[str, Any] = {}
    for estimate in ("exact", *ESTIMATES):
        delays[estimate] = {}
        for share in (0.5, 0.9):
            found = [
                crossing(t.n, t.values[estimate], share * level, start) for t, level in zip(traces, levels, strict=True)
            ]
            delays[estimate][f"{share:g}"] = _finite(quantile(found, 0.5))
    return {"runs": len(traces), "level": round(fmean(levels), 4), "moments": at, "delays": delays}


def _new_level(found: Trace, n: int) -> float:
    """Mean exact value of the last 500 observations."""
    return fmean(v for at, v in zip(found.n, found.values["exact"], strict=True) if at > n - 500)


def _finite(value: float) -> float | None:
    return round(value, 1) if math.isfinite(value) else None
