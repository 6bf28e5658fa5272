"""What is told of models that got worse, and of models that did not: the table and the page.

    python -m benchmarks.harm                         # a few runs of each row: some ten minutes of processor time
    python -m benchmarks.harm --full                  # as many as the goals ask for: hours
    python -m benchmarks.harm --rows frozen quiet
    python -m benchmarks.harm --rows frozen --kinds   # also what each kind does to the model and what was told of it
    python -m benchmarks.harm page                    # write the tables of docs/what-an-alert-means.md

Defaults of `LossMonitor` throughout; 20 000 clean rows and 20 000 after them, unless said. None of the populations is
one that a threshold was chosen on. Results depend on the seeds, not on `--processes`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.harm import classes, cost, frozen, learning, naming, numbers, page, quiet, rare, words
from benchmarks.harm.feeding import workers

ROWS = {
    "frozen": frozen.rows,
    "scaled": frozen.scaled,
    "classes": classes.rows,
    "regression": numbers.rows,
    "naming": naming.rows,
    "first": words.first_words,
    "quiet": quiet.rows,
    "rare": rare.rows,
    "learning": learning.rows,
    "ends": words.ends,
    "cost": cost.rows,
}


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.harm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("table", "page"), default="table", help="default: table")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS), help="default: all")
    parser.add_argument("--full", action="store_true", help="as many runs as the goals ask for")
    parser.add_argument("--kinds", action="store_true", help="print a line for each kind of damage, too")
    parser.add_argument("--processes", type=int, default=2, help="default 2")
    args = parser.parse_args(argv)
    if args.processes < 1:
        parser.error(f"--processes must be at least 1, got {args.processes}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print the table row by row."""
    args = parse(argv)
    with workers(args.processes) as of:
        if args.what == "page":
            page.write(page.collect(of, args.full))
            return 0
        print("| what | found | goal |\n| --- | --- | --- |", flush=True)
        for name in args.rows:
            lines: list[str] = []
            for row in ROWS[name](of, args.full, lines):
                print(f"| {row.what} | {row.found} | {row.goal} |", flush=True)
            if args.kinds and lines:
                print("\n" + "\n".join(lines) + "\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
