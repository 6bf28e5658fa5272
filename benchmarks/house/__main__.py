"""`python -m benchmarks.house graph|walk|lines|events|speed|mutate`: measures a checkout of the project."""

from __future__ import annotations

import argparse

from . import events, graph, lines, mutate, speed, walk

COMMANDS = {"graph": graph, "walk": walk, "lines": lines, "events": events, "speed": speed, "mutate": mutate}


def main(argv: list[str] | None = None) -> int:
    """Run the command that the arguments name; without one, print what there is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    for name, module in COMMANDS.items():
        about = (module.__doc__ or "").splitlines()[0].partition(": ")[2]
        module.add_arguments(commands.add_parser(name, help=about, description=about))
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 0
    return int(COMMANDS[args.command].run(args))


if __name__ == "__main__":
    raise SystemExit(main())
