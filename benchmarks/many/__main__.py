"""Restart a worker that has thousands of ordinary models, on a real Apache Kafka, and print what that takes.

    python -m benchmarks.many                             # 5000 models
    python -m benchmarks.many --models 500
    python -m benchmarks.many --beside /path/to/checkout  # the same restart by another checkout's worker, first

Each model is a scaler and a logistic regression with iPFI, iSAGE and the change explainer, all on one partition. A
first worker takes ten observations of each and is stopped. A second one restarts while nothing comes. Then one more
observation of each comes, and as many again; the worker that restarts has to restore every model, each before its
observation, and makes checkpoints of all models while others wait. Processor time is that of the whole process, the
import of its packages included.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table
from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.demo.processes import start_child
from attributary_agents.kafka.observations import encode_value
from attributary_agents.kafka.topics import create_topics

HERE = Path(__file__).resolve().parents[2]
FOLDER = HERE / "build" / "many"
FEATURES = tuple("abcdefgh")
AT_FIRST = 10
TIMEOUT_S = 3600.0

out = Console(width=110)


class WatchedWorker(WorkerProcess):
    """A worker that notes when what happens, of this checkout or of another one.

    Parameters
    ----------
    checkout
        Folder with the packages to run.
    """

    def __init__(self, config: dict[str, Any], folder: Path, checkout: Path) -> None:
        super().__init__(config, folder)
        self._checkout = checkout
        self.notes_path = folder / f"notes-{self.port}.jsonl"

    def start(self) -> None:
        """Start the process."""
        packages = (self._checkout / name for name in ("agents", "explainers", "topics"))
        script = Path(__file__).with_name("watched.py")
        argv = [sys.executable, str(script), str(self.notes_path), "run", "--config", str(self.config_path)]
        path = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, packages))
        try:
            self._child = start_child(argv, log=self.log)
        finally:
            os.environ["PYTHONPATH"] = path

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        assert self._child is not None
        os.kill(self._child.pid, signal.SIGTERM)
        return self._child.wait(TIMEOUT_S)

    def notes(self, what: str) -> list[dict[str, Any]]:
        """Return what has been noted of this kind."""
        lines = self.notes_path.read_text().splitlines() if self.notes_path.exists() else []
        return [one for one in map(json.loads, lines) if one["what"] == what]


def configuration(bootstrap: str, models: int) -> dict[str, Any]:
    """So many models on one partition, with a checkpoint when one observation of each has come."""
    model = {
        "model": [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}],
        "features": dict.fromkeys(FEATURES, "number"),
        "explainers": {"pfi": {}, "sage": {}},
        "change": {},
    }
    return {
        "kafka": {"brokers": [bootstrap], "group": "many", "topic_prefix": "many", "partitions": 1},
        "models": {f"model-{number:05d}": model for number in range(models)},
        "checkpoint": {"interval_s": 3600, "max_observations": models, "max_share": 0.9, "max_replay_s": 3600},
    }


def observations(models: int, rounds: int, seed: int) -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """One observation of each model in an order of its own, so many times."""
    rng = random.Random(seed)
    found: list[tuple[bytes, bytes, list[tuple[str, bytes]]]] = []
    for _ in range(rounds):
        numbers = list(range(models))
        rng.shuffle(numbers)
        for number in numbers:
            x = {name: rng.gauss(0, 1) for name in FEATURES}
            found.append((f"model-{number:05d}".encode(), encode_value({"x": x, "y": x["a"] + x["b"] > 0}), []))
    return found


def restart_idle(worker: WatchedWorker) -> dict[str, str]:
    """Restart the worker while no observation comes, and stop it when models are restored; what that took."""
    with worker:
        wait_for("models are restored", lambda: worker.notes("restored"), TIMEOUT_S)
        if worker.stop() != 0:
            raise RuntimeError(worker.log_tail)
    (start,), (ready,), restored, (end,) = (worker.notes(what) for what in ("start", "ready", "restored", "end"))
    n_restored = restored[-1]["text"].split()[1]
    return {
        "no observation comes: until ready": _between(start, ready),
        "until those with series are restored": f"{_between(start, restored[-1])} ({n_restored} models)",
        "peak of memory without observations": f"{end['peak_bytes'] / 1e6:.0f} MB",
    }


def _between(start: dict[str, Any], one: dict[str, Any]) -> str:
    return f"{one['at'] - start['at'] + start['import_s']:.1f} s, of the processor {one['cpu']:.1f} s"


def restart(worker: WatchedWorker, bootstrap: str, topic: str, models: int, handled: int) -> dict[str, str]:
    """Send two observations of each model, restart the worker, stop it when it has handled them; what that took."""
    produce(bootstrap, topic, observations(models, 2, handled), partition=0)
    with worker:
        worker.wait_consumed(handled + 2 * models, timeout_s=TIMEOUT_S)
        if worker.stop() != 0:
            raise RuntimeError(worker.log_tail)
    (start,), (ready,), (first,) = (worker.notes(what) for what in ("start", "ready", "first observation"))
    # Each round has an observation of every model, in an order of its own.
    every = next(one for one in worker.notes("handled") if one["n"] >= models)
    checkpoint, end = worker.notes("checkpoint")[0], worker.notes("end")[-1]
    begins, ends = checkpoint["at"] - checkpoint["seconds"], checkpoint["at"] + 0.1

    def longest(what: str, since: float, until: float) -> str:
        return f"{max((one['seconds'] for one in worker.notes(what) if since < one['at'] <= until), default=0.0):.3f} s"

    return {
        "observations wait: until ready": _between(start, ready),
        "until the first observation is handled": _between(start, first),
        "until every model is restored and has handled one": _between(start, every),
        "longest pause of the loop until then": longest("loop paused", ready["at"], every["at"]),
        "longest wait of observations until then": longest("observations paused", first["at"], every["at"]),
        "a checkpoint of all lasts": f"{checkpoint['seconds']:.2f} s",
        "longest pause of the loop in it": longest("loop paused", begins, ends),
        "longest wait of observations in it": longest("observations paused", begins, ends),
        "peak of memory": f"{end['peak_bytes'] / 1e6:.0f} MB",
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.many", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=5000, help="default 5000")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="restart its worker as well, first")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the logs, emptied first (build/many)")
    args = parser.parse_args(argv)
    folder: Path = args.out.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "broker").mkdir(parents=True)
    checkouts = {"before": args.beside, "now": HERE} if args.beside else {"now": HERE}
    found: dict[str, dict[str, str]] = {}
    with KafkaBroker(folder / "broker") as broker:
        raw = configuration(broker.bootstrap, args.models)
        config = parse_config(raw)
        create_topics(config)
        topic, handled = config.kafka.topics.observations, AT_FIRST * args.models
        produce(broker.bootstrap, topic, observations(args.models, AT_FIRST, 0), partition=0)
        first = WatchedWorker(raw, folder, next(iter(checkouts.values())))
        with first:
            first.wait_consumed(handled, timeout_s=TIMEOUT_S)
            if first.stop() != 0:
                raise RuntimeError(first.log_tail)
        out.print(f"{args.models} models have taken {AT_FIRST} observations each")
        for name, checkout in checkouts.items():
            idle = restart_idle(WatchedWorker(raw, folder, checkout.absolute()))
            worker = WatchedWorker(raw, folder, checkout.absolute())
            found[name] = idle | restart(worker, broker.bootstrap, topic, args.models, handled)
            handled += 2 * args.models
    (folder / "found.yaml").write_text(yaml.safe_dump(found, sort_keys=False))
    table = Table("a restart", *found)
    for row in found["now"]:
        table.add_row(row, *(one[row] for one in found.values()))
    out.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
