"""What a record costs from `Partition.handle` down, of this checkout and of another one.

    python -m benchmarks.record                        # this checkout alone
    python -m benchmarks.record --beside CHECKOUT      # and another one, with the ratios

Of each case: *fixed*, with a model, explainers and watches that do nothing; *whole*; the *model* alone. The processes
of both checkouts take blocks of records in turns, so that what else the machine does meets both. Times are of the
processor, in microseconds per record: the lowest tenth of the blocks, and the median. A ratio is the median of the
blocks' ratios, one block beside the other. Both have to send and to store the same, byte for byte: the last column
says so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.record.cases import CASES

HERE = Path(__file__).resolve().parents[2]
MODES = ("fixed", "whole", "model")

out = Console(width=150)


class Measured:
    """A process that handles records of one case by the code of one checkout."""

    def __init__(self, checkout: Path, case: str, mode: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.record.inside", case, mode],
            # What strings a state shares, and so its bytes, depends on the seed of hashes: in any release.
            env={**os.environ, "PYTHONPATH": _path_of(checkout), "PYTHONHASHSEED": "0"},
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.blocks: list[float] = []
        """Microseconds per record."""
        self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise SystemExit(f"the measured process has ended: {self._process.wait()}")
        return line

    def handle(self, n: int) -> None:
        """Handle `n` records, and note what one took."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{n}\n")
        self._process.stdin.flush()
        self.blocks.append(float(self._read()))

    def end(self) -> str:
        """Return the hash of all that was sent and stored, and how much was sent."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        found = self._read()
        self._process.wait()
        return found


def _path_of(checkout: Path) -> str:
    """Return the path on which Python finds the product of this checkout, and the benchmarks from here."""
    folders = [(checkout / name).resolve() for name in ("agents", "topics", "explainers")]
    if absent := [folder for folder in folders if not folder.is_dir()]:
        raise SystemExit(f"{checkout} is no checkout of the project: it has no folder {absent[0].name}")
    return os.pathsep.join(map(str, [*folders, HERE]))


@dataclass(frozen=True)
class Row:
    """What one case took in one mode."""

    ours: list[float]
    theirs: list[float] | None
    is_equal: bool | None
    """Whether both checkouts have sent and stored the same; None where there is nothing to compare."""


def measure(case: str, mode: str, beside: Path | None, n_blocks: int, n_records: int) -> Row:
    """Let one process of each checkout handle blocks of records in turns."""
    checkouts = [HERE] if beside is None else [HERE, beside]
    processes = [Measured(checkout, case, mode) for checkout in checkouts]
    for n in range(n_blocks):
        for process in processes if n % 2 else reversed(processes):
            process.handle(n_records)
    ended = [process.end() for process in processes]
    is_equal = None if len(ended) < 2 or ended[0] == "-" else ended[0] == ended[1]
    return Row(processes[0].blocks, processes[1].blocks if beside else None, is_equal)


def lowest_tenth(blocks: Sequence[float]) -> float:
    """Return what a tenth of the blocks stayed below."""
    return sorted(blocks)[len(blocks) // 10]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 where the checkouts differ in what they send or store."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.record", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="folder of another checkout of the project")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), help="default: all")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES), help="default: all")
    parser.add_argument("--blocks", type=int, default=40, help="of each process; default 40")
    parser.add_argument("--records", type=int, default=200, help="of a block; default 200")
    args = parser.parse_args(argv)
    table = Table(title=f"microseconds per record, {args.blocks} blocks of {args.records}")
    for name in ("case", "mode", "tenth", "median", "tenth, beside", "median, beside", "ratio", "sent and stored"):
        table.add_column(name, justify="left" if name in ("case", "mode") else "right")
    differ = False
    with Progress(console=out, transient=True) as progress:
        rows = [(case, mode) for case in args.cases for mode in CASES[case].modes if mode in args.modes]
        task = progress.add_task("", total=len(rows))
        for case, mode in rows:
            progress.update(task, description=f"{case}, {mode}")
            row = measure(case, mode, args.beside, args.blocks, args.records)
            differ = differ or row.is_equal is False
            table.add_row(case, mode, *_cells(row))
            progress.advance(task)
    out.print(table)
    return int(differ)


def _cells(row: Row) -> list[str]:
    cells = [f"{lowest_tenth(row.ours):.1f}", f"{statistics.median(row.ours):.1f}"]
    if row.theirs is None:
        return [*cells, "", "", "", ""]
    ratios = [ours / theirs for ours, theirs in zip(row.ours, row.theirs, strict=True)]
    said = {None: "", True: "equal", False: "DIFFERENT"}[row.is_equal]
    beside = [f"{lowest_tenth(row.theirs):.1f}", f"{statistics.median(row.theirs):.1f}"]
    return [*cells, *beside, f"{statistics.median(ratios):.2f}", said]


if __name__ == "__main__":
    raise SystemExit(main())
