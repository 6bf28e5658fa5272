"""Attack workers on a real Apache Kafka; print what each attack does.

    python -m benchmarks.hostile                  # all attacks
    python -m benchmarks.hostile label bomb-zstd  # some
    python -m benchmarks.hostile --list

Exit code 1 when an attack gets through. What the workers said stands in build/hostile.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from attributary_agents.demo.brokers import BrokerError, KafkaBroker
from benchmarks.hostile.lab import ATTACKS, Found

from . import attacks  # noqa: F401 - importing it lists them
from .lab import Lab

FOLDER = Path(__file__).resolve().parents[2] / "build" / "hostile"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hostile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="default: all")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the logs, emptied first (build/hostile)")
    args = parser.parse_args(argv)
    if unknown := [name for name in args.attacks if name not in ATTACKS]:
        parser.error(f"no attack {', '.join(unknown)}: there are {', '.join(ATTACKS)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run the attacks one after the other and print the table."""
    args = parse(argv)
    if args.list:
        for one in ATTACKS.values():
            print(f"{one.name:24} {one.what}")
        return 0
    console = Console(stderr=True)
    out: Path = args.out.absolute()
    shutil.rmtree(out, ignore_errors=True)
    found: dict[str, Found] = {}
    names = args.attacks or list(ATTACKS)
    try:
        (out / "broker").mkdir(parents=True)
        with KafkaBroker(out / "broker") as broker:
            for n, name in enumerate(names, 1):
                began = time.monotonic()
                found[name] = attempt(name, broker, out / name)
                verdict = "held" if is_held(found[name]) else "FELL"
                took = time.monotonic() - began
                console.print(f"{n}/{len(names)} {name}: {verdict}, {found[name].figure} ({took:.0f} s)", markup=False)
    except BrokerError as error:
        console.print(str(error), markup=False)
        return 2
    table = Table("attack", "does", "held", title="What each attack does")
    for name, what in found.items():
        table.add_row(ATTACKS[name].what, what.figure, "yes" if is_held(what) else "NO")
    Console(width=160).print(table)
    return 0 if all(is_held(what) for what in found.values()) else 1


def is_held(found: Found) -> bool:
    """Return whether the attack was held off, by what was counted and by what was measured."""
    return found.held and found.fast


def attempt(name: str, broker: KafkaBroker, folder: Path) -> Found:
    """Make one attack; what breaks it, a time-out of a worker that hangs for example, is a fall."""
    folder.mkdir(parents=True)
    try:
        return ATTACKS[name].run(Lab(broker, folder))
    except Exception as error:  # noqa: BLE001 - the other attacks go on
        (folder / "error.txt").write_text(traceback.format_exc())
        return Found(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200], held=False)


if __name__ == "__main__":
    sys.exit(main())
