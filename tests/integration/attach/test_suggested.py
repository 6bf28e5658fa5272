"""A topic of which nobody has told us anything, attached from the command line by what `sources suggest` prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from river import datasets
from support.kafka import create_topics, produce
from support.waiting import wait_for

from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.local_broker import free_port
from attributary_agents.demo.processes import kill_child, start_child, stop_child

pytestmark = [pytest.mark.long, pytest.mark.kafka]


def test_what_is_suggested_runs_after_one_line_was_edited(kafka_broker: Broker, tmp_path: Path) -> None:
    rows = [(dict(x), y) for x, y in datasets.ImageSegments()]
    values = [json.dumps({**x, "category": y}).encode() for x, y in rows]
    create_topics(kafka_broker.bootstrap, {"segments": 2})
    produce(kafka_broker.bootstrap, "segments", [(None, value, []) for value in values])
    # Names of its own, beside other tests on this broker: no file says them.
    names = {"KAFKA__GROUP": "suggested", "KAFKA__TOPIC_PREFIX": "suggested", "WEB__PORT": str(free_port())}
    environment = {f"ATTRIBUTARY_{name}": value for name, value in names.items()}
    path = tmp_path / "attributary.yaml"

    def attributary(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "attributary_agents.cli", *arguments]
        return subprocess.run(argv, env=os.environ | environment, capture_output=True, text=True, timeout=120)

    suggested = attributary("sources", "suggest", "segments", "--brokers", kafka_broker.bootstrap)
    assert suggested.returncode == 2, "no field is called like a label"
    (unsaid,) = [line for line in suggested.stdout.splitlines() if "???" in line]
    path.write_text(suggested.stdout.replace(unsaid, "    y: category"))

    done = attributary("topics", "create", "-c", str(path))
    assert done.returncode == 0, done.stderr
    log = tmp_path / "worker.log"
    worker = start_child([sys.executable, "-m", "attributary_agents.cli", "run", "-c", path], log=log, env=environment)
    try:

        def importance() -> list[str]:
            assert worker.poll() is None, log.read_text()
            told = attributary("importance", "segments", "-c", str(path), "--json")
            assert told.returncode == 0, told.stderr
            return told.stdout.splitlines()

        (line,) = wait_for("importances", importance, 120, every_s=1)
        assert stop_child(worker, 60) == 0
    finally:
        kill_child(worker)
    event = json.loads(line)
    assert set(event["features"]) <= set(rows[0][0])
    assert max(one["importance"] for one in event["features"].values()) > 0
    assert event["model_loss"] < event["baseline_loss"], "it has learnt something"
