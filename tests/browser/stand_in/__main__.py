"""Runs the stand-in: python -m tests.browser.stand_in --port 6099."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import time
from pathlib import Path

from .server import STATIC, StandIn


def main() -> None:
    """Serve until Ctrl-C; every second or so a model tells its importance."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.stand_in", description=__doc__)
    parser.add_argument("--port", type=int, default=6099)
    parser.add_argument("--empty", action="store_true", help="no model has published yet")
    parser.add_argument("--away", action="store_true", help="brokers do not answer")
    parser.add_argument("--hostile", action="store_true", help="a model whose names are HTML")
    parser.add_argument("--quiet", action="store_true", help="send nothing by itself")
    parser.add_argument(
        "--static", action="append", type=Path, help="a folder of the page's files; the first that has it"
    )
    given = parser.parse_args()
    static = tuple(folder.resolve() for folder in given.static or [STATIC])
    server = StandIn(given.port, static=static, empty=given.empty, hostile=given.hostile)
    if given.away:
        server.away(True)
    print(f"The stand-in is at {server.url}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        for model_id in itertools.cycle(["bank", "bikes", "clicks"]):
            time.sleep(1.0)
            if not (given.quiet or given.empty or given.away):
                server.push_importance(model_id)


if __name__ == "__main__":
    main()
