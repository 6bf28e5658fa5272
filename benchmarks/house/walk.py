"""`walk`: counts the files, lines and calls of the product that one `explain_one` and one record of Kafka pass."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from .checkout import HERE, copied_plainly, environment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `walk`."""
    parser.add_argument("checkout", nargs="?", type=Path, default=HERE, help="folder of a checkout (default: this one)")
    parser.add_argument("--warm-up", type=int, default=1500, help="observations before the first count (default: 1500)")
    parser.add_argument("--observations", type=int, default=200, help="observations that are counted (default: 200)")


def run(args: argparse.Namespace) -> int:
    """Measure in a process whose product is that of the checkout, as plain Python: what is compiled leaves no trace."""
    with tempfile.TemporaryDirectory(prefix="attributary-house-") as folder:
        copy = copied_plainly(args.checkout, Path(folder))
        argv = [sys.executable, "-m", f"{__package__}.inside", str(copy), str(args.warm_up), str(args.observations)]
        return subprocess.run(argv, env=environment(copy), cwd=HERE, check=False).returncode
