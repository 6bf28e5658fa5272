"""What the logs of two healthy workers hold, through a rebalance in and out and a deployment."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from benchmarks.chaos.compare.compare import is_drained
from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from tests.integration.groups import PARTITIONS, SteadyStream, created, raw_config, wait_settled

pytestmark = [pytest.mark.long, pytest.mark.kafka]

SOON = {
    "STREAM_PROCESSING_TIMEOUT": "2",
    "BROKER_COMMIT_LIVELOCK_SOFT_TIMEOUT": "2",
    "BROKER_COMMIT_INTERVAL": "0.5",
}
"""Faust's own settings, which it reads from the environment: what it judges after five minutes, after seconds."""

_LINE = re.compile(r"\d{4}-\d\d-\d\d \S+ (?P<level>[A-Z]+) (?P<logger>\S+): (?P<text>.*)")
_FOREIGN = re.compile(r"\b(broker|stream|consumer|producer|worker|agent)_[a-z_]+\b|\bTimer \S+ is overlapping")
"""Settings of Faust, which nobody can set here, and what else only it says."""


class Line(NamedTuple):
    """A line of a log."""

    level: str
    logger: str
    text: str

    @property
    def is_wrong(self) -> bool:
        """Whether a healthy worker must not write it."""
        return self.level in ("ERROR", "CRITICAL") or (self.level == "WARNING" and bool(_FOREIGN.search(self.text)))


def run(raw: dict[str, object], folder: Path, seconds: float, per_s: float) -> list[Line]:
    """Let a worker run, a second one join and leave, and a model be deployed; return the lines of both logs."""
    config = created(raw)
    stays, comes = WorkerProcess(raw, folder), WorkerProcess(raw, folder)
    began = time.monotonic()

    def until(share: float) -> None:
        wait_for("the workers go on", lambda: time.monotonic() - began > share * seconds, 2 * seconds + 60, every_s=0.5)
        ended = [w.exit_code for w in (stays, comes) if w.exit_code is not None]
        if any(ended):
            raise RuntimeError(f"a worker ended with {ended}:\n{stays.log_tail}\n{comes.log_tail}")

    with SteadyStream(config, per_s) as stream, stays:
        wait_settled([stays])
        until(0.3)
        with comes:
            wait_settled([stays, comes])
            until(0.5)
            _deploy(config, "m0")
            wait_for("the new version is there", lambda: _has_version(stays, comes), 60)
            until(0.8)
            if comes.stop():
                raise RuntimeError(f"the worker that left did not end cleanly:\n{comes.log_tail}")
        wait_settled([stays])
        until(1.0)
        stream.stop()
        wait_for("all is handled", lambda: is_drained(config.kafka.brokers[0], config), 120, every_s=0.5)
        if stays.stop():
            raise RuntimeError(f"the worker that stayed did not end cleanly:\n{stays.log_tail}")
    return [line for worker in (stays, comes) for line in lines_of(worker.log.read_text(errors="replace"))]


def lines_of(log: str) -> list[Line]:
    """Return the lines of a log; what is indented below one is no line, and what is none at all is at ERROR."""
    found = []
    for text in log.splitlines():
        match = _LINE.fullmatch(text)
        if match:
            found.append(Line(match["level"], match["logger"], match["text"]))
        elif text.strip() and not text.startswith(" "):
            found.append(Line("ERROR", "(no logger)", text))
    return found


def _deploy(config: Config, model_id: str) -> None:
    value = json.dumps({"version": "2", "model": {"class": "river.naive_bayes.GaussianNB"}}).encode()
    partition = int(model_id[1:]) % PARTITIONS
    produce(config.kafka.brokers[0], config.kafka.topics.models, [(model_id.encode(), value, [])], partition=partition)


def _has_version(*workers: WorkerProcess) -> bool:
    return any(
        dict(labels).get("version") == "2" for worker in workers for labels in worker.samples("attributary_model_info")
    )


def test_a_healthy_life_has_no_line_at_error(
    kafka_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SOON.items():  # what Faust judges after five minutes, after seconds
        monkeypatch.setenv(name, value)
    raw = raw_config(kafka_broker.bootstrap, "quiet-log", kilobytes=500, session_timeout_s=6.0)
    lines = run(raw, tmp_path, seconds=25, per_s=20)
    assert [line for line in lines if line.is_wrong] == []
    assert any("stopped after" in line.text for line in lines), "it is the workers' logs that were read"


def test_what_is_no_line_of_a_log_is_wrong_and_what_is_indented_belongs_to_the_line_above() -> None:
    log = """\
2026-11-23 17:55:17,001 WARNING mode.timers: Timer attributary.tick is overlapping (interval=1.0 runtime=2.0)
2026-11-23 17:55:17,002 WARNING attributary_agents.worker.watchdog: checkpoint has lasted for 30 s
  File "model.py", line 1
Traceback (most recent call last):
"""
    assert [(line.level, line.is_wrong) for line in lines_of(log)] == [
        ("WARNING", True),
        ("WARNING", False),
        ("ERROR", True),
    ]
