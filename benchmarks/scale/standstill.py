"""Measures how long the event loop of a running worker stands still, and says what the longest standstills did.

    python -m benchmarks.scale standstill                              # all subjects, some minutes
    python -m benchmarks.scale standstill --only learn kinds           # those whose name has one of these parts
    python -m benchmarks.scale standstill --seconds 30 --json FILE

Each subject is a worker on a real Apache Kafka whose topic is filled, with a checkpoint every two seconds and a scrape
every half. A first start finds no state. After the steady time a second worker joins, which takes half of the
partitions, and leaves again. Then the worker is started once more, and restores its models. A probe inside the process
(`benchmarks/scale/subjects/watched.py`) times each turn of the loop: what it does between two looks at its sockets. A
turn longer than 20 ms and longer than its longest record by more than 2 ms is over. Time of the processor that others
had meanwhile is no turn's fault: `own` is the processor time of the loop's thread.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table
from support.waiting import wait_for

from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.demo.processes import start_child
from benchmarks.scale.cases import HERE, Case, Subject, workers
from benchmarks.scale.price import fill
from benchmarks.scale.records import model_id
from benchmarks.scale.running import TIMEOUT_S, CheckoutWorker, Runner, packages_of, python_of
from benchmarks.scale.subjects.watched import STEPS_OF_E

FOLDER = HERE / "build" / "standstill"
SLICE_S, MARGIN_S = 0.020, 0.002
"""What a slice may take, and what the turn that it is in may have beside."""

CHECKPOINT_S, SCRAPE_S = 2.0, 0.5
PHASES = ("start", "restore", "steady", "checkpoint", "rebalance", "stop")
N_MANY = 300

_TREE = {"class": "river.tree.HoeffdingTreeClassifier"}
_SCALER = {"class": "river.preprocessing.StandardScaler"}
KINDS: list[list[dict[str, Any]]] = [
    [_SCALER, {"class": "river.linear_model.LogisticRegression"}],
    [_SCALER, {"class": "river.linear_model.PAClassifier"}],
    [_TREE],
    [{"class": "river.tree.HoeffdingAdaptiveTreeClassifier", "params": {"seed": 1}}],
    [{"class": "river.naive_bayes.GaussianNB"}],
    [{"class": "river.neighbors.KNNClassifier"}],
    [{"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 1}}],
    [{"class": "river.tree.ExtremelyFastDecisionTreeClassifier"}],
]
"""Models that take turns among those of the subject with many."""

out = Console(width=150)


class WatchedWorker(CheckoutWorker):
    """A worker whose event loop is watched; each start has a file of its own."""

    n_starts = 0

    @property
    def found_path(self) -> Path:
        """What the probe of the last start has written."""
        return self.config_path.with_suffix(f".{self.n_starts}.json")

    def start(self) -> None:
        """Start the process."""
        self.n_starts += 1
        module = [python_of(HERE), "-m", "benchmarks.scale.subjects.watched", str(self.found_path)]
        argv = [*module, "run", "--config", str(self.config_path)]
        self._child = start_child(argv, log=self.log, env={"PYTHONPATH": packages_of(HERE)})


def subjects() -> dict[str, tuple[Case, Subject, dict[str, Any]]]:
    """Return what is measured, by name: a case, its subject, and further sections of the configuration."""
    light = Case("light", "logreg", 10, 2, 1, 2, 0, 600_000, "standstill-light")
    forest = replace(light, name="forest", model="arf10", last=60_000, own_prefix="standstill-forest")
    many = replace(light, name="kinds", models=N_MANY, last=300_000, own_prefix="standstill-kinds")
    found: dict[str, tuple[Case, Subject, dict[str, Any]]]
    found = {name.split(", ", 1)[1]: (light, one, {}) for name, one in workers().items() if one.model is None}
    found["ARF(10)"] = (forest, Subject("ARF(10)", settings={}), {})
    models = {model_id(number): {"model": KINDS[number // 2 % len(KINDS)]} for number in range(N_MANY)}
    found[f"{N_MANY} kinds"] = (many, Subject("kinds", settings={}), {"models": models})
    return found


def measure(runner: Runner, case: Case, subject: Subject, sections: Mapping[str, Any], seconds: float) -> list[Any]:
    """Run a subject; return what the probes of its two starts have found."""
    often = {"checkpoint": {"interval_s": CHECKPOINT_S}, **sections}
    other, twin = runner.worker(replace(case, workers=2), subject, **often)
    watched = WatchedWorker(yaml.safe_load(twin.config_path.read_text()), runner.folder, HERE)
    found = []
    with watched:
        _scrape(watched, lambda: watched.total("records_consumed_total") > 0)
        _scrape(watched, _after(seconds))
        handled = watched.total("records_consumed_total")
        with other:
            _scrape(watched, lambda: other.total("records_consumed_total") > 0)
            _scrape(watched, _after(CHECKPOINT_S))
            other.stop()
            _scrape(watched, _after(2 * CHECKPOINT_S))
        watched.stop()
        found.append({**_read(watched.found_path), "handled": handled, "waited": handled < case.filled})
        watched.start()
        _scrape(watched, watched.is_ready)
        _scrape(watched, _after(seconds / 2))
        watched.stop()
        found.append(_read(watched.found_path))
    return found


def _after(seconds: float) -> Any:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


def _scrape(worker: WatchedWorker, until: Any) -> None:
    """Scrape a worker over and over until something holds."""

    def asked() -> bool:
        if worker.exit_code is not None:
            raise RuntimeError(f"the worker ended with {worker.exit_code}:\n{worker.log_tail}")
        worker.metrics()
        return bool(until())

    wait_for("the worker is that far", asked, TIMEOUT_S, every_s=SCRAPE_S)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def is_over(turn: Mapping[str, Any]) -> bool:
    """Return whether a turn took longer than is promised: a slice, or one record where that takes longer."""
    return bool(turn["s"] > max(SLICE_S, turn["record_s"]) + MARGIN_S)


def quantile(counted: Mapping[str, int], share: float) -> float:
    """Return the length in seconds that this share of the turns does not exceed, to 1 %; 0 where there are none."""
    left = share * sum(counted.values())
    for step, n in sorted((int(step), n) for step, n in counted.items()):
        left -= n
        if left <= 0:
            return math.exp(step / STEPS_OF_E)
    return 0.0


def share_of_time(counted: Mapping[str, int], beyond_s: float) -> float:
    """Return the share of the busy time that lies in turns longer than this."""
    times = {math.exp(int(step) / STEPS_OF_E): n for step, n in counted.items()}
    return sum(s * n for s, n in times.items() if s > beyond_s) / max(sum(s * n for s, n in times.items()), 1e-9)


def together(found: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Counter[str]], dict[str, list[Any]]]:
    """Return the counts of turns and the long turns of several starts, by phase."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    long: dict[str, list[Any]] = defaultdict(list)
    for one in found:
        for phase, counts in one["counted"].items():
            counted[phase].update(counts)
        for phase, turns in one["long"].items():
            long[phase] += turns
    return counted, long


def show(name: str, found: Sequence[Mapping[str, Any]], n_shown: int) -> None:
    """Print what the probes of a subject have found."""
    counted, long = together(found)
    cost, handles = found[0]["cost"], sum(one["n_handles"] for one in found)
    turns = sum(sum(one.values()) for one in counted.values())
    busy_s = sum(math.exp(int(step) / STEPS_OF_E) * n for one in counted.values() for step, n in one.items())
    probe_s = turns * cost["turn_s"] + handles * cost["handle_s"]
    gc_ms = {k: round(1e3 * max(float(one["gc"].get(k, 0)) for one in found), 1) for k in ("0", "1", "2")}
    waits = "some still waited" if found[0]["waited"] else "NONE waited any more: give it more"
    table = Table(
        title=f"{name}: turns of the loop, ms. {found[0]['handled']} records in the steady time, {waits}. The probe "
        f"took {probe_s / max(busy_s, 1e-9):.1%}; longest collections {gc_ms}",
        title_justify="left",
    )
    for column in ("phase", "turns", "median", "p99", "p99.9", "worst", "over", "of these own", "time in over 22 ms"):
        table.add_column(column, justify="left" if column == "phase" else "right")
    for phase in PHASES:
        if counts := counted.get(phase):
            over = [turn for turn in long.get(phase, ()) if is_over(turn)]
            own = [turn for turn in over if is_over({**turn, "s": turn["cpu_s"]})]
            figures = [f"{1e3 * quantile(counts, share):.3g}" for share in (0.5, 0.99, 0.999, 1.0)]
            beyond = f"{share_of_time(counts, SLICE_S + MARGIN_S):.1%}"
            table.add_row(phase, str(sum(counts.values())), *figures, str(len(over)), str(len(own)), beyond)
    out.print(table)
    for phase in PHASES:
        over = sorted(filter(is_over, long.get(phase, ())), key=lambda turn: -turn["s"])
        for turn in over[:n_shown]:
            parts = ", ".join(f"{what[:-2]} {1e3 * turn[what]:.1f}" for what in ("cpu_s", "gc_s", "record_s"))
            scraped = ", while scraped" if turn["scraped"] else ""
            out.print(f"  {phase}: {1e3 * turn['s']:.1f} ms ({parts}{scraped}): {turn['handle']}", highlight=False)
            out.print(f"      took {1e3 * turn['handle_s']:.1f}; seen: {' | '.join(turn['seen'][:2])}", highlight=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print."""
    args = _parser().parse_args(argv)
    chosen = {name: one for name, one in subjects().items() if not args.only or any(part in name for part in args.only)}
    if not chosen:
        raise SystemExit("nothing to measure: --only leaves no subject")
    folder: Path = args.out.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    load, found = os.getloadavg()[0], {}
    with KafkaBroker(folder / "broker") as broker:
        runner, filled = Runner(broker, folder), set()
        for name, (case, subject, sections) in chosen.items():
            if case.prefix not in filled:
                filled.add(case.prefix)
                fill(broker, case)
            found[name] = measure(runner, case, subject, sections, args.seconds)
            show(name, found[name], args.shown)
    out.print(f"load of the machine: {load:.1f} before, {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores")
    if args.json is not None:
        args.json.write_text(json.dumps(found) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale standstill",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", metavar="PART", help="subjects whose name has one of these parts")
    parser.add_argument("--seconds", type=float, default=10.0, help="of steady work (10)")
    parser.add_argument("--shown", type=int, default=4, help="longest turns that are shown of each phase (4)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything as JSON")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the logs, emptied first (build/standstill)")
    return parser
