"""Rates, shares and delays, with their intervals, of the records of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean
from typing import Any

from benchmarks.change.runner import Record
from benchmarks.change.settings import Setting
from benchmarks.change.streams import Stream

LEVEL = 0.95


def wilson(k: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of the probability behind k successes in n trials."""
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    centre, spread = k + z * z / 2.0, z * math.sqrt(k * (n - k) / n + z * z / 4.0)
    # At the ends rounding would leave a trace of the other side.
    return 0.0 if k == 0 else (centre - spread) / (n + z * z), 1.0 if k == n else (centre + spread) / (n + z * z)


def poisson(k: int, level: float = LEVEL) -> tuple[float, float]:
    """Garwood's exact interval of the mean behind a count of k.

    At its ends, k or more and k or fewer events have the probability (1 - level) / 2 each.
    """
    tail = (1.0 - level) / 2.0
    low = 0.0 if k == 0 else _solve(lambda mean: 1.0 - _at_most(k - 1, mean), tail, k)
    return low, _solve(lambda mean: 1.0 - _at_most(k, mean), 1.0 - tail, k)


def quantile(values: Sequence[float], q: float) -> float:
    """Least value that at least the share q of all do not exceed; infinite values are values."""
    return sorted(values)[max(math.ceil(q * len(values)) - 1, 0)] if values else math.nan


def _at_most(k: int, mean: float) -> float:
    if mean <= 0.0:
        return 1.0
    return math.fsum(math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) for i in range(k + 1))


def _solve(increasing: Callable[[float], float], target: float, k: int) -> float:
    """Where the function of the mean reaches the target, by halving."""
    low, high = 0.0, k + 10.0 * math.sqrt(k + 1.0) + 10.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if increasing(middle) < target else (low, middle)
    return (low + high) / 2.0


PER = 100_000
"""Observations that rates are given for."""


def end_of_start(setting: Setting) -> int:
    """Last observation of the start: the first reference and two window lengths, in which a model mostly matures."""
    return 3 * setting.window


def summarise(stream: Stream, setting: Setting, records: Sequence[Record]) -> dict[str, Any]:
    """A cell: one setting on one stream, over all runs."""
    return _false(stream, setting, records) if stream.drift is None else _found(stream, stream.drift.start, records)


def _rate(k: int, n: int) -> dict[str, Any]:
    low, high = poisson(k)
    return {"n": k, "rate": _short(k * PER / n), "low": _short(low * PER / n), "high": _short(high * PER / n)}


def _short(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None


def _false(stream: Stream, setting: Setting, records: Sequence[Record]) -> dict[str, Any]:
    """Everything that is declared on a stream without drift, the start apart."""
    edge = end_of_start(setting)
    later = [[e for e in record.explained if e.n_detected > edge] for record in records]
    counts = {
        "alarms": sum(n > edge for record in records for n in record.alarms),
        "rejected": sum(n > edge for record in records for n in record.rejected),
        "explained": sum(map(len, later)),
    }
    n = len(records) * (stream.n - edge)
    k = sum(map(bool, later))
    low, high = wilson(k, len(records))
    return {
        "runs": len(records),
        "observations": n,
        **{name: _rate(count, n) for name, count in counts.items()},
        "runs_with_explanation": {"n": k, "low": _short(low), "high": _short(high)},
        "start": {
            "alarms": sum(n <= edge for record in records for n in record.alarms),
            "explained": sum(e.n_detected <= edge for record in records for e in record.explained),
        },
    }  # fmt: skip


def _found(stream: Stream, start: int, records: Sequence[Record]) -> dict[str, Any]:
    """Whether and when the drift is explained; a missed one has infinite delays."""
    firsts = [next((e for e in record.explained if e.n > start), None) for record in records]
    # An explanation whose alarm was raised before the drift, by chance, has no delay of the alarm.
    alarm = [math.inf if e is None else float(max(e.n_detected - start, 0)) for e in firsts]
    explanation = [math.inf if e is None else float(e.n - start) for e in firsts]
    k, n = sum(e is not None for e in firsts), len(records)
    low, high = wilson(k, n)
    return {
        "runs": n,
        "found": k,
        "share": _short(k / n),
        "low": _short(low),
        "high": _short(high),
        "alarm": _delay(alarm),
        "explanation": _delay(explanation),
        "by_discrepancy": sum(e is not None and e.route == "discrepancy" for e in firsts),
        "explained_before": sum(e.n <= start for record in records for e in record.explained),
        "explained_after": _short(fmean(sum(e.n > start for e in record.explained) for record in records)),
        "rejected_after": _short(fmean(sum(n > start for n in record.rejected) for record in records)),
    }


def _delay(delays: Sequence[float]) -> dict[str, float | None]:
    return {"median": _short(quantile(delays, 0.5)), "q90": _short(quantile(delays, 0.9))}
