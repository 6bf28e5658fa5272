"""Every table and figure of the papers, run again and held against its band.

    python -m benchmarks.papers                      # short: minutes
    python -m benchmarks.papers --full               # the papers' repetitions: hours
    python -m benchmarks.papers --only change ipfi-d # rows by the beginning of their names

Writes results.csv and runs.csv. The exit code is 1 when a figure is outside its band or a run failed, 2
for an unknown row. A row whose data is absent says so in the table. With `--data made` elec2 and
california_housing are made stand-ins.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.data import FOLDER
from benchmarks.data.made import DATA_HELP, choose_folder
from benchmarks.papers.registry import ROWS, Done, Task, execute_all, select
from benchmarks.papers.rows import FAILED, Outcome, Row, Settings, judge, table, unjudged, write_results

REPOSITORY = Path(__file__).resolve().parents[2]


def outcomes(row: Row, done: Sequence[Done]) -> list[Outcome]:
    """Verdicts on a row's quantities from all its runs."""
    missing = next((one.missing for one in done if one.missing), None)
    if missing:
        return [unjudged(row.name, quantity, f"no data: {missing}") for quantity in row.quantities]
    n_failed = sum(bool(one.error) for one in done)
    if n_failed:
        return [
            unjudged(row.name, quantity, f"{FAILED}: {n_failed} of {len(done)} runs") for quantity in row.quantities
        ]
    runs = [one.run.values for one in done if one.run]
    return [
        judge(row.name, quantity, [run[quantity.name] for run in runs if quantity.name in run])
        for quantity in row.quantities
    ]


def run_rows(rows: Sequence[Row], args: argparse.Namespace, console: Console) -> dict[str, list[Done]]:
    """Do all runs of the rows; per row what came of them, in the order of their seeds."""
    settings = Settings(choose_folder(args.data, args.out / "data"), args.full)
    tasks = [
        Task(row.name, index, row.seed(args.seed, index), settings)
        for row in rows
        for index in range(args.runs or (row.n_full if args.full else row.n_short))
    ]
    done: dict[str, list[Done]] = {row.name: [] for row in rows}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task("runs", total=len(tasks))
        for one in execute_all(tasks, jobs=args.jobs):
            done[one.task.row].append(one)
            bar.advance(shown)
            state = "failed" if one.error else "no data" if one.missing else f"{one.cpu_s:.1f} s"
            console.print(f"{one.task.row} run {one.task.index + 1}, seed {one.task.seed}: {state}", highlight=False)
            if one.error:
                console.print(one.error, highlight=False, markup=False)
    return {name: sorted(runs, key=lambda one: one.task.index) for name, runs in done.items()}


def write_runs(done: dict[str, list[Done]], path: Path) -> None:
    """A line per run and quantity."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("row", "run", "seed", "quantity", "value"))
        for name, runs in done.items():
            for one in runs:
                for quantity, value in (one.run.values if one.run else {}).items():
                    writer.writerow((name, one.task.index, one.task.seed, quantity, repr(value)))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true", help="the papers' repetitions and set-ups in every respect")
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="rows whose names begin so")
    parser.add_argument("--list", action="store_true", help="list the rows and stop")
    parser.add_argument("--runs", type=int, help="runs per row (default: each row's own number)")
    parser.add_argument("--seed", type=int, default=1, help="where all runs' seeds come from (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "build" / "papers", help="default: build/papers")
    parser.add_argument("--data", default=str(FOLDER), help=DATA_HELP)
    args = parser.parse_args(argv)
    for name in ("jobs", "runs"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be at least 1, got {value}")
    if args.seed < 0:
        parser.error(f"--seed must not be negative, got {args.seed}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run it, print the table; the exit code."""
    args = parse(argv)
    console, out = Console(stderr=True), Console(width=None if sys.stdout.isatty() else 160)
    if args.list:
        for row in ROWS:
            out.print(f"{row.name:22} {row.n_short:3} runs, {row.n_full:3} in full   {row.title}", highlight=False)
        return 0
    try:
        rows = select(args.only)
    except LookupError as error:
        console.print(error.args[0], markup=False)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    done = run_rows(rows, args, console)
    found = {row.name: outcomes(row, done[row.name]) for row in rows}
    for row in rows:
        seconds = [one.cpu_s for one in done[row.name]]
        out.print(table(row, found[row.name], sum(seconds) / len(seconds)))
    everything = [outcome for row in rows for outcome in found[row.name]]
    write_results(everything, args.out / "results.csv")
    write_runs(done, args.out / "runs.csv")
    verdicts = [outcome.verdict.split(":")[0] for outcome in everything]
    out.print(", ".join(f"{verdicts.count(name)} {name}" for name in dict.fromkeys(verdicts)), highlight=False)
    console.print(f"results are in {args.out}", highlight=False)
    return 1 if any(outcome.is_miss for outcome in everything) else 0


if __name__ == "__main__":
    sys.exit(main())
