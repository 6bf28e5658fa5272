"""Print what the resident memory of a worker is, by what it holds, and how long its start takes.

    python -m benchmarks.memory    # on a real Apache Kafka: `make kafka` first

The worker has one linear model of nine numbers, explained by iPFI and iSAGE. Another process starts as it does, in
stages, and says what each adds; the rest of the worker's memory is what it needs to run. Memory is in megabytes (10⁶
bytes). `own` is what the process has written and no system can take back; the rest are pages of files, mostly code,
which the system keeps once for all processes and may drop. Linux only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from attributary_agents.demo.brokers import KafkaBroker
from benchmarks.memory.running import Run, Stage, run_stages, run_worker
from benchmarks.process import Resident

BOUND_MB = 200.0
"""What a worker with one small model is to stay below."""

out = Console(width=110)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, measure, print; return 1 where the memory is above the bound."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--observations", type=int, default=20_000, help="that the worker handles; default 20000")
    parser.add_argument("--repeats", type=int, default=3, help="starts, of which medians are shown; default 3")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, KafkaBroker() as broker:
        runs = [
            run_worker(broker.bootstrap, f"memory-{turn}", args.observations, Path(folder))
            for turn in range(args.repeats)
        ]
    middle = sorted(runs, key=lambda run: run.end.total)[len(runs) // 2]
    out.print(breakdown("a worker with one small model", run_stages(), middle))
    total, start = middle.end.total, middle.start.total
    out.print(
        f"MB resident when ready {start:.1f}, after {args.observations:,} observations {total:.1f}, of it its own "
        f"{middle.end.own:.1f}; shared pages in parts (PSS) {middle.end.proportional:.1f}; ready after "
        f"{middle.ready_s:.1f} s, {middle.ready_cpu_s:.1f} s of the processor"
    )
    out.print(f"{'holds' if total <= BOUND_MB else 'MISSED'}: at most {BOUND_MB:.0f} MB resident; it is {total:.0f}")
    return 0 if total <= BOUND_MB else 1


def breakdown(title: str, stages: Sequence[Stage], run: Run) -> Table:
    """Return what each stage of a start adds, and what running adds: the sums are the worker's memory."""
    started = Resident(*(sum(getattr(stage.added, part) for stage in stages) for part in ("own", "files", "shared")))
    running = run.start.less(started)
    table = Table("stage", "own", "files", "together", "processor, s", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for stage in stages:
        table.add_row(stage.name, *_cells(stage.added), f"{stage.cpu_s:.2f}")
    table.add_row(f"event loop, clients, {run.threads} threads, web server", *_cells(running), "")
    table.add_row("the observations", *_cells(run.end.less(run.start)), "", end_section=True)
    table.add_row("the worker", *_cells(run.end), "")
    return table


def _cells(memory: Resident) -> list[str]:
    return [f"{value:+.1f}" for value in (memory.own, memory.files, memory.total)]


if __name__ == "__main__":
    sys.exit(main())
