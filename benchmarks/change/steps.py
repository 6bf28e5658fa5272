"""How long a change explainer takes with one observation, by what it does then: whoever calls it stands still.

    python -m benchmarks.change.steps                      # this checkout
    python -m benchmarks.change.steps --beside CHECKOUT    # and another one
    python -m benchmarks.change.steps --importances pfi,sage

An adaptive random forest learns a stream of Agrawal whose rule changes, and is replaced by a copy of itself. Processor
time, with Python's collector off: what that takes has to do with all that a process holds.
The last column says how many observations after the window of an alarm or a version the explanation comes.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from river import forest
from river.datasets import synth

from attributary_explainers import Alarm, ChangeExplainer, ChangeExplanation, freeze
from benchmarks.scale.running import packages_of

HERE = Path(__file__).resolve().parents[2]
PHASES = ("nothing to explain", "drift", "another version", "the call new_version")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.change.steps", description=__doc__.split("\n\n")[0])
    parser.add_argument("--window", type=int, default=1000, help="K (default: 1000)")
    parser.add_argument("--trees", type=int, default=10, help="trees of the forest (default: 10)")
    parser.add_argument("--importances", default="pfi", help="methods, separated by commas (default: pfi)")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="folder of another checkout of the project")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.inside:
        print(json.dumps(measure(options.window, options.trees, options.importances.split(","))))
        return 0
    title = f"ms of one observation; Agrawal, d 9, ARF of {options.trees}, K {options.window}, {options.importances}"
    table = Table("checkout", "while", "steps", "median", "99 %", "longest", "late by", title=title)
    for checkout in (HERE, *([options.beside] if options.beside else [])):
        for phase, (steps, late) in _of_checkout(checkout.resolve(), options).items():
            cells = [statistics.median(steps), _quantile(steps, 0.99), max(steps)]
            shown = [f"{1e3 * cell:.2f}" for cell in cells]
            name = "this" if checkout == HERE else "beside"
            table.add_row(name, phase, str(len(steps)), *shown, "" if late is None else str(late))
    Console().print(table)
    return 0


def _of_checkout(checkout: Path, options: argparse.Namespace) -> dict[str, tuple[list[float], int | None]]:
    """Measure in a process with the packages of a checkout, by the code of this one."""
    given = ["--window", options.window, "--trees", options.trees, "--importances", options.importances]
    path = os.pathsep.join([packages_of(checkout), str(HERE)])
    told = subprocess.run(
        [sys.executable, "-m", "benchmarks.change.steps", "--inside", *map(str, given)],
        env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}, cwd=HERE,
        check=True, stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    found: dict[str, tuple[list[float], int | None]] = json.loads(told.splitlines()[-1])
    return found


def _quantile(steps: Sequence[float], share: float) -> float:
    return sorted(steps)[min(int(share * len(steps)), len(steps) - 1)]


def measure(window: int, trees: int, methods: Sequence[str]) -> dict[str, tuple[list[float], int | None]]:
    """Return by phase the seconds of its steps, and how many observations after it was due the explanation came."""
    _run(window, 2, methods)  # what is imported late is there
    return _run(window, trees, methods)


def _run(window: int, trees: int, methods: Sequence[str]) -> dict[str, tuple[list[float], int | None]]:
    model = forest.ARFClassifier(n_models=trees, seed=1)
    change = ChangeExplainer(model, window=window, importances=methods, seed=1)
    steps: dict[str, list[float]] = {phase: [] for phase in PHASES}
    late: dict[str, int | None] = dict.fromkeys(PHASES)
    phase, due, is_replaced = PHASES[0], 0, False
    gc.collect()
    gc.disable()
    try:
        for t, (x, y) in enumerate(_stream(window), start=1):
            y_pred = model.predict_proba_one(x)
            model.learn_one(x, y)
            began = time.process_time()
            events = change.update(x, y, y_pred)
            spent = time.process_time() - began
            for event in events:
                if isinstance(event, Alarm):
                    phase, due = PHASES[1], event.due
                elif isinstance(event, ChangeExplanation) and event.route != "check":
                    if event.failure is not None:
                        raise RuntimeError(event.failure)
                    late[phase] = t - due
            steps[phase].append(spent)
            if late[phase] is not None:
                phase = PHASES[0]
            if t == 7 * window and not is_replaced:
                is_replaced, copied = True, freeze(model)
                began = time.process_time()
                change.new_version(copied, "2")
                steps[PHASES[3]].append(time.process_time() - began)
                model, phase, due = copied, PHASES[2], t + window
    finally:
        gc.enable()
    if None in (late[PHASES[1]], late[PHASES[2]]):
        raise RuntimeError("a change was not explained")
    return {phase: (steps[phase], late[phase]) for phase in PHASES}


def _stream(window: int) -> Iterator[tuple[dict[Any, Any], Any]]:
    yield from synth.Agrawal(1, seed=1).take(4 * window)
    yield from synth.Agrawal(2, seed=2).take(5 * window)


if __name__ == "__main__":
    raise SystemExit(main())
