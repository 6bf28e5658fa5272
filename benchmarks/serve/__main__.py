"""Measures what `attributary serve` costs.

    python -m benchmarks.serve store    # filling the store, and asking it: time, bytes, memory
    python -m benchmarks.serve page     # the server and a browser: first chart, processor, sizes, memory

Each says in its own help what it does: `python -m benchmarks.serve page --help`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

COMMANDS = ("store", "page")
"""Sub-commands: each is a module whose `main` takes the other arguments; without one it is the first."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given and given[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    name = COMMANDS[0]
    if given and not given[0].startswith("-"):
        name = given.pop(0)
    if name not in COMMANDS:
        print(f"no sub-command {name!r}: there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    code: int = importlib.import_module(f"benchmarks.serve.{name}").main(given)
    return code


if __name__ == "__main__":
    sys.exit(main())
