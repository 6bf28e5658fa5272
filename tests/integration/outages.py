"""An outage of the only broker of a worker that has observations pending, and what its probes say of it."""

from __future__ import annotations

import re
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.kafka.topics import create_topics

OBSERVATIONS = 200
"""Sent before the broker goes, and again after its return."""


@dataclass(frozen=True)
class Asked:
    """One answer of a worker to a probe; status 0 where there was none within five seconds."""

    path: str
    at: float
    status: int
    text: str


class Probe:
    """Asks a worker's /livez and /readyz once a second, from a thread of its own, inside the block."""

    def __init__(self, port: int, every_s: float = 1.0) -> None:
        self.answers: list[Asked] = []
        self._url = f"http://127.0.0.1:{port}"
        self._every_s = every_s
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._closed.wait(self._every_s):
            self.answers += [self.ask("/livez"), self.ask("/readyz")]

    def ask(self, path: str) -> Asked:
        """Return the answer to one request."""
        at = time.monotonic()
        try:
            with urllib.request.urlopen(f"{self._url}{path}", timeout=5) as answer:
                return Asked(path, at, answer.status, answer.read().decode().strip())
        except urllib.error.HTTPError as error:
            return Asked(path, at, error.code, error.read().decode().strip())
        except OSError as error:
            return Asked(path, at, 0, str(error))

    def of(self, path: str, since: float = 0.0) -> list[Asked]:
        """Return the answers of one path, from a moment on."""
        return [answer for answer in self.answers if answer.path == path and answer.at >= since]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._closed.set()
        self._thread.join()


@dataclass
class Outage:
    """What was seen of one outage.

    Attributes
    ----------
    lasted_s
        Seconds without a broker.
    missing
        Observations that were sent and are not in the worker's count at the end.
    """

    lasted_s: float
    missing: int = 0
    exit_code: int | None = None
    livez: list[Asked] = field(default_factory=list)
    readyz: list[Asked] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)

    @property
    def attempts(self) -> int | None:
        """Attempts to connect while no broker answered, as the log says; None where it does not."""
        found = [int(n) for line in self.log for n in re.findall(r"answers again, after .* and (\d+) attempts", line)]
        return found[-1] if found else None


def settings(bootstrap: str, **sections: Any) -> dict[str, Any]:
    """Return a configuration of one scaled logistic regression, stored every two seconds."""
    model = {
        "model": [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}],
        "features": {"a": "number", "b": "number"},
        "explainers": {"pfi": {"n_samples": 2}},
    }
    kafka = {"brokers": [bootstrap], "group": "away", "topic_prefix": "away", "partitions": 1}
    checkpoint = {"interval_s": 2, "max_observations": 100_000}
    return {"kafka": kafka, "models": {"credit": model}, "checkpoint": checkpoint, **sections}


def records(first: int, n: int) -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """Return observations, as they are sent."""
    return [
        (
            b"credit",
            b'{"x": {"a": %f, "b": %f}, "y": %s}' % (i % 7 / 7, i % 5 / 5, b"true" if i % 7 > 3 else b"false"),
            [],
        )
        for i in range(first, first + n)
    ]


def outage(broker: KafkaBroker, folder: Path, lasts_s: float, **sections: Any) -> Outage:
    """Run a worker, end its broker with observations pending, and start it again after so long."""
    raw = settings(broker.bootstrap, **sections)
    config = parse_config(raw)
    create_topics(config)
    topic = config.kafka.topics.observations
    with WorkerProcess(raw, folder) as worker, Probe(worker.port) as probe:
        wait_for("the worker is ready", worker.is_ready, 120)
        produce(broker.bootstrap, topic, records(0, OBSERVATIONS))
        worker.wait_consumed(OBSERVATIONS - 1, timeout_s=120)
        broker.kill()
        went = time.monotonic()
        logged = len(_lines(worker))
        wait_for("the worker has noticed", lambda: probe.ask("/readyz").status == 503, 60)
        found = Outage(0.0)
        threading.Event().wait(max(lasts_s - (time.monotonic() - went), 0.0))
        found.metrics = worker.metrics()
        broker.start()
        back = time.monotonic()
        found.lasted_s = back - went
        wait_for("the worker is ready again", worker.is_ready, 120)
        wait_for("all is stored", lambda: not any(_pending(worker)), 120)
        found.livez, found.readyz = (
            probe.of("/livez", went),
            [one for one in probe.of("/readyz", went) if one.at < back],
        )
        produce(broker.bootstrap, topic, records(OBSERVATIONS, OBSERVATIONS))
        wait_for("what comes later is handled", lambda: _handled(worker) >= 2 * OBSERVATIONS, 120)
        found.missing = 2 * OBSERVATIONS - _handled(worker)
        # A thread of its own logs what is due once a second; all else may have been faster.
        wait_for("the log tells of its return", lambda: any(_is_back(line) for line in _lines(worker)[logged:]), 60)
        found.log = _lines(worker)[logged:]
        found.exit_code = worker.stop()
    return found


def _is_back(line: str) -> bool:
    return "a broker answers again" in line


def _handled(worker: WorkerProcess) -> int:
    return worker.total("model_observations_total")


def _pending(worker: WorkerProcess) -> list[float]:
    return list(worker.metrics().get("attributary_checkpoint_pending_seconds", {(): 1.0}).values())


def _lines(worker: WorkerProcess) -> list[str]:
    return worker.log.read_text(errors="replace").splitlines()
