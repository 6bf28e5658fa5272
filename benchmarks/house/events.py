"""`events`: replays streams and prints the hashes of what is published, or compares those of two checkouts."""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml

from .checkout import HERE, environment
from .streams import CASES, ELEC2, LIBRARY, config_of, stream_of, write_stream

FILES = ("importances.jsonl", "incidents.jsonl")
VALUES = "values.jsonl"
SHOWN = 8
"""Fields of the first different event that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `events`."""
    parser.add_argument("checkout", nargs="?", type=Path, default=HERE, help="folder of a checkout (default: this one)")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="compare with what this checkout publishes")
    parser.add_argument("--rows", type=int, default=5000, help="rows of each stream (default: 5000)")
    parser.add_argument(
        "--cases", nargs="*", choices=[*CASES, *LIBRARY], default=[*CASES, *LIBRARY], help="default: all"
    )
    parser.add_argument("--elec2", type=Path, default=ELEC2, help="elec2.csv.gz (default: the repository's)")


def run(args: argparse.Namespace) -> int:
    """Replay each case with one checkout or with both."""
    equal = True
    with tempfile.TemporaryDirectory(prefix="attributary-house-") as name:
        folder = Path(name)
        for stream in sorted({stream_of(case) for case in args.cases}):
            write_stream(stream, folder, args.rows, args.elec2)
        for case in args.cases:
            mine = replay(args.checkout, case, folder, folder / case / "mine")
            other = replay(args.against, case, folder, folder / case / "other") if args.against else None
            for file in (VALUES,) if case in LIBRARY else FILES:
                print(f"{case:16} {file:18} {described(mine / file)}", flush=True)
                if other:
                    said = difference(other / file, mine / file)
                    equal = equal and not said
                    print(f"{case:16} {file:18} {said or 'equal, byte for byte'}", flush=True)
    return 0 if equal else 1


def replay(checkout: Path, case: str, streams: Path, out: Path) -> Path:
    """Run a checkout's `attributary replay`, or its explainers, on the stream of a case; return the folder it wrote to.

    Raises
    ------
    SystemExit
        The command has failed, or there are no events, or there is a dead letter; what it said follows.
    """
    out.mkdir(parents=True)
    stream = str(streams / f"{stream_of(case)}.csv")
    if case in LIBRARY:
        argv = [f"{__package__}.values", case.removeprefix("library-"), stream, str(out / VALUES)]
    else:
        config = out / "config.yaml"
        config.write_text(yaml.safe_dump(config_of(CASES[case])), encoding="utf-8")
        argv = ["attributary_agents.cli", "replay", stream, "--config", str(config), "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", *argv], env=environment(checkout), cwd=out, capture_output=True, text=True, check=False
    )
    letters = out / "dead-letters.jsonl"
    events = out / (VALUES if case in LIBRARY else FILES[0])
    if done.returncode or not events.stat().st_size or (letters.is_file() and letters.stat().st_size):
        said = f"{done.stdout}{done.stderr}"[-2000:]
        raise SystemExit(f"{checkout}: replay of {case} has failed, or not explained all ({done.returncode})\n{said}")
    return out


def described(path: Path) -> str:
    """Return the number of events in a file, its size and its hash."""
    data = path.read_bytes()
    return f"{len(data.splitlines()):4d} events {len(data):8d} bytes  sha256 {hashlib.sha256(data).hexdigest()}"


def difference(expected: Path, found: Path) -> str:
    """Return what differs first in two files of events, and how much differs in all; nothing where they are equal."""
    if expected.read_bytes() == found.read_bytes():
        return ""
    pairs = list(zip_longest(expected.read_bytes().splitlines(), found.read_bytes().splitlines()))
    unlike = {n: list(compared(_event(one), _event(other))) for n, (one, other) in enumerate(pairs) if one != other}
    first = min(unlike)
    lines = [f"DIFFERENT: {len(unlike)} of {len(pairs)} events; the first is event {first + 1}"]
    lines += [
        f"    {name}: {one!r} -> {other!r}" + ("" if by is None else f" (by {by:.3g} of its size)")
        for name, one, other, by in unlike[first][:SHOWN]
    ]
    if not unlike[first]:
        lines.append("    equal values, written in another way or order")
    relative = [by for fields in unlike.values() for *_, by in fields if by is not None]
    if relative:
        lines.append(f"    largest difference of a number in all events: {max(relative):.3g} of its size")
    return "\n".join(lines)


def _event(line: bytes | None) -> Any:
    return None if line is None else json.loads(line)


def compared(one: Any, other: Any, name: str = "event") -> Iterator[tuple[str, Any, Any, float | None]]:
    """Yield each field that differs: its name, both values, and between numbers the relative difference."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from compared(one.get(key), other.get(key), f"{name}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for n, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from compared(left, right, f"{name}[{n}]")
    elif one != other:
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
        yield name, one, other, abs(one - other) / max(abs(one), abs(other)) if numbers else None
