"""Measures what a record and a model's state cost.

    python -m benchmarks.scale                  # what a record costs, beside hand-written loops: see --help
    python -m benchmarks.scale grid --json FILE # what it costs as features, draws, models and state grow
    python -m benchmarks.scale fit FILE         # the capacity model of `attributary plan`, from that
    python -m benchmarks.scale state            # what the state of an ordinary model costs

Each says in its own help what it does: `python -m benchmarks.scale state --help`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

COMMANDS = ("price", "grid", "fit", "state")
"""Sub-commands: each is a module whose `main` takes the other arguments; without one it is the first."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given and given[0] in ("-h", "--help"):
        print(f"{__doc__}\n`python -m benchmarks.scale price --help`: the first of these.")
        return 0
    name = COMMANDS[0]
    if given and not given[0].startswith("-"):
        name = given.pop(0)
    if name not in COMMANDS:
        print(f"no sub-command {name!r}: there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    code: int = importlib.import_module(f"benchmarks.scale.{name}").main(given)
    return code


if __name__ == "__main__":
    sys.exit(main())
