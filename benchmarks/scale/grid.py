"""Measures what a record costs a worker as features, draws, models, partitions and checkpoints grow, on real Kafka.

    python -m benchmarks.scale grid --json benchmarks/scale/measured.json   # what `fit` is made of
    python -m benchmarks.scale grid --only learn --rounds 1

Points take turns. Beside each one its model is timed in the worker's own functions, without Kafka, and the yardstick,
in the same minute: what is kept of a point are ratios to the yardstick, so that a machine which is slow for a while
makes no point dear.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.planning.plan import models_stored
from attributary_agents.planning.timing import time_model, yardstick
from benchmarks.scale.cases import HERE, Case, Subject, configuration
from benchmarks.scale.price import fill
from benchmarks.scale.records import MODEL_ID, values
from benchmarks.scale.running import Runner

FOLDER = HERE / "build" / "scale-grid"
LIGHT, HEAVY = 20_000, 1500
"""Measured records of light models, and of those that take milliseconds."""


@dataclass(frozen=True)
class Point:
    """One configuration that is measured."""

    name: str
    explainers: dict[str, Any]
    model: str = "logreg"
    features: int = 10
    models: int = 1
    partitions: int = 1
    checkpoint: dict[str, Any] | None = None
    is_slow: bool = False

    @property
    def case(self) -> Case:
        """The stream."""
        n = HEAVY if self.is_slow else LIGHT
        first = max(n // 4, 2 * self.models)
        return Case(self.name, self.model, self.features, self.models, 1, self.partitions, first, first + n)

    @property
    def subject(self) -> Subject:
        """The worker."""
        sections = {"checkpoint": self.checkpoint} if self.checkpoint else {}
        return Subject(self.name, settings={"explainers": self.explainers, "change": None}, sections=sections)


def _pfi(n: int) -> dict[str, Any]:
    return {"pfi": {"n_samples": n}}


def _sage(m: int) -> dict[str, Any]:
    return {"sage": {"n_samples": m}}


def _every(n: int) -> dict[str, Any]:
    return {"interval_s": 3600, "max_observations": n, "max_share": 0.9}


POINTS = (
    Point("learn", {}),
    Point("learn, 100 features", {}, features=100),
    Point("iPFI 1", _pfi(1)),
    Point("iPFI 10", _pfi(10)),
    Point("iPFI 1, 100 features", _pfi(1), features=100, is_slow=True),
    Point("iPFI 10, 100 features", _pfi(10), features=100, is_slow=True),
    Point("iSAGE 5", _sage(5)),
    Point("iPFI 10, iSAGE 10", {**_pfi(10), **_sage(10)}),
    Point("forest, learn", {}, model="arf10", is_slow=True),
    Point("forest, iPFI 10", _pfi(10), model="arf10", is_slow=True),
    Point("forest, stored every 200", {}, model="arf10", checkpoint=_every(200), is_slow=True),
    Point("learn, 1000 models", {}, models=1000),
    Point("learn, 1000 models, stored every 500", {}, models=1000, checkpoint=_every(500)),
    Point("iPFI 10, 1000 models, stored every 500", _pfi(10), models=1000, checkpoint=_every(500)),
    Point("learn, stored every 100", {}, checkpoint=_every(100)),
    Point("learn, 16 partitions", {}, models=16, partitions=16),
    Point("iPFI 10, 16 partitions, stored every 50", _pfi(10), models=16, partitions=16, checkpoint=_every(50)),
)


def measure(runner: Runner, broker: KafkaBroker, point: Point, number: int) -> dict[str, Any]:
    """Return one point's figures of one round, in yardsticks where they are times."""
    raw = configuration(point.case, point.subject, broker.bootstrap, "grid")
    config = parse_config(raw)
    before = yardstick()
    timed = time_model(config, MODEL_ID, values(point.features)[:200], 0.6)
    middle = yardstick()
    taken = runner.run(point.case, point.subject, number)
    unit = (before + middle + 2 * yardstick()) / 4
    stored = models_stored(config, timed.encode_s, point.models, point.partitions, taken.per_s)
    return {
        "point": point.name,
        "round": number,
        "yardstick_us": 1e6 * unit,
        "record": 1e-6 * taken.cpu_us / unit,
        "broker": 1e-6 * taken.broker_us / unit,
        "rss": taken.rss,
        "load": {
            "models": point.models,
            "stored": stored,
            "state_bytes": timed.state_bytes,
            "step": timed.step_s / unit,
        },
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale grid",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--only", nargs="+", metavar="PART", help="points whose name has one of these parts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the logs, emptied first (build/scale-grid)")
    args = parser.parse_args(argv)
    points = [one for one in POINTS if not args.only or any(part in one.name for part in args.only)]
    folder: Path = args.out.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found: list[dict[str, Any]] = []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    out = Console(width=120)
    with Progress(*columns, console=Console(stderr=True)) as progress, KafkaBroker(folder / "broker") as broker:
        task = progress.add_task("filling the topics", total=len(points) * args.rounds)
        runner = Runner(broker, folder)
        for case in {one.case.prefix: one.case for one in sorted(points, key=lambda one: one.case.filled)}.values():
            fill(broker, case)
        for number in range(args.rounds):
            for point in random.Random(number).sample(points, len(points)):
                progress.update(task, description=f"round {number + 1}: {point.name}")
                found.append(measure(runner, broker, point, number))
                out.print(f"{point.name}: {found[-1]['record']:.2f} yardsticks of {found[-1]['yardstick_us']:.1f} µs")
                progress.advance(task)
                if args.json is not None:  # after each point: what is measured so far is not lost
                    _write(args.json, args.rounds, found)
    return 0


def _write(path: Path, rounds: int, found: list[dict[str, Any]]) -> None:
    data = {
        "made_by": f"python -m benchmarks.scale grid --rounds {rounds}: {len(found)} measurements",
        "versions": {name: version(name) for name in ("river", "faust-streaming", "aiokafka", "numpy")},
        "points": [{key: value for key, value in asdict(one).items() if key != "is_slow"} for one in POINTS],
        "measured": [_rounded(one) for one in found],
    }
    path.write_text(json.dumps(data, indent=1) + "\n")


def _rounded(value: Any) -> Any:
    """Return plain data with floats of five digits: more would be noise in a committed file."""
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
