"""What explaining costs, as a ratio of processor time, beside a naive loop and iXAI.

    python -m benchmarks.speed                        # all models, some minutes
    python -m benchmarks.speed --full                 # the tables of docs/performance.md
    python -m benchmarks.speed --only arf10 tree      # some models
    python -m benchmarks.speed --read results.json    # the tables of an earlier run

Every column has a copy of the model and reads the same observations, in blocks that take turns, in this one process.
iXAI's is there where it is installed: pip install --group benchmark
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from attributary_explainers.evaluation.compiled import HAS_NUMBA
from benchmarks.change.report import as_markdown, as_rich
from benchmarks.speed.kinds import KINDS
from benchmarks.speed.reference import installed
from benchmarks.speed.report import fill, tables
from benchmarks.speed.subjects import SUBJECTS, SUBJECTS_BY_NAME
from benchmarks.speed.table import COLUMNS, Plan, measure, steps

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.json")
"""Those that the page shows."""

PAGE = REPOSITORY / "docs" / "performance.md"

FULL = Plan(observations=1000, block=20, checked=50)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=list(SUBJECTS_BY_NAME), metavar="MODEL", default=list(SUBJECTS_BY_NAME),
        help=f"of {', '.join(SUBJECTS_BY_NAME)}",
    )  # fmt: skip
    parser.add_argument(
        "--columns", nargs="+", choices=COLUMNS, metavar="COLUMN", default=list(COLUMNS),
        help=f"beside the model alone: {', '.join(COLUMNS)} (default: all)",
    )  # fmt: skip
    parser.add_argument("--observations", type=int, help="measured, of each model (default 100; of quick ones 5 times)")
    parser.add_argument("--full", action="store_true", help="as many as for the page: half an hour")
    parser.add_argument("--read", type=Path, metavar="FILE", help="run nothing, show the results of this file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    parser.add_argument("--page", action="store_true", help=f"write results.json and the tables of {PAGE.name}")
    args = parser.parse_args(argv)
    if args.observations is not None and args.observations < 1:
        parser.error(f"--observations must be at least 1, got {args.observations}")
    return args


def machine() -> dict[str, Any]:
    """What the figures depend on; nothing that names the machine."""
    found = {name: version(name) for name in ("river", "numpy")}
    return {"python": platform.python_version(), **found, "numba": version("numba") if HAS_NUMBA else None}


def run_speed(args: argparse.Namespace, bar: Progress) -> dict[str, Any]:
    """The main table."""
    plan = replace(FULL if args.full else Plan(), columns=tuple(args.columns))
    if args.observations is not None:
        plan = replace(plan, observations=args.observations)
    subjects = [subject for subject in SUBJECTS if subject.name in args.only]
    task = bar.add_task("", total=sum(steps(subject, KINDS, plan) for subject in subjects))
    found = {}
    for subject in subjects:
        bar.update(task, description=subject.title)
        found[subject.name] = measure(subject, KINDS, plan, lambda: bar.advance(task))
    return {"reference": installed(), **machine(), "subjects": found}


MODES: dict[str, Callable[[argparse.Namespace, Progress], dict[str, Any]]] = {"speed": run_speed}


def main(argv: Sequence[str] | None = None) -> int:
    """Run or read, print the tables, write what is asked for."""
    args = parse(argv)
    console = Console(stderr=True)
    if args.read:
        found = json.loads(args.read.read_text(encoding="utf-8"))
    else:
        # Drawn when a step is done: a thread that draws would be in the processor time.
        with Progress(console=console, disable=not console.is_terminal, auto_refresh=False) as bar:
            found = {"speed": run_speed(args, bar)}
            bar.refresh()
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
