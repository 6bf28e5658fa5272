"""Print what the resident memory of a worker is, by what it holds, and how long its start takes.

    python -m benchmarks.memory                             # on a real Apache Kafka: `make kafka` first
    python -m benchmarks.memory --beside /path/to/checkout  # with ratios to another checkout, in turns

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
from statistics import median

from rich.console import Console
from rich.table import Table

from attributary_agents.demo.brokers import KafkaBroker
from benchmarks.memory.resident import Resident
from benchmarks.memory.running import Run, Stage, run_stages, run_worker

HERE = Path(__file__).resolve().parents[2]
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
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="measure its worker as well, in turns")
    args = parser.parse_args(argv)
    checkouts = {"now": HERE} if args.beside is None else {"beside": args.beside.resolve(), "now": HERE}
    runs: dict[str, list[Run]] = {name: [] for name in checkouts}
    with tempfile.TemporaryDirectory() as folder, KafkaBroker() as broker:
        for turn in range(args.repeats):
            for name, checkout in checkouts.items():
                topic = f"memory-{name}-{turn}"
                runs[name].append(run_worker(checkout, broker.bootstrap, topic, args.observations, Path(folder)))
    for name, checkout in checkouts.items():
        out.print(breakdown(f"{name}: where it is", run_stages(checkout), _middle(runs[name])))
    out.print(summary(runs, args.observations))
    total = _middle(runs["now"]).end.total
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


def summary(runs: dict[str, list[Run]], n: int) -> Table:
    """Return the figures of each checkout's worker, with ratios where there are two."""
    figures = {
        "MB resident (RSS), when ready": lambda run: run.start.total,
        f"MB resident (RSS), after {n:,} observations": lambda run: run.end.total,
        "of it its own (private, anonymous)": lambda run: run.end.own,
        "MB resident, shared pages in parts (PSS)": lambda run: run.end.proportional,
        "seconds until ready": lambda run: run.ready_s,
        "processor seconds until ready": lambda run: run.ready_cpu_s,
    }
    table = Table("", *runs, *(["ratio"] if len(runs) > 1 else []), title="a worker with one small model")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, figure in figures.items():
        values = [median(map(figure, of)) for of in runs.values()]
        ratio = [f"{values[-1] / values[0]:.2f}"] if len(values) > 1 and values[0] else [""] * (len(values) - 1)
        table.add_row(name, *(f"{value:.1f}" for value in values), *ratio)
    return table


def _middle(runs: Sequence[Run]) -> Run:
    """Return the run with the middle memory at its end."""
    return sorted(runs, key=lambda run: run.end.total)[len(runs) // 2]


def _cells(memory: Resident) -> list[str]:
    return [f"{value:+.1f}" for value in (memory.own, memory.files, memory.total)]


if __name__ == "__main__":
    sys.exit(main())
