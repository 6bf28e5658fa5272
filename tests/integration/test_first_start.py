"""The first start on a new Apache Kafka: what is logged, what the end says, and what `attributary incidents` has."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import broker
from attributary_agents.demo.local_broker import Broker, BrokerMissingError
from attributary_agents.kafka.topics import create_topics
from tests.conftest import CI
from tests.integration.configs import logistic_config, observation

pytestmark = pytest.mark.long

N = 200


@pytest.fixture(scope="module")
def new_kafka() -> Iterator[Broker]:
    """A Kafka that has had no consumer group: who coordinates the first one is decided when it comes."""
    try:
        started = broker("kafka")
        started.start()
    except BrokerMissingError as error:
        (pytest.fail if CI else pytest.skip)(str(error))
    with started:
        yield started


def incidents(folder: Path, raw: dict[str, Any], *arguments: str) -> subprocess.CompletedProcess[str]:
    path = folder / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    command = [sys.executable, "-m", "attributary_agents.cli", "incidents", "-c", str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_nothing_looks_like_a_fault_and_the_end_says_what_was_done(new_kafka: Broker, tmp_path: Path) -> None:
    raw = logistic_config(new_kafka.bootstrap, partitions=3)
    del raw["kafka"]["session_timeout_s"]
    config = parse_config(raw)
    topics = config.kafka.topics

    missing = incidents(tmp_path, raw)
    assert missing.returncode == 2
    assert topics.incidents in missing.stderr
    assert "attributary topics create" in missing.stderr

    create_topics(config)
    empty = incidents(tmp_path, raw, "credit")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert empty.stderr.strip() == f"nothing to show: {topics.incidents} has no incident of credit"

    worker = WorkerProcess(raw, tmp_path, forked=False)
    worker.start()
    wait_for("the worker is ready", worker.is_ready)
    ((place, _), *_) = produce(
        new_kafka.bootstrap, topics.observations, [(b"credit", observation(i), []) for i in range(N)]
    )
    worker.wait_consumed(N, timeout_s=60)
    assert worker.stop() == 0

    lines = worker.log.read_text().splitlines()
    (unsigned,) = [line for line in lines if re.search(r" (WARNING|ERROR|CRITICAL) |Traceback", line)]
    assert unsigned.endswith(f" WARNING attributary_agents.run: {config.state.doubt}")
    offsets = ", ".join(f"[{n}] {N if n == place else 0}" for n in range(3))
    expected = f"{N} observations handled, all of them are stored; {topics.observations} goes on at offset {offsets}"
    assert re.search(rf"stopped after \d+ s: {re.escape(expected)}$", lines[-1])
