"""Live the first hour of a new user, as docs/first-hour.md tells it, and write what was printed into the page.

`python -m benchmarks.first_hour` runs everything: it installs the package into a new environment, and needs Java,
Maven (`make kafka`) and Prometheus. `--installed` leaves out what installs, and `--check` compares instead of writing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from support.console_pages import ConsolePage, Done
from support.monitoring import program

from attributary_agents.demo.brokers import broker
from attributary_agents.demo.local_broker import free_port

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "first-hour.md"
VOLATILE = (
    r"(?m)^\w+: [\d ]+ of [\d ]+ rows, .*\n",  # progress, where it takes long
    r"(\d+ min )?\d+(\.\d+)? (s|ms|µs)\b",  # times
    r"@\[[\d.]+\]",
    r"\d+/s",
    r"worker \d+",  # process ids
    r"127\.0\.0\.1:\d+",
    r"\d{4}-\d\d-\d\d[ T][\d:.,]+Z?",
    r"\d+(\.\d+)? (packages|files|MB|kB)\b",
    r"sha256: \w+|[0-9a-f]{64}",  # a file of skops has times in it
    r"\[\d+\] \d+",  # of a job in the background
    r"(?m)^ *~? *\d+ s  .*$",
)


def run_page(console: Console, *, installed: bool, check: bool) -> list[str]:
    """Run the page; write it anew or, with `check`, return what is not as the page says.

    Parameters
    ----------
    installed
        Whether the package of this process is used, instead of one that is installed from a clone.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attributary-first-hour-")))
        running = stack.enter_context(broker("kafka"))
        places = {
            "localhost:9092": running.bootstrap,
            "localhost:6066": f"localhost:{free_port()}",
            "localhost:9090": f"localhost:{free_port()}",
        }
        places["port: 6066"] = f"port: {places['localhost:6066'].partition(':')[2]}"
        page = ConsolePage(PAGE, places, VOLATILE)
        bin_folder = Path(sys.executable).parent
        clone = folder / "attributary"
        if installed:
            clone.symlink_to(ROOT)
        else:
            subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
            bin_folder = clone / ".venv" / "bin"
        done: list[Done] = []
        for one in page.run(folder, _environment(bin_folder), skip=("install",) if installed else ()):
            console.print(f"line {one.step.line}", one.text, sep="\n", markup=False, highlight=False, soft_wrap=True)
            done.append(one)
        if check:
            return [different for one in done if (different := page.differs(one))]
        PAGE.write_text(page.updated(done), encoding="utf-8")
        return []


def _environment(bin_folder: Path) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("ATTRIBUTARY_")}
    prometheus = Path(program("prometheus")).parent
    return {**known, "PATH": f"{bin_folder}:{prometheus}:{known['PATH']}", "COLUMNS": "110", "NO_COLOR": "1"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_hour", description=__doc__)
    parser.add_argument("--installed", action="store_true", help="take the package that is here; install nothing")
    parser.add_argument("--check", action="store_true", help="compare with the page, and do not write it")
    options = parser.parse_args(arguments)
    faults = run_page(Console(stderr=True), installed=options.installed, check=options.check)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
