"""Runs one subject over a topic that is filled, and says what a record took: of it, of the broker, and in memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.demo.processes import kill_child, start_child
from attributary_agents.kafka.topics import create_topics
from benchmarks.process import processor_s, resident
from benchmarks.scale.cases import HERE, NOTHING, Case, Subject, configuration

TIMEOUT_S = 240.0
PACKAGES = os.pathsep.join(map(str, [*(HERE / name for name in ("agents", "explainers", "topics")), HERE]))
"""The path on which a process finds the packages and the benchmarks."""


@dataclass(frozen=True)
class Taken:
    """What a subject took in one round.

    Attributes
    ----------
    n
        Records between the two readings.
    cpu_us, broker_us
        Microseconds of processor time of a record: of the subject's processes, and of the broker.
    per_s
        Records a second, of all processes together.
    rss, pss
        Bytes in memory at the end, of all processes together.
    """

    case: str
    subject: str
    round: int
    n: int
    cpu_us: float
    broker_us: float
    per_s: float
    rss: float
    pss: float


@dataclass(frozen=True)
class Reading:
    """How far subjects were at one moment."""

    n: int
    cpu: float
    broker: float
    at: float


class ScaleWorker(WorkerProcess):
    """`attributary run` in a process of its own, of a configuration with thousands of equal models."""

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        super().__init__(config, folder)
        # Aliases in place of thousands of equal models; this folder is where the configuration's modules are found.
        self.config_path.write_text(yaml.safe_dump({**config, "web": {"port": self.port}}, sort_keys=False))

    def start(self) -> None:
        """Start the process."""
        argv = [sys.executable, "-m", "attributary_agents.cli", "run", "--config", str(self.config_path)]
        self._child = start_child(argv, log=self.log, env={"PYTHONPATH": PACKAGES})


class TooFewError(Exception):
    """There were too few records to measure a subject by."""


class Runner:
    """Runs subjects on one broker.

    Parameters
    ----------
    folder
        For configurations and logs.
    """

    def __init__(self, broker: KafkaBroker, folder: Path) -> None:
        self._broker, self.folder = broker, folder
        (folder / "nothing.py").write_text(NOTHING)

    def run(self, case: Case, subject: Subject, number: int) -> Taken:
        """Run a subject from the topic's beginning; return what it took in a round of this number."""
        measure = self._measure_worker if subject.is_worker else self._measure_loop
        begin, end, (rss, pss) = measure(case, subject)
        n = end.n - begin.n
        if n <= 0:
            raise TooFewError(f"{subject.name} handled all records between two looks: give it more (--records)")
        return Taken(
            case.name,
            subject.name,
            number,
            n,
            1e6 * (end.cpu - begin.cpu) / n,
            1e6 * (end.broker - begin.broker) / n,
            n / (end.at - begin.at),
            rss,
            pss,
        )

    def alone(self, case: Case, n_samples: int, n: int) -> dict[str, float]:
        """Return the microseconds that the model takes without Kafka and worker, and those of the explained one."""
        given = {"model": case.model, "features": case.features, "n_samples": n_samples, "last": n}
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.scale.subjects.alone", json.dumps(given)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": PACKAGES},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        found: dict[str, float] = json.loads(done.stdout)
        return found

    @contextlib.contextmanager
    def loop(self, case: Case, subject: Subject, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
        """Run a hand-written loop inside the block; what it prints is in its log, `log_of`."""
        group = f"loop-{uuid.uuid4().hex[:8]}"
        folder = self.folder / group
        folder.mkdir()
        given = {
            "brokers": self._broker.bootstrap,
            "group": group,
            "topic": f"{case.prefix}.observations.v1",
            "partitions": case.partitions,
            "model": case.model,
            "n_samples": subject.n_samples,
            "every": 500 if subject.n_samples else 0,
            "events": f"{case.prefix}.importances.v1",
            "first": case.first,
            "last": case.last,
            "folder": str(folder),
            **more,
        }
        self._log = folder / "log"
        child = start_child(
            [sys.executable, "-m", f"benchmarks.scale.subjects.{subject.module}", json.dumps(given)],
            log=self._log,
            env={"PYTHONPATH": PACKAGES, "PYTHONWARNINGS": "ignore"},
        )
        try:
            yield child
        finally:
            kill_child(child)

    def worker(self, case: Case, subject: Subject, **more: Any) -> list[ScaleWorker]:
        """Return the workers of a case, not started yet; their topics are there."""
        raw = configuration(case, subject, self._broker.bootstrap, f"worker-{uuid.uuid4().hex[:8]}", **more)
        if subject.model != "nothing":  # whose module is not on our path
            create_topics(parse_config(raw))
        else:
            create_topics(parse_config(configuration(case, Subject("", settings={}), **_group(raw), **more)))
        return [ScaleWorker(raw, self.folder) for _ in range(case.workers)]

    def _measure_loop(self, case: Case, subject: Subject) -> tuple[Reading, Reading, tuple[float, float]]:
        with self.loop(case, subject) as child:
            found = []
            for number in (1, 2):
                line = wait_for(f"{subject.name} at mark {number}", partial(self._mark, child, number), TIMEOUT_S)
                assert line is not None
                assert self._broker.pid is not None
                found.append(Reading(line["n"], line["cpu"], processor_s(self._broker.pid), line["at"]))
            return found[0], found[1], _sizes([child.pid])

    def _mark(self, child: subprocess.Popen[bytes], number: int) -> dict[str, Any] | None:
        lines = self._log.read_text(errors="replace").splitlines()
        marks = [line for line in lines if line.startswith('{"n"')]
        if child.poll() is not None and len(marks) < number:
            raise RuntimeError("\n".join(lines[-20:]))
        return json.loads(marks[number - 1]) if len(marks) >= number else None

    def _measure_worker(self, case: Case, subject: Subject) -> tuple[Reading, Reading, tuple[float, float]]:
        workers = self.worker(case, subject)
        with ExitStack() as stack:
            for worker in workers:
                stack.enter_context(worker)
            begin = self._begun(case, workers)
            end = self._ended(case, workers, begin)
            return begin, end, _sizes([worker.pid for worker in workers])

    def _read(self, workers: Sequence[WorkerProcess]) -> Reading | None:
        """Return how far all workers are; None before each of them has a partition."""
        counts = []
        for worker in workers:
            if worker.exit_code is not None:
                raise RuntimeError(f"the worker ended with {worker.exit_code}:\n{worker.log_tail}")
            counts.append(worker.metrics().get("attributary_records_consumed_total", {}))
        if not all(counts):
            return None
        assert self._broker.pid is not None
        n = int(sum(sum(one.values()) for one in counts))
        cpu = sum(processor_s(worker.pid) for worker in workers)
        return Reading(n, cpu, processor_s(self._broker.pid), time.monotonic())

    def _begun(self, case: Case, workers: Sequence[WorkerProcess]) -> Reading:
        def begun() -> Reading | None:
            found = self._read(workers)
            return found if found is not None and found.n >= case.first else None

        return wait_for("the first records are handled", begun, TIMEOUT_S, every_s=0.2)  # type: ignore[return-value]

    def _ended(self, case: Case, workers: Sequence[WorkerProcess], begin: Reading) -> Reading:
        """Return the last reading at which records still waited: with few scrapes, which the worker has to answer."""
        last, pause_s, deadline = begin, 0.4, time.monotonic() + TIMEOUT_S
        while True:
            time.sleep(pause_s)
            now = self._read(workers)
            if now is None:
                raise RuntimeError("a worker has lost its partitions while it was measured")
            if now.n >= case.filled:  # it may have waited for the end of this pause
                return last if last.n - begin.n > (case.last - begin.n) / 2 else now
            if now.n >= case.last:
                return now
            last = now
            if now.at > deadline:
                raise TimeoutError(f"{now.n} of {case.last} records")
            rate = (now.n - begin.n) / (now.at - begin.at)
            pause_s = max(0.2, 0.7 * (case.last - now.n) / max(rate, 1.0))


def _group(raw: dict[str, Any]) -> dict[str, str]:
    return {"brokers": raw["kafka"]["brokers"][0], "group": raw["kafka"]["group"]}


def _sizes(pids: Sequence[int]) -> tuple[float, float]:
    """Return the bytes that processes have resident together, as RSS and as PSS."""
    found = [resident(pid) for pid in pids]
    return 1e6 * sum(one.total for one in found), 1e6 * sum(one.proportional for one in found)
