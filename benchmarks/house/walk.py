"""Counts the files, lines and calls of the product that one `explain_one` and one record of Kafka pass.

Compiled modules leave no trace, since no Python frame is made for them: it runs a copy of the product without them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parents[2]
PACKAGES = {"attributary_agents": "agents", "attributary_topics": "topics", "attributary_explainers": "explainers"}
"""The product's packages, each with the folder that it lies in."""

FEATURES, TREES, SEED, EVERY = 10, 3, 1, 10
MODEL_ID, TOPIC = "m", "attributary.observations.v1"


@dataclass(frozen=True)
class Walk:
    """The files of the product's functions that one run entered, in order, and the lines that it passed."""

    files: tuple[str, ...]
    lines: frozenset[tuple[str, int]] = frozenset()

    def of_package(self, package: str) -> tuple[int, int, int]:
        """Return how many files of one package were entered, how many of their lines, and by how many calls."""
        own = [file for file in self.files if file.startswith(package + os.sep)]
        return len(set(own)), sum(file.startswith(package + os.sep) for file, _ in self.lines), len(own)


def recorded(run: Callable[[], object], folders: Sequence[Path]) -> Walk:
    """Run something and return the calls of functions whose files lie below these folders of packages."""
    entered: list[str] = []
    lines: set[tuple[str, int]] = set()
    names: dict[str, str | None] = {}

    def name_of(file: str) -> str | None:
        if file not in names:
            folder = next((one for one in folders if Path(file).is_relative_to(one)), None)
            names[file] = None if folder is None else str(Path(file).relative_to(folder.parent))
        return names[file]

    def enter(frame: FrameType, _event: str, _argument: object) -> Any:
        name = name_of(frame.f_code.co_filename)
        if name is None:
            return None
        entered.append(name)

        def note(frame: FrameType, event: str, _argument: object) -> Any:
            if event == "line":
                lines.add((name, frame.f_lineno))
            return note

        return note

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        run()
    finally:
        sys.settrace(before)
    return Walk(tuple(entered), frozenset(lines))


def summary(name: str, walks: Sequence[Walk]) -> list[str]:
    """Return the figures of several walks in words: the middle one, and the range."""
    figures = {
        "files": [len(set(walk.files)) for walk in walks],
        "lines": [len(walk.lines) for walk in walks],
        "calls": [len(walk.files) for walk in walks],
    }
    shown = ", ".join(f"{median(n):g} {what} ({min(n)} to {max(n)})" for what, n in figures.items())
    lines = [f"{name}: {shown}; median (range) of {len(walks)}"]
    for package in PACKAGES:
        files, passed, calls = zip(*(walk.of_package(package) for walk in walks), strict=True)
        if any(calls):
            lines.append(f"  {package}: {median(files):g} files, {median(passed):g} lines, {median(calls):g} calls")
    most = Counter(file for walk in walks for file in walk.files).most_common(6)
    return [*lines, "  most called: " + ", ".join(f"{file} {n / len(walks):.1f}" for file, n in most)]


def _rows() -> Iterator[tuple[dict[str, float], bool]]:
    """Yield rows of ten numbers, of which four make the label."""
    rng = random.Random(SEED)
    while True:
        x = {f"f{n}": rng.random() for n in range(FEATURES)}
        yield x, x["f0"] + x["f1"] * x["f2"] + x["f3"] > 1.2


def _explanations(explainer: Any, model: Any, folders: Sequence[Path], warm_up: int, n: int) -> list[Walk]:
    """Return the walks of the last `n` calls of `explain_one`, beside a forest that learns from each row."""
    walks = []
    for i, (x, y) in zip(range(warm_up + n), _rows(), strict=False):
        if i < warm_up:
            explainer.explain_one(x, y)
        else:
            walks.append(recorded(lambda x=x, y=y: explainer.explain_one(x, y), folders))  # type: ignore[misc]
        model.learn_one(x, y)
    return walks


def _records(folders: Sequence[Path], warm_up: int, n: int) -> dict[int, list[Walk]]:
    """Return the walks of the last `n` records by the number of events that they publish."""
    from attributary_agents.config.reading import parse_config
    from attributary_agents.worker.partition import Partition
    from attributary_agents.worker.records import Record

    forest = {"class": "river.forest.ARFClassifier", "params": {"n_models": TREES, "seed": SEED}}
    # Every tenth record publishes an event of each explainer; model change is watched, as it is by default.
    settings = {"model": forest, "explainers": {"pfi": {}, "sage": {}}, "publish": {"every": EVERY}}
    partition = Partition(TOPIC, 0, parse_config({"models": {MODEL_ID: settings}}), lambda _key: None)
    walks: dict[int, list[Walk]] = {}
    for i, (x, y) in zip(range(warm_up + n), _rows(), strict=False):
        sent = Record(TOPIC, 0, i, 1_700_000_000_000 + i, MODEL_ID.encode(), json.dumps({"x": x, "y": y}).encode())
        published: list[Any] = []
        if i < warm_up:
            partition.handle(sent)
            continue
        walk = recorded(lambda sent=sent, out=published: out.extend(partition.handle(sent)), folders)  # type: ignore[misc]
        walks.setdefault(len(published), []).append(walk)
    return walks


def measure(checkout: Path, warm_up: int, n: int) -> None:
    """Print the walks of the product, which this process has imported from a checkout."""
    from river.forest import ARFClassifier

    from attributary_explainers import IncrementalPFI, IncrementalSAGE

    folders = [(checkout / folder / package).resolve() for package, folder in PACKAGES.items()]
    for kind in (IncrementalPFI, IncrementalSAGE):
        model = ARFClassifier(n_models=TREES, seed=SEED)
        walks = _explanations(kind(model, seed=SEED), model, folders, warm_up, n)
        print("\n".join(summary(f"{kind.__name__}.explain_one", walks)))
    for events, walks in sorted(_records(folders, warm_up, n).items()):
        print("\n".join(summary(f"a record that publishes {events} events", walks)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `walk`."""
    parser.add_argument("--warm-up", type=int, default=1500, help="observations before the first count (default: 1500)")
    parser.add_argument("--observations", type=int, default=200, help="observations that are counted (default: 200)")


def run(args: argparse.Namespace) -> int:
    """Measure in a process whose product is a copy of this checkout's, as plain Python."""
    with tempfile.TemporaryDirectory(prefix="attributary-house-") as folder:
        for package, home in PACKAGES.items():
            ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
            shutil.copytree(HERE / home / package, Path(folder) / home / package, ignore=ignored)
        path = os.pathsep.join([*(str(Path(folder) / home) for home in PACKAGES.values()), str(HERE)])
        argv = [sys.executable, "-m", __name__, folder, str(args.warm_up), str(args.observations)]
        return subprocess.run(argv, env={**os.environ, "PYTHONPATH": path}, cwd=HERE, check=False).returncode


if __name__ == "__main__":
    measure(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
