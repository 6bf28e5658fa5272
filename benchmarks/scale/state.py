"""Measures what the state of an ordinary model costs: bytes in memory, bytes stored, time to encode and to decode.

    python -m benchmarks.scale state                           # a scaler and a logistic regression, young and mature
    python -m benchmarks.scale state --write before.json       # at one commit ...
    python -m benchmarks.scale state --beside before.json      # ... and at another: with the ratio to it

A young model has taken 10 observations, a mature one 3000; both have iPFI, iSAGE, the watch of the loss and the change
explainer with the worker's defaults, or no change explainer. Times are of the processor, medians.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.scale.measure import CASES, Cost, measure

out = Console(width=130)

COLUMNS = {
    "grown": ("kB in memory, grown", 1e-3),
    "restored": ("kB in memory, restored", 1e-3),
    "stored": ("kB stored", 1e-3),
    "encode": ("ms to encode", 1.0),
    "decode": ("ms to decode", 1.0),
    "observe": ("ms per observation", 1.0),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale state",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeats", type=int, default=50, help="of encoding and decoding; default 50")
    parser.add_argument("--digits", type=int, help="decimals of the features; default: all, which none can compress")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the figures as JSON")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="figures of another commit: show ratios to them")
    args = parser.parse_args(argv)
    found: dict[str, Cost] = {}
    with Progress(console=out, transient=True) as progress:
        task = progress.add_task("states", total=len(CASES))
        for case in CASES:
            progress.update(task, description=case.name)
            found[case.name] = measure(case, args.repeats, args.digits)
            progress.advance(task)
    before = {} if args.beside is None else _read(args.beside)
    out.print(table(found, before))
    if args.write is not None:
        args.write.write_text(json.dumps({name: asdict(cost) for name, cost in found.items()}, indent=1) + "\n")
    return 0


def table(found: dict[str, Cost], before: dict[str, Cost]) -> Table:
    """Return the figures as a table, each with its ratio to that of before where there is one."""
    made = Table("one model", *(title for title, _ in COLUMNS.values()))
    for name, cost in found.items():
        cells = []
        for column, (_, factor) in COLUMNS.items():
            value = getattr(cost, column)
            cell = f"{factor * value:.3g}"
            if name in before and (then := getattr(before[name], column)):
                cell += f" (x {value / then:.2f})"
            cells.append(cell)
        made.add_row(name, *cells)
    return made


def _read(path: Path) -> dict[str, Cost]:
    return {name: Cost(**cost) for name, cost in json.loads(path.read_text()).items()}
