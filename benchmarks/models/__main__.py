"""Measure trained models of other libraries.

python -m benchmarks.models throughput            # a minute
python -m benchmarks.models throughput --quick    # seconds
"""

from __future__ import annotations

import argparse

from rich.console import Console

from .throughput import measure, show


def main() -> None:
    """Run what the command names, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("what", choices=["throughput"])
    parser.add_argument("--quick", action="store_true", help="one round instead of five")
    given = parser.parse_args()
    show(measure(rounds=1 if given.quick else 5), Console())


if __name__ == "__main__":
    main()
