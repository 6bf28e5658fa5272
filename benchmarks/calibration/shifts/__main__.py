"""Lines about shifts of importance, each as it is found.

python -m benchmarks.calibration.shifts                       # some 20 minutes of processor time
python -m benchmarks.calibration.shifts --only null           # or: power
python -m benchmarks.calibration.shifts --streams "t5" "iid"  # some of the streams without a shift
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .report import POWER_RUNS, POWERS, RUNS, null_row, power_row
from .streams import STREAMS


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for, and print it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration.shifts",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--only", choices=("null", "power"))
    parser.add_argument("--streams", nargs="+", choices=tuple(STREAMS), default=tuple(STREAMS))
    parser.add_argument("--runs", type=int, help=f"of each line (default {RUNS} and {POWER_RUNS})")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    args = parser.parse_args(argv)
    if args.only != "power":
        for kind in args.streams:
            print(" | ".join(map(str, null_row(kind, args.runs or RUNS, args.jobs))), flush=True)
    if args.only != "null":
        for case in POWERS:
            if case[0] in args.streams:
                print(" | ".join(map(str, power_row(*case, args.runs or POWER_RUNS, args.jobs))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
