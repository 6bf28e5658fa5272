"""`speed`: measures what explaining costs in two checkouts in turn, and prints the quotients row by row."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .checkout import HERE, PACKAGES

Ratios = dict[tuple[str, str], float]
"""By model and kind of explanation: processor time explained over unexplained."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `speed`."""
    parser.add_argument("checkout", nargs="?", type=Path, default=HERE, help="folder of a checkout (default: this one)")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", required=True, help="the one before")
    parser.add_argument("--turns", type=int, default=3, help="runs of each checkout (default: 3)")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="models, as for benchmarks.speed (default: all)")
    parser.add_argument("--observations", type=int, default=50, help="measured, of each model and turn (default: 50)")
    parser.add_argument("--allowance", type=float, default=1.03, help="quotient that is not yet dearer (default: 1.03)")


def run(args: argparse.Namespace) -> int:
    """Measure before, after, before, after …; return 1 where the lower quartile of a row is above the allowance."""
    pairs: list[tuple[Ratios, Ratios]] = []
    for turn in range(args.turns):
        print(f"turn {turn + 1} of {args.turns}", file=sys.stderr, flush=True)
        pairs.append((measure(args.against, args), measure(args.checkout, args)))
    print("explained over unexplained, median of the turns; quotient after / before: median [quartiles]")
    dearer = 0
    for row in pairs[0][0]:
        low, middle, high = quartiles([after[row] / before[row] for before, after in pairs])
        before, after = (statistics.median(pair[side][row] for pair in pairs) for side in (0, 1))
        is_dearer = low > args.allowance
        dearer += is_dearer
        said = "  DEARER" if is_dearer else ""
        print(f"{row[0]:20} {row[1]:14} {before:6.2f} -> {after:6.2f}   {middle:5.2f} [{low:.2f} {high:.2f}]{said}")
    print(f"{dearer} of {len(pairs[0][0])} rows are dearer: their lower quartile is above {args.allowance:g}")
    return int(dearer > 0)


def measure(checkout: Path, args: argparse.Namespace) -> Ratios:
    """Run a checkout's own `benchmarks.speed` in a process of its own; return the ratios of our column."""
    checkout = checkout.resolve()
    folders = [str(checkout / folder) for folder in PACKAGES.values()] + [str(checkout)]
    with tempfile.TemporaryDirectory(prefix="attributary-house-") as name:
        found = Path(name) / "speed.json"
        argv = [sys.executable, "-m", "benchmarks.speed", "--columns", "ours", "--json", str(found)]
        argv += ["--observations", str(args.observations), *(["--only", *args.only] if args.only else [])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        subprocess.run(argv, cwd=checkout, env=environment, check=True, stdout=subprocess.DEVNULL)
        subjects = json.loads(found.read_text("utf-8"))["speed"]["subjects"]
    return {
        (subject, kind): columns["ours"]["median"]
        for subject, measured in subjects.items()
        for kind, columns in measured["kinds"].items()
    }


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high
