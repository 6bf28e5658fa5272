"""`attributary changes` on a topic: which events it prints, and in which order."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from support.interrupts import take_interrupts
from support.kafka import produce
from support.processes.forked import run_command

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.errors import AttributaryError
from tests.agents.monitoring.views import config_of, filled
from tests.integration.configs import created, logistic_config

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def changed(kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A configuration with a topic of change events of two models, one of them there twice; and the events."""
    raw, config = created(kafka_broker, partitions=3, models=("m", "n"))
    sent: list[Any] = []
    filled(config_of("m", "n"), {0: ["m", "n"]}, n=200, flip_at=100, sent=sent)
    events = [one for one in sent if one.topic.endswith("changes.v1")]
    records = [(one.key, one.value, list(one.headers)) for one in [*events, events[0]]]
    produce(kafka_broker.bootstrap, config.kafka.topics.changes, records)
    path = tmp_path_factory.mktemp("changes") / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    told = [{"id": dict(one.headers)["ce_id"].decode(), **json.loads(one.value)} for one in events]
    assert {event["model_id"] for event in told} == {"m", "n"}
    return path, told


def command(path: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "attributary_agents.cli", "changes", "--config", str(path), *arguments]


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(["changes", "--config", path, *arguments])


@pytest.mark.kafka
def test_each_event_is_printed_once_in_order(changed: tuple[Path, list[dict[str, Any]]]) -> None:
    path, events = changed
    done = run(path, "--last", "100")
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    for model_id in "mn":  # on a partition each
        told = [[event["id"], event["sentence"]] for event in events if event["model_id"] == model_id]
        assert [line[1:] for line in lines if line[1].startswith(f"{model_id}:")] == told
    assert len(lines) == len(events)
    assert {line[0] for line in lines} == {"2023-11-14T22:13:20.500Z"}


@pytest.mark.kafka
def test_events_of_one_kind_only(changed: tuple[Path, list[dict[str, Any]]]) -> None:
    path, events = changed
    done = run(path, "--event", "explanation", "--last", "1")
    assert done.stdout.split("\t")[1] in {event["id"] for event in events if event["event"] == "explanation"}
    assert {event["event"] for event in events} > {"explanation"}, "there are others"
    assert "one of 'alarm'" in run(path, "--event", "drift").stderr


@pytest.mark.kafka
def test_the_last_of_one_model_as_json(changed: tuple[Path, list[dict[str, Any]]]) -> None:
    path, events = changed
    done = run(path, "m", "--last", "1", "--json")
    (event,) = [json.loads(line) for line in done.stdout.splitlines()]
    del event["time"]
    assert event == [one for one in events if one["model_id"] == "m"][-1]


@pytest.mark.kafka
def test_those_that_come_are_printed_as_they_come(
    kafka_broker: Broker, changed: tuple[Path, list[dict[str, Any]]]
) -> None:
    path, events = changed
    topic = parse_config(yaml.safe_load(path.read_text())).kafka.topics.changes
    following = subprocess.Popen(
        command(path, "n", "--last", "1", "--follow"),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=take_interrupts,
    )
    try:
        assert following.stdout is not None
        assert events[-1]["id"] in following.stdout.readline()
        value = json.dumps({**events[-1], "sentence": "n changed again"}).encode()
        produce(kafka_broker.bootstrap, topic, [(b"n", value, [("ce_id", b"new")])], partition=0)
        assert following.stdout.readline() == "None\tnew\tn changed again\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 0
    finally:
        following.kill()
        following.wait()


def test_an_unknown_model_is_a_user_s_fault(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(logistic_config("localhost:1", models=("m", "n"))))
    result = CliRunner().invoke(cli, ["changes", "credit", "--config", str(path)])
    assert isinstance(result.exception, AttributaryError)
    assert str(result.exception) == "no model 'credit' is configured; configured are m, n"
