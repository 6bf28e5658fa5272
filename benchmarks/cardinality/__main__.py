"""How many series one worker exports, and what a scrape takes, with the limits and without them.

python -m benchmarks.cardinality                                # 500 models of 200 features
python -m benchmarks.cardinality --models 100 --features 50
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.cardinality.fleet import UNLIMITED, config_of, filled
from benchmarks.cardinality.measure import Scrape, profile, scrape

out = Console(width=110)


def main(argv: Sequence[str] | None = None) -> int:
    """Fill a view, scrape it, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cardinality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", type=int, default=500, help="default 500")
    parser.add_argument("--features", type=int, default=200, help="of each model; default 200")
    parser.add_argument("--observations", type=int, default=20, help="of each model; default 20")
    parser.add_argument("--scrapes", type=int, default=10, help="default 10")
    args = parser.parse_args(argv)
    limited, unlimited = config_of(args.models), config_of(args.models, UNLIMITED)
    began, before = time.monotonic(), _resident()
    view = filled(limited, args.features, args.observations)
    out.print(
        f"{args.models} models of {args.features} features, {args.observations} observations each: "
        f"{time.monotonic() - began:.0f} s, {_resident() - before:.0f} MB"
    )
    found = {"with the limits": scrape(limited, view, args.scrapes)}
    found["without"] = scrape(unlimited, view, max(args.scrapes // 5, 1))
    out.print(_table(found))
    out.print("Where the time of reading goes, with the limits:")
    for line in profile(limited, view, 8):
        out.print(line, highlight=False)
    limits, of = limited.metrics, found["with the limits"]
    holds = of.models <= limits.max_models and of.of_features <= limits.max_series
    holds = holds and of.models + of.dropped == args.models
    out.print(
        f"{'holds' if holds else 'BROKEN'}: at most {limits.max_models} models and {limits.max_series} series of "
        "features, and every model is shown or counted as dropped"
    )
    return 0 if holds else 1


def _table(found: dict[str, Scrape]) -> Table:
    table = Table("", *found)
    rows: dict[str, Callable[[Scrape], str]] = {
        "models with series": lambda one: f"{one.models:,}",
        "models without": lambda one: f"{one.dropped:,}",
        "series of features": lambda one: f"{one.of_features:,}",
        "series in all": lambda one: f"{one.series:,}",
        "exposition": lambda one: f"{one.bytes / 1e6:.2f} MB",
        "a scrape, median": lambda one: f"{1000 * one.seconds[0]:.0f} ms",
        "the longest": lambda one: f"{1000 * one.seconds[1]:.0f} ms",
        "an observation waits, median": lambda one: f"{1000 * one.waited[0]:.0f} ms",
        "the longest ": lambda one: f"{1000 * one.waited[1]:.0f} ms",
        "memory while it is made": lambda one: f"{one.memory / 1e6:.1f} MB",
    }
    for name, show in rows.items():
        table.add_row(name, *(show(one) for one in found.values()))
    return table


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
