"""`python -m benchmarks.house lines|walk|mutate`: how large the code is, what a record passes, what tests see."""

from __future__ import annotations

import argparse

from . import lines, mutate, walk

COMMANDS = {"lines": lines, "walk": walk, "mutate": mutate}


def main(argv: list[str] | None = None) -> int:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        about = (module.__doc__ or "").splitlines()[0]
        module.add_arguments(commands.add_parser(name, help=about, description=about))
    args = parser.parse_args(argv)
    return int(COMMANDS[args.command].run(args))


if __name__ == "__main__":
    raise SystemExit(main())
