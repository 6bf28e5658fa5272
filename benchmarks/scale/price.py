"""Measures what a record costs: the worker beside a bare Faust agent and hand-written loops, in one run on real Kafka.

    python -m benchmarks.scale price                          # one light model, some minutes
    python -m benchmarks.scale --quick                        # two rounds of few records, three minutes
    python -m benchmarks.scale --full                         # every case, half an hour
    python -m benchmarks.scale --cases one many --only worker # some
    python -m benchmarks.scale --json FILE                   # everything, as JSON

Topics are filled beforehand. Subjects take turns, in every round in another order; each is a process of its own with a
group of its own that reads from the topic's beginning, and is measured between two records. Figures are processor time
of all its threads, read from outside. Ratios are of the same round; behind each stand the least and the largest.
Latency is from the producer's time stamp to the event at a consumer, at half of the records a second that the subject
has just handled.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from support.kafka import produce

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.kafka.topics import create_topics
from benchmarks.scale import report
from benchmarks.scale.cases import (
    EVERYTHING,
    HERE,
    N_SAMPLES,
    Case,
    Subject,
    cases,
    configuration,
    loops,
    missing,
    workers,
)
from benchmarks.scale.latency import Waited, measure
from benchmarks.scale.records import records
from benchmarks.scale.running import Runner, Taken

FOLDER = HERE / "build" / "scale"
out = Console(width=150)

QUICK, USUAL = 20_000, 120_000
FULL_CASES = ("one", "wide", "many", "forest", "forest, 2 workers")
_IN_MANY = ("learn", "iPFI 10")
"""Subjects of the case of many models: those that differ there."""
_IN_FORESTS = (*_IN_MANY, EVERYTHING)
"""Subjects of the cases of forests: what explaining costs beside a model that takes long to learn."""


def fill(broker: KafkaBroker, case: Case) -> None:
    """Create the topics of a case and fill them."""
    raw = configuration(case, Subject("", settings={}), broker.bootstrap, f"fill-{case.prefix}")
    config = parse_config(raw)
    create_topics(config)
    topic, share = config.kafka.topics.observations, case.filled // case.partitions
    for partition in range(case.partitions):
        made = records(share, case.features, case.models, case.partitions, partition)
        produce(broker.bootstrap, topic, ((key, value, []) for key, value in made), partition=partition)


def subjects_of(case: Case, among: Sequence[Subject]) -> list[Subject]:
    """Return the subjects that are run in a case."""
    if case.name in ("one", "wide"):
        return list(among)
    names = _IN_MANY if case.name == "many" else _IN_FORESTS
    return [
        one
        for one in among
        if (one.is_worker and one.name.split(", ", 1)[1] in names)
        or (case.workers == 1 and one.name == "confluent-kafka, learn")
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print."""
    args = _parser().parse_args(argv)
    n = args.records or (QUICK if args.quick else USUAL)
    rounds = args.rounds or (2 if args.quick else 3)
    names = args.cases or (FULL_CASES if args.full else ("one",))
    found = run(args, [cases(n)[name] for name in names], rounds)
    for made in report.tables(found):
        out.print(made)
    before, after = found["machine_load"]
    out.print(f"load of the machine: {before:.1f} before, {after:.1f} after, on {os.cpu_count()} cores")
    if max(before, after) > (os.cpu_count() or 1) + 1:
        out.print(
            "CAUTION: others worked on this machine: ratios are rough, and latencies are those of the others' load"
        )
    if absent := missing():
        out.print(f"not installed (`make reference`): {', '.join(absent)}")
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
        out.print(f"written: {args.json}")
    return 0


def run(args: argparse.Namespace, chosen: Sequence[Case], rounds: int) -> dict[str, Any]:
    """Run every subject of every case in turns; return what they took, as plain data."""
    among = [*loops().values(), *workers().values()]
    if args.only:
        among = [one for one in among if any(part in one.name for part in args.only)]
    if args.latency and find_spec("confluent_kafka") is None:
        out.print("latency is not measured: what sends at an even rate needs confluent-kafka (`make reference`)")
        args.latency = False
    turns = [(case, one) for case in chosen for one in subjects_of(case, among)]
    if not turns:
        raise SystemExit("nothing to measure: --only leaves no subject of these cases")
    waiting = [one for one in among if one.n_samples or one.name.endswith(", default")] if args.latency else []
    folder: Path = args.out.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    loads = [os.getloadavg()[0]]
    taken: list[Taken] = []
    waited: list[Waited] = []
    alone: dict[str, dict[str, float]] = {}
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with (
        Progress(*columns, console=Console(stderr=True), transient=True) as progress,
        KafkaBroker(folder / "broker") as broker,
    ):
        steps = len(turns) * rounds + 2 * len(chosen)
        task = progress.add_task("filling the topics", total=steps + len(waiting))
        runner = Runner(broker, folder)
        for prefix, case in {case.prefix: case for case in sorted(chosen, key=lambda one: one.filled)}.items():
            progress.update(task, description=f"filling {prefix}")
            fill(broker, case)
        progress.advance(task, len(chosen))
        for number in range(rounds):
            order = turns if number == 0 else random.Random(number).sample(turns, len(turns))
            for case, subject in order:
                progress.update(task, description=f"round {number + 1}: {case.name}: {subject.name}")
                taken.append(runner.run(case, subject, number))
                progress.advance(task)
        for case in chosen:
            progress.update(task, description=f"{case.name}: the model alone")
            alone[case.name] = runner.alone(case, N_SAMPLES, 1000 if case.model == "arf10" else 3000)
            progress.advance(task)
        first = chosen[0]
        for subject in waiting:
            progress.update(task, description=f"half load: {subject.name}")
            rates = sorted(one.per_s for one in taken if (one.case, one.subject) == (first.name, subject.name))
            seconds = 5.0 if args.quick else 15.0
            if rates:
                waited.append(measure(runner, broker, first, subject, rates[len(rates) // 2] / 2, seconds))
            progress.advance(task)
    return {
        "versions": {name: version(name) for name in ("river", "faust-streaming", "aiokafka", "numpy")},
        "machine_load": [*loads, os.getloadavg()[0]],
        "rounds": rounds,
        "cases": [asdict(case) for case in chosen],
        "taken": [asdict(one) for one in taken],
        "alone": alone,
        "waited": [asdict(one) for one in waited],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="two rounds of few records: two to three minutes")
    size.add_argument("--full", action="store_true", help="every case")
    parser.add_argument("--cases", nargs="+", choices=FULL_CASES, metavar="CASE", help=f"of {', '.join(FULL_CASES)}")
    parser.add_argument("--only", nargs="+", metavar="PART", help="subjects whose name has one of these parts")
    parser.add_argument("--records", type=int, help=f"measured of one light model (default {USUAL})")
    parser.add_argument("--rounds", type=int, help="default 3; with --quick 2")
    parser.add_argument("--no-latency", dest="latency", action="store_false", help="do not measure latency")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything as JSON")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the logs, emptied first (build/scale)")
    return parser
