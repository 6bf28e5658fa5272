"""Simulates 1000 partitions on 100 workers, some of which are killed, leave and join: what waits, and for how long.

    python -m benchmarks.scale simulate
    python -m benchmarks.scale simulate --load 0.8 --workers 50 --service-us 100
    python -m benchmarks.scale simulate --check      # one worker beside the closed forms of M/D/1 and M/M/1

`attributary plan --simulate` plays the same with a configuration's own figures.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from attributary_agents.planning.fleet import Fleet, Scenario
from attributary_agents.planning.queueing import mean_wait
from attributary_agents.planning.report import simulation_lines
from attributary_agents.planning.scenarios import large_fleet

out = Console(width=120)

LOADS = (0.3, 0.6, 0.8, 0.9)


def simulated_wait(load: float, cv2: float, seconds: float, seed: int = 1) -> float:
    """Return the mean wait of records before one worker with one partition, whose mean service is 1 s, in seconds."""
    fleet = Fleet(Scenario(1, 1, load, 1.0, cv2, seconds, checkpoint_s=math.inf, sample_s=seconds, seed=seed))
    list(fleet.play())
    total, n = fleet.first_waits
    return total / n


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale simulate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--partitions", type=int, default=1000, help="default 1000")
    parser.add_argument("--workers", type=int, default=100, help="default 100")
    parser.add_argument("--load", type=float, default=0.6, help="part of all workers' time that records take (0.6)")
    parser.add_argument("--service-us", type=float, default=200.0, help="microseconds of a record (default 200)")
    parser.add_argument("--seconds", type=float, default=360.0, help="simulated (default 360)")
    parser.add_argument("--check", action="store_true", help="compare one worker with closed forms")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the samples as JSON")
    args = parser.parse_args(argv)
    if args.check:
        table = Table("load", "M/D/1", "simulated", "M/M/1", "simulated", title="mean wait, in services")
        for load in LOADS:
            cells = [[mean_wait(load, 1.0, cv2), simulated_wait(load, cv2, 200_000.0)] for cv2 in (0.0, 1.0)]
            table.add_row(f"{load:.0%}", *(f"{one:.3f}" for pair in cells for one in pair))
        out.print(table)
        return 0
    scenario = large_fleet(args.partitions, args.workers, args.load, 1e-6 * args.service_us, args.seconds)
    began, samples = time.perf_counter(), []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("simulating", total=scenario.seconds)
        for sample in Fleet(scenario).play():
            samples.append(sample)
            progress.update(task, completed=sample.at_s)
    head, *rows = simulation_lines(samples, 40)
    table = Table(
        *head,
        title=f"{args.partitions} partitions, {args.workers} workers, {scenario.rate:,.0f} records/s, "
        f"packets of {scenario.packet} records",
    )
    for row in rows:
        table.add_row(*row)
    out.print(table)
    for change in scenario.changes:
        out.print(f"{change.at_s:6.0f} s: worker {change.worker}: {change.kind}", highlight=False)
    out.print(
        f"{samples[-1].produced:,} records in {time.perf_counter() - began:.0f} s; produced = handled + waiting held"
    )
    if args.json is not None:
        args.json.write_text(json.dumps([asdict(one) for one in samples], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
