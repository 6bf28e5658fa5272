"""False alarms, drifts found and delays of change explanation, over seeded runs.

    python -m benchmarks.change                       # 10 runs
    python -m benchmarks.change --full                # 20 runs, some twelve minutes of processor time
    python -m benchmarks.change --read results.json   # the tables of an earlier run
    python -m benchmarks.change --told                # what is told of streams with a known truth, and nothing else
    python -m benchmarks.change --harm                # what is told of models that got worse, and nothing else

The routes run with every seed, the grid of δ, τ, K and detectors with every fifth, kswin with the first alone; on
Agrawal's streams all of it half as often. Results depend on the seeds, not on `--processes`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.change import told
from benchmarks.change.pool import results
from benchmarks.change.report import fill, tables
from benchmarks.harm import __main__ as harm
from benchmarks.tables import as_markdown, as_rich

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.json")
"""Those of the last `--full` run, which the page on choosing shows."""

PAGE = REPOSITORY / "docs" / "explainers" / "choosing.md"

FULL = 20


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.change", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    runs = parser.add_mutually_exclusive_group()
    runs.add_argument("--runs", type=int, default=10, help="seeded runs of each stream (default 10)")
    runs.add_argument("--full", action="store_true", help=f"{FULL} runs")
    runs.add_argument("--read", type=Path, metavar="FILE", help="run nothing, show the results of this file")
    parser.add_argument("--told", action="store_true", help="the table of `benchmarks.change.told` alone")
    parser.add_argument("--harm", action="store_true", help="the table of `benchmarks.harm` alone")
    parser.add_argument("--processes", type=int, default=2, help="default 2")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    parser.add_argument("--page", action="store_true", help=f"write results.json and the tables of {PAGE.name}")
    args = parser.parse_args(argv)
    for name in ("runs", "processes"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(args, name)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run or read, print the tables, write what is asked for."""
    args = parse(argv)
    for asked, command in ((args.told, told.main), (args.harm, harm.main)):
        if asked:
            return command(["--processes", str(args.processes), *(["--full"] if args.full else [])])
    console = Console(stderr=True)
    if args.read:
        found = json.loads(args.read.read_text(encoding="utf-8"))
    else:
        with Progress(console=console) as bar:
            shown = bar.add_task("runs", total=None)
            found = results(
                FULL if args.full else args.runs,
                args.processes,
                lambda done, total: bar.update(shown, completed=done, total=total),
            )
    for path in ([args.json] if args.json else []) + ([RESULTS] if args.page else []):
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if args.page:
        PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    for table in tables(found):
        if args.markdown:
            print(f"**{table.title}**\n\n{as_markdown(table)}\n")
        else:
            Console(width=None if sys.stdout.isatty() else 200).print(as_rich(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
