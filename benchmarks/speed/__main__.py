"""What explaining costs, as a ratio of processor time, beside a naive loop and iXAI.

    python -m benchmarks.speed                        # all models, some minutes
    python -m benchmarks.speed --full                 # the tables of docs/performance.md
    python -m benchmarks.speed --only arf10 tree      # some models
    python -m benchmarks.speed --others               # MDI, partial dependence, observational iSAGE
    python -m benchmarks.speed --growth               # with features, draws, trees, stored observations, explainers
    python -m benchmarks.speed --accuracy             # what a given error costs
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

from attributary_explainers.core import is_compiled
from benchmarks.speed.accuracy import CASES, Effort, accuracy
from benchmarks.speed.growth import AXES, point
from benchmarks.speed.loops import KINDS, installed
from benchmarks.speed.others import PERIOD, others
from benchmarks.speed.report import fill, tables
from benchmarks.speed.subjects import SUBJECTS, SUBJECTS_BY_NAME
from benchmarks.speed.table import COLUMNS, QUICK, Plan, measure, steps
from benchmarks.tables import as_rich

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.json")
"""Those that the page shows."""

PAGE = REPOSITORY / "docs" / "performance.md"

AXES_BY_NAME = {axis.name: axis for axis in AXES}
CASES_BY_NAME = {case.name: case for case in CASES}

FULL = Plan(observations=1000, block=20, checked=50)
GROWTH = Plan(observations=80, block=10, checked=2)
ACCURACY = Effort()
ACCURACY_FULL = Effort(repeats=20, checkpoints=(25, 50, 100, 200, 400, 800))
PERIODS, PERIODS_FULL = 2, 5


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
    modes = parser.add_argument_group("what else, instead; several may be given, and --speed with them")
    modes.add_argument("--speed", action="store_true", help="the ratios of all models")
    modes.add_argument("--others", action="store_true", help="the ratios of the explainers beside iPFI and iSAGE")
    modes.add_argument(
        "--growth", nargs="*", choices=list(AXES_BY_NAME), metavar="AXIS", help=f"of {', '.join(AXES_BY_NAME)}"
    )
    modes.add_argument("--largest", type=int, help="of --growth: leave larger sizes out")
    modes.add_argument(
        "--accuracy", nargs="*", choices=list(CASES_BY_NAME), metavar="CASE", help=" ".join(CASES_BY_NAME)
    )
    parser.add_argument(
        "--observations", type=int,
        help=f"measured, of each model (default {Plan().observations}, of quick ones {QUICK} times; with --others "
        f"{PERIODS * PERIOD}; with --growth {GROWTH.observations}; with --accuracy {ACCURACY.checkpoints[-1]})",
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, help=f"of --accuracy (default {ACCURACY.repeats})")
    parser.add_argument("--full", action="store_true", help="as many as for the page: half an hour")
    parser.add_argument("--read", type=Path, metavar="FILE", help="run nothing, show the results of this file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    parser.add_argument("--page", action="store_true", help=f"write results.json and the tables of {PAGE.name}")
    args = parser.parse_args(argv)
    for name in ("observations", "repeats", "largest"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be at least 1, got {value}")
    return args


def versions() -> dict[str, Any]:
    """What the figures depend on; nothing that names the machine."""
    found = {name: version(name) for name in ("river", "numpy")}
    core = "a compiled core" if is_compiled() else "a core of plain Python"
    return {"python": platform.python_version(), **found, "core": core}


def _plan(args: argparse.Namespace, plan: Plan) -> Plan:
    plan = replace(plan, columns=tuple(args.columns))
    return plan if args.observations is None else replace(plan, observations=args.observations)


def run_speed(args: argparse.Namespace, bar: Progress) -> dict[str, Any]:
    """The main table."""
    plan = _plan(args, FULL if args.full else Plan())
    subjects = [subject for subject in SUBJECTS if subject.name in args.only]
    task = bar.add_task("", total=sum(steps(subject, KINDS, plan) for subject in subjects))
    found = {}
    for subject in subjects:
        bar.update(task, description=subject.title, refresh=True)
        found[subject.name] = measure(subject, KINDS, plan, lambda: bar.update(task, advance=1, refresh=True))
    return {"subjects": found}


def run_others(args: argparse.Namespace, bar: Progress) -> dict[str, Any]:
    """What the other explainers cost."""
    n = args.observations or (PERIODS_FULL if args.full else PERIODS) * PERIOD
    task = bar.add_task("", total=None)
    return {"others": others(args.only, n, min(n, FULL.block), lambda: bar.update(task, advance=1, refresh=True))}


def run_growth(args: argparse.Namespace, bar: Progress) -> dict[str, Any]:
    """How cost grows."""
    plan = _plan(args, GROWTH)
    found: dict[str, list[dict[str, Any]]] = {}
    for axis in [AXES_BY_NAME[name] for name in args.growth or AXES_BY_NAME]:
        sizes = [size for size in axis.sizes if args.largest is None or size <= args.largest]
        task = bar.add_task(axis.title, total=len(sizes))
        found[axis.name] = []
        for size in sizes:
            found[axis.name].append(point(axis, size, plan))
            bar.update(task, advance=1, refresh=True)
    return {"axes": found}


def run_accuracy(args: argparse.Namespace, bar: Progress) -> dict[str, Any]:
    """What a given error costs."""
    effort = ACCURACY_FULL if args.full else ACCURACY
    if args.observations is not None:
        earlier = tuple(n for n in effort.checkpoints if n < args.observations)
        effort = replace(effort, checkpoints=(*earlier, args.observations))
    if args.repeats is not None:
        effort = replace(effort, repeats=args.repeats)
    task = bar.add_task("", total=None)
    cases = [CASES_BY_NAME[name] for name in args.accuracy or CASES_BY_NAME]
    return {"cases": accuracy(cases, effort, lambda text: bar.update(task, description=text, refresh=True))}


MODES: dict[str, Callable[[argparse.Namespace, Progress], dict[str, Any]]] = {
    "speed": run_speed, "others": run_others, "growth": run_growth, "accuracy": run_accuracy,
}  # fmt: skip


def run(args: argparse.Namespace, console: Console) -> dict[str, Any]:
    """The results of what is asked for, by mode."""
    asked = [mode for mode in MODES if getattr(args, mode) not in (False, None)] or ["speed"]
    # Drawn when a step is done: a thread that draws would be in the processor time.
    with Progress(console=console, disable=not console.is_terminal, auto_refresh=False) as bar:
        return {mode: {"reference": installed(), **versions(), **MODES[mode](args, bar)} for mode in asked}


def _as_json(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run or read, print the tables, write what is asked for."""
    args = parse(argv)
    console = Console(stderr=True)
    found = json.loads(args.read.read_text(encoding="utf-8")) if args.read else run(args, console)
    if args.page:
        shown = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(_as_json({**shown, **found}), encoding="utf-8")
        PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), {**shown, **found}), encoding="utf-8")
    if args.json:
        args.json.write_text(_as_json(found), encoding="utf-8")
    for table in tables(found):
        Console(width=None if sys.stdout.isatty() else 200).print(as_rich(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
