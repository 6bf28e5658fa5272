"""Measure what happens while brokers come and go, on a real Apache Kafka.

    python -m benchmarks.cluster away --minutes 10    # a worker whose broker is away
    python -m benchmarks.cluster log --minutes 60     # lines by level of a healthy hour
    python -m benchmarks.cluster rebalances           # memory over 100 rebalances
    python -m benchmarks.cluster takeover             # after SIGKILL, with and without a stable name
    python -m benchmarks.cluster topics --times 50    # `topics create` on three healthy nodes
    python -m benchmarks.cluster workers              # memory of several workers by --workers

Each sub-command says in its own help what it does: `python -m benchmarks.cluster away --help`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

COMMANDS = {
    name: f"benchmarks.cluster.{name}" for name in ("away", "log", "rebalances", "takeover", "topics", "workers")
}
"""Sub-command to the module whose `main` takes the other arguments and returns the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; return its exit code."""
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name not in COMMANDS:
        print(f"{__doc__}\nsub-commands: {', '.join(COMMANDS)}")
        return 0 if name in ("-h", "--help") else 2
    code: int = importlib.import_module(COMMANDS[name]).main(rest)
    return code


if __name__ == "__main__":
    sys.exit(main())
