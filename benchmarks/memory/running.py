"""Runs a worker with one small model on Apache Kafka, and reads its memory; and its stages, without Kafka."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.kafka.observations import encode_value
from attributary_agents.kafka.topics import create_topics
from benchmarks.process import Resident, processor_s, resident

FEATURES = tuple(f"f{number}" for number in range(9))
MODEL = "credit"
TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Run:
    """What one worker took.

    Attributes
    ----------
    start, end
        Memory when the worker is ready, and after the last observation.
    threads
        Of the process, at the end.
    ready_s, ready_cpu_s
        Seconds from the start of the process until it is ready, and those of the processor.
    """

    start: Resident
    end: Resident
    threads: int
    ready_s: float
    ready_cpu_s: float


@dataclass(frozen=True)
class Stage:
    """Memory and processor time that one stage of a start adds."""

    name: str
    added: Resident
    cpu_s: float


def configuration(bootstrap: str, name: str) -> dict[str, Any]:
    """One linear model of nine numbers with iPFI and iSAGE, with topics and a group of this name."""
    model = {
        "model": [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}],
        "features": dict.fromkeys(FEATURES, "number"),
        "explainers": {"pfi": {"n_samples": 5}, "sage": {"n_samples": 5}},
        "publish": {"every": 100},
    }
    return {
        "kafka": {"brokers": [bootstrap], "group": name, "topic_prefix": name, "partitions": 1},
        "models": {MODEL: model},
    }


def observations(n: int) -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """Observations whose label is whether the first number is larger than the second; always the same."""
    rng = random.Random(1)
    rows = ({name: rng.random() for name in FEATURES} for _ in range(n))
    return [(MODEL.encode(), encode_value({"x": x, "y": x["f0"] > x["f1"]}), []) for x in rows]


def run_worker(bootstrap: str, name: str, n: int, folder: Path) -> Run:
    """Start a worker, have it handle n observations, stop it."""
    config = configuration(bootstrap, name)
    create_topics(parsed := parse_config(config))
    worker = WorkerProcess(config, folder, forked=False)  # its start is measured, and what it shares with nobody
    began = time.monotonic()
    with worker:
        wait_for("the worker is ready", worker.is_ready, TIMEOUT_S)
        ready_s, ready_cpu_s = time.monotonic() - began, processor_s(worker.pid)
        start = resident(worker.pid)
        produce(bootstrap, parsed.kafka.topics.observations, observations(n), partition=0)
        worker.wait_consumed(n, timeout_s=TIMEOUT_S)
        end, threads = resident(worker.pid), len(list(Path(f"/proc/{worker.pid}/task").iterdir()))
        if worker.stop() != 0:
            raise RuntimeError(worker.log_tail)
    return Run(start, end, threads, ready_s, ready_cpu_s)


def run_stages() -> list[Stage]:
    """Start a worker in stages; return what each adds."""
    config = json.dumps(configuration("127.0.0.1:9", "stages"))
    argv = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("stages.py")), config]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    found: list[Stage] = []
    before = Resident(0.0, 0.0, 0.0)
    for one in json.loads(said):
        name, cpu_s = one.pop("stage"), one.pop("cpu_s")
        now = Resident(**one)
        found.append(Stage(name, now.less(before), cpu_s))
        before = now
    return found
