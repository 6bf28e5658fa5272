"""A long quiet time, with what happens in one: a steady stream, deployments, a worker that comes and goes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.states import stored_deployments

from benchmarks.chaos.compare.growth import BLOCKS, Slope, slope
from benchmarks.chaos.lab.fleet import Fleet, Member
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.workload import SHORT_DRIFT_AT, observations, raw_config
from benchmarks.chaos.scenarios.kills import deploy
from benchmarks.process import footprint

MINUTES, SHORT_MINUTES = 60.0, 0.6
RATE, SHORT_RATE = 100.0, 60.0
LEVELS = ("INFO", "WARNING", "ERROR", "CRITICAL")
SPOILT = ("ERROR", "CRITICAL")
"""Levels of which a healthy time has no line."""

JUDGED_FROM_MINUTES = 30.0
"""In less than that a slope per hour says nothing: it is printed."""

MOST_PER_HOUR = 0.1
"""Part of its mean by which memory, files or threads may grow in an hour, where they grow for certain."""

_LAG, _STAGE = "attributary_consumer_lag_records", "attributary_stage_duration_seconds"
_LEVEL = re.compile(r"^[\d-]{10} [\d:,.]{8,} (INFO|WARNING|ERROR|CRITICAL) ")


@dataclass
class Series:
    """Samples of all quantities by name, each with its unit; NaN where there is none."""

    seconds: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, second: float, values: dict[str, float]) -> None:
        """Take the values of one moment; the names are always the same."""
        self.seconds.append(second)
        for name, value in values.items():
            self.values.setdefault(name, []).append(value)

    def since(self, second: float) -> Series:
        """Those from that moment on."""
        first = sum(one < second for one in self.seconds)
        return Series(self.seconds[first:], {name: values[first:] for name, values in self.values.items()})


def run(lab: Lab) -> None:
    """An hour (--minutes) of two workers, deployments and rebalances: what grows, how fast, and how surely."""
    minutes = lab.minutes or (SHORT_MINUTES if lab.short else MINUTES)
    rate, drift_at = (SHORT_RATE, SHORT_DRIFT_AT) if minutes <= SHORT_MINUTES else (RATE, 1_500)
    duration_s = 60.0 * minutes
    every_s, n_visits = (0.6, 1) if minutes < 5 else (5.0, max(round(minutes / 3), 2))
    records = observations(int(rate * (duration_s + 600)), lab.seed, drift_at=drift_at)
    with Fleet(lab, raw_config(lab.bootstrap, "soak")) as fleet:
        fleet.start(2)
        sender = fleet.start_sending(records, rate)
        watch = _Watch(lab, fleet)
        afters: dict[tuple[int, int], int] = {}
        period_s = duration_s / n_visits
        began = lab.elapsed_s
        for i in range(n_visits):
            start = began + i * period_s
            watch.until(start + 0.3 * period_s, every_s)
            afters |= _deploy(fleet, i, len(afters))
            watch.until(start + 0.5 * period_s, every_s)
            guest = _come(fleet)
            watch.until(start + 0.75 * period_s, every_s)
            fleet.wait_ready()
            code = guest.stop()
            lab.note(f"a third worker was there, and has left with exit code {code}")
            watch.until(start + period_s, every_s)
        sender.check_going("the end of the soak")
        sender.finish_early()
        lab.note(f"{sender.n_sent} observations in {lab.elapsed_s - began:.0f} s")
        fleet.wait_drained()
        _judge(lab, watch.series.since(began + min(duration_s / 4, 600.0)), minutes)
        fleet.conclude(afters)
        _judge_log(lab, fleet)


def _deploy(fleet: Fleet, i: int, n_before: int) -> dict[tuple[int, int], int]:
    """Deploy; return what is stored of all deployments: the changelog forgets those that no replay needs."""
    deploy(fleet, "credit", str(i + 2))
    found: dict[tuple[int, int], int] = {}

    def is_stored() -> bool:
        found.update(stored_deployments(fleet.config))
        return len(found) > 0 and (n_before == 0 or max(offset for _, offset in found) >= n_before)

    fleet.wait("the deployment is stored", is_stored, 60.0, 0.5)
    return found


def _come(fleet: Fleet) -> Member:
    """Let a third worker join."""
    if len(fleet.members) == 2:
        return fleet.add()
    fleet.members[2].start()
    return fleet.members[2]


class _Watch:
    """Takes samples of the two workers that stay, of the broker and of all logs."""

    def __init__(self, lab: Lab, fleet: Fleet) -> None:
        self.series = Series()
        self._lab = lab
        self._fleet = fleet
        self._checkpoints = 0.0, 0.0
        self._lines: Counter[str] = Counter()
        self._second = lab.elapsed_s
        self._shown = 0.0

    def until(self, second: float, every_s: float) -> None:
        """Take samples up to that second of the scenario."""
        while (left := second - self._lab.elapsed_s) > 0:
            self._fleet.pause(min(every_s, left))
            self._sample()

    def _sample(self) -> None:
        now = self._lab.elapsed_s
        values: dict[str, float] = {}
        n, total_s, lag = 0.0, 0.0, 0.0
        for i, member in enumerate(self._fleet.members[:2]):
            found = footprint(member.worker.pid)
            values |= {
                f"memory of worker {i}, MB": found.rss / 1e6,
                f"open files of worker {i}": float(found.files),
                f"threads of worker {i}": float(found.threads),
            }
            metrics = member.worker.metrics(_LAG, _STAGE)
            lag += sum(metrics.get(_LAG, {}).values())
            n += _of_checkpoints(metrics.get(f"{_STAGE}_count", {}))
            total_s += _of_checkpoints(metrics.get(f"{_STAGE}_sum", {}))
        before_n, before_s = self._checkpoints
        took_ms = 1000 * (total_s - before_s) / (n - before_n) if n > before_n else math.nan
        values["lag of both, records"] = lag
        values["a checkpoint, ms"] = took_ms
        values["changelog on disk, MB"] = self._lab.broker.bytes_on_disk(self._fleet.config.kafka.changelog) / 1e6
        lines = count_lines([member.worker.log for member in self._fleet.members])
        for level in LEVELS[:3]:
            new = lines[level] - self._lines[level]
            values[f"lines at {level} in a minute"] = 60 * new / max(now - self._second, 0.1)
        self._checkpoints, self._lines, self._second = (n, total_s), lines, now
        self.series.add(now, values)
        if now > self._shown + 30:
            self._shown = now
            self._lab.show(", ".join(f"{name} {value:.4g}" for name, value in values.items() if "worker 1" not in name))


def _of_checkpoints(samples: dict[tuple[tuple[str, str], ...], float]) -> float:
    return sum(value for labels, value in samples.items() if dict(labels)["stage"] == "checkpoint")


def count_lines(logs: Sequence[Path]) -> Counter[str]:
    """Return how many lines of each level the logs have."""
    found: Counter[str] = Counter()
    for log in logs:
        with log.open(errors="replace") as lines:
            found.update(match[1] for line in lines if (match := _LEVEL.match(line)))
    return found


def _judge(lab: Lab, series: Series, minutes: float) -> None:
    """Say the slope of all; memory, files and threads must not grow for certain, and by much."""
    slopes = {name: slope(series.seconds, values) for name, values in series.values.items()}
    lab.note(f"means, and slopes an hour with their standard errors, over {BLOCKS} blocks without the warm-up:")
    for name, found in slopes.items():
        lab.note(f"  {name}: {said(found)}")
    growing = [name for name, found in slopes.items() if found.grows]
    lab.note(f"grows for certain: {', '.join(growing) or 'nothing'}")
    judged = [name for name in growing if name.startswith(("memory", "open files", "threads"))]
    faults = [f"{name} {said(slopes[name])}" for name in judged if slopes[name].share_per_hour > MOST_PER_HOUR]
    if minutes >= JUDGED_FROM_MINUTES:
        lab.check("memory, files and threads do not grow", not faults, "; ".join(faults) or "by less than 10 % an hour")
    lab.check("there is enough to see slopes", all(len(v) >= BLOCKS for v in series.values.values()), "by samples")


def said(found: Slope) -> str:
    """A slope in words."""
    return f"mean {found.mean:.4g}, {found.per_hour:+.3g} ± {found.error:.2g} an hour"


def _judge_log(lab: Lab, fleet: Fleet) -> None:
    logs = [member.worker.log for member in fleet.members]
    lines = count_lines(logs)
    faults = [
        line.strip()[:300]
        for log in logs
        for line in log.read_text(errors="replace").splitlines()
        if (match := _LEVEL.match(line)) and match[1] in SPOILT
    ]
    counted = ", ".join(f"{lines[level]} at {level}" for level in LEVELS)
    lab.check("no line at ERROR", not faults, "; ".join([counted, *faults[:3]]))
