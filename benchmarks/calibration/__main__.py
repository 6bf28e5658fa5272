"""How often intervals hold the exact importance, and how far importance is off, on streams that depend on themselves.

    python -m benchmarks.calibration                       # some 40 minutes on two cores
    python -m benchmarks.calibration --quick               # a minute: shows that it works, and what is far off
    python -m benchmarks.calibration --only rules          # one part; the lines of the others say "not run"
    python -m benchmarks.calibration --read results.json   # the table of an earlier run

The last lines are the table. Results depend on the seeds, not on `--jobs`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.tables import Table, as_markdown, as_rich

from . import dependence, observational, shifts
from .runs import PARTS, Record, as_data, from_data, full, measure, quick
from .verdicts import NOT_RUN, Row, header, lines, rows_of

MODULES: dict[str, Any] = {"dependence": dependence, "shifts": shifts, "observational": observational}
"""Parts with a module of their own: `rows(quick=..., jobs=...)` there returns lines of the table, each as `Row`."""
UNRUN = {
    "dependence": Row("iPDP, largest error of the range, n >= 4000", "mean at most 2 %, worst 4 %", NOT_RUN, None),
    "shifts": Row("shifts of importance", "told where there is none: at most .05 of streams", NOT_RUN, None),
    "observational": Row("observational iPFI and iSAGE", "error at most .10, hold .90", NOT_RUN, None),
}
COST = Row("cost of an observation", "make speed", "another command", None)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs, about a minute")
    parser.add_argument("--runs", type=int, help="runs of each cell (default 400, 200 of the long ones, 160 of rules)")
    parser.add_argument("--only", nargs="+", choices=(*PARTS, *MODULES), default=(*PARTS, *MODULES), help="parts")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the results, beside those of other parts there"
    )
    parser.add_argument("--read", type=Path, metavar="FILE", help="run nothing, show the results of this file")
    parser.add_argument("--cells", action="store_true", help="also print each cell and feature")
    parser.add_argument("--markdown", action="store_true", help="print the table for a page")
    args = parser.parse_args(argv)
    if args.jobs < 1 or (args.runs is not None and args.runs < 2):
        parser.error("--jobs must be at least 1, --runs at least 2")
    return args


Results = dict[str, Any]
"""`records`: those of runs as plain data. `rows`: by part with a module of its own, its lines."""


def load(path: Path) -> Results:
    """Return the results of a file; none where there is no such file."""
    found: Results = json.loads(path.read_text()) if path.exists() else {"records": [], "rows": {}}
    return found


def compute(args: argparse.Namespace) -> Results:
    """Run what is asked for."""
    cells = [cell for cell in (quick() if args.quick else full()) if cell.part in args.only]
    if args.runs is not None:
        cells = [replace(cell, runs=args.runs) for cell in cells]
    rows = {name: MODULES[name].rows(quick=args.quick, jobs=args.jobs) for name in MODULES if name in args.only}
    return {"records": as_data(measure(cells, args.jobs)), "rows": rows}


def merged(old: Results, new: Results) -> Results:
    """Return the new results, and the old ones of parts that were not run."""
    parts = {record["part"] for record in new["records"]}
    kept = [record for record in old["records"] if record["part"] not in parts]
    return {"records": kept + new["records"], "rows": old["rows"] | new["rows"]}


def table_rows(results: Results) -> list[Row]:
    """Return all lines of the table."""
    rows = rows_of(from_data(results["records"]))
    for name in MODULES:
        rows += [Row(*row) for row in results["rows"].get(name, [UNRUN[name]])]
    return [*rows, COST]


def cells_table(records: Sequence[Record]) -> Table:
    """Return the table of each cell and feature."""
    texts = [
        (
            r.world, r.explainer, f"{r.alpha:g}", str(r.n), r.feature, f"{r.exact:.4f}", f"{r.mean - r.exact:+.4f}",
            f"{r.z:+.1f}", f"{r.sd:.4f}", f"{r.error / r.sd if r.sd else 1.0:.2f}", f"{r.held:.3f}", f"{r.said:.2f}",
        )
        for r in records
    ]  # fmt: skip
    head = ("stream", "by", "alpha", "n", "feature", "exact", "bias", "z", "spread", "error / spread", "hold", "said")
    return Table("cells", "Each cell", head, texts)


def main(argv: Sequence[str] | None = None) -> int:
    """Run or read, write what is asked for, print the table last."""
    args = parse(argv)
    results = load(args.read) if args.read else compute(args)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(merged(load(args.json), results), indent=1) + "\n")
    tables = [cells_table(from_data(results["records"]))] if args.cells else []
    tables.append(Table("calibration", "Exact values: reached or missed", header(), lines(table_rows(results))))
    console = Console(width=None if sys.stdout.isatty() else 170)
    for table in tables:
        if args.markdown:
            print(f"**{table.title}**\n\n{as_markdown(table)}\n")
        else:
            console.print(as_rich(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
