"""What a person is told of one change, as a table.

    python -m benchmarks.incidents                    # three runs of each short stream
    python -m benchmarks.incidents --runs 10 --only "frozen, nothing" "HAT, nothing"
    python -m benchmarks.incidents --runs 1 --long    # rare classes, and nothing at all for 10⁶ observations each

A `Monitor` as it is installed, all watches, all defaults. Results depend on the seeds, not on `--processes`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median

from rich.console import Console
from rich.table import Table

from benchmarks.harm.feeding import workers
from benchmarks.incidents import counting
from benchmarks.incidents.streams import CASES, Case

_BY_NAME = {case.name: case for case in CASES}


def cells(case: Case, found: Sequence[counting.Story]) -> list[str]:
    """Return the cells of a stream."""
    n = len(case.at) * len(found)
    rows = (case.at[0] if case.at else case.n) * len(found)
    false = (
        f"{1e6 * sum(one.false for one in found) / rows:.0f} ({1e6 * sum(one.withdrawn for one in found) / rows:.0f})"
    )
    if not n:
        return ["", "", "", "", "", false, "", "", "", ""]
    last = [_at_last(case, one) for one in found]
    leading = [one.features[0] if one.features else "none" for one in found]
    onsets = [off for one in found for off in one.onset]
    return [
        f"{sum(one.confirmed for one in found) / n:.1f}",
        f"{sum(one.revisions for one in found) / n:.1f} ({max(one.most for one in found)})",
        f"{fmean(one.contradictions for one in found):.1f}",
        _median([late for one in found for late in one.suspected], n),
        _median([late for one in found for late in one.sure], n),
        false,
        _right(case.what, last),
        _right(case.features[:1], leading) if case.features else "",
        _latest([late for one in found for late in one.named], len(case.features) * len(found)),
        f"{max(onsets)}" if onsets else "",
    ]


def _median(late: Sequence[int], n: int) -> str:
    return f"{median(late):.0f} ({len(late)}/{n})" if late else f"never (0/{n})"


def _latest(late: Sequence[int], n: int) -> str:
    return f"{max(late)} ({len(late)}/{n})" if late else f"never (0/{n})" if n else ""


def _at_last(case: Case, found: counting.Story) -> str:
    """Return what it is at last, and what is to be done where only one thing is right."""
    if not found.what:
        return "nothing"
    is_right = case.advice in (None, found.advice[-1])
    return found.what[-1] if is_right else f"{found.what[-1]}, {found.advice[-1]}"


def _right(expected: Sequence[str], last: Sequence[str]) -> str:
    wrong = Counter(one for one in last if one not in expected)
    said = f"{sum(one in expected for one in last)}/{len(last)}"
    return said + "".join(f", {one} {count}" for one, count in wrong.most_common())


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.incidents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each stream, default 3")
    parser.add_argument("--only", nargs="+", choices=list(_BY_NAME), metavar="STREAM", help="these streams")
    parser.add_argument("--long", action="store_true", help="the streams that take minutes")
    parser.add_argument("--processes", type=int, default=2, help="default 2")
    args = parser.parse_args(argv)
    if min(args.runs, args.processes) < 1:
        parser.error("--runs and --processes must be at least 1")
    names = args.only or [case.name for case in CASES if case.is_long == args.long]
    asked = [(name, seed) for name in names for seed in range(1, 1 + args.runs)]
    with workers(args.processes) as of:
        found = of(counting.run, asked)
    table = Table(
        "stream", "incidents per change", "words (most)", "contradictions", "first after", "sure after",
        "false per 10⁶ (only suspected)", "what, at last", "leading feature", "named after, at most",
        "onset off by",
        title=f"what is told of one change: {args.runs} runs of each stream",
    )  # fmt: skip
    for i, name in enumerate(names):
        table.add_row(name, *cells(_BY_NAME[name], found[i * args.runs : (i + 1) * args.runs]))
    Console(width=220).print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
