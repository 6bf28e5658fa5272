"""`attributary incidents` on a topic: which revisions it prints, and in which order."""

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
TIME = "2023-11-14T22:13:20.500Z"


@pytest.fixture(scope="module")
def happened(kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A configuration with a topic of incidents of two models, one revision of them there twice; and all revisions."""
    raw, config = created(kafka_broker, partitions=3, models=("m", "n"))
    sent: list[Any] = []
    filled(config_of("m", "n"), {0: ["m", "n"]}, n=450, flip_at=200, sent=sent)
    events = [one for one in sent if one.topic.endswith("incidents.v1")]
    records = [(one.key, one.value, list(one.headers)) for one in [*events, events[0]]]
    records += [(b"m", value, []) for value in (b"{poison", b"[]", b'{"event": "incident", "id": "m"}')]
    produce(kafka_broker.bootstrap, config.kafka.topics.incidents, records)
    path = tmp_path_factory.mktemp("incidents") / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    told = [json.loads(one.value) for one in events]
    assert {event["model_id"] for event in told} == {"m", "n"}
    return path, told


def newest(events: list[dict[str, Any]], model_id: str) -> list[dict[str, Any]]:
    return list({event["id"]: event for event in events if event["model_id"] == model_id}.values())


def command(path: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "attributary_agents.cli", "incidents", "--config", str(path), *arguments]


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(["incidents", "--config", path, *arguments])


def printed(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def as_line(event: dict[str, Any]) -> list[str]:
    return [TIME, event["severity"], event["life"], event["id"], event["sentence"]]


@pytest.mark.kafka
def test_each_incident_is_printed_once_as_its_newest_revision_says_it(
    happened: tuple[Path, list[dict[str, Any]]],
) -> None:
    path, events = happened
    lines = printed(run(path, "--last", "100"))
    for model_id in "mn":  # on a partition each
        found = newest(events, model_id)
        assert {event["life"] for event in found} >= {"over", "withdrawn"}
        assert [line for line in lines if line[3].startswith(f"{model_id}:")] == [as_line(event) for event in found]
    assert len(lines) == len({event["id"] for event in events}) < len(events)


@pytest.mark.kafka
def test_every_revision_is_printed_once_beside_the_others_of_its_incident(
    happened: tuple[Path, list[dict[str, Any]]],
) -> None:
    path, events = happened
    lines = printed(run(path, "m", "--revisions", "--last", "100"))
    assert lines == [as_line(event) for event in events if event["model_id"] == "m"]


@pytest.mark.kafka
def test_the_last_incident_of_one_model_as_json(happened: tuple[Path, list[dict[str, Any]]]) -> None:
    path, events = happened
    done = run(path, "m", "--last", "1", "--json")
    (event,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert event.pop("time") == TIME
    assert event == newest(events, "m")[-1]


@pytest.mark.kafka
def test_open_incidents_alone_and_those_that_come_as_they_come(
    kafka_broker: Broker, happened: tuple[Path, list[dict[str, Any]]]
) -> None:
    path, events = happened
    topic = parse_config(yaml.safe_load(path.read_text())).kafka.topics.incidents
    nothing = run(path, "n", "--open")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert nothing.stderr.strip() == f"nothing to show: {topic} has no open incident of n"
    begun = {**events[0], "id": "n:begun", "model_id": "n", "life": "suspected", "sentence": "n may have changed"}

    def write(**changed: Any) -> None:
        value, header = json.dumps({**begun, **changed}).encode(), ("ce_id", json.dumps(changed).encode())
        produce(kafka_broker.bootstrap, topic, [(b"n", value, [header])], partition=0)

    write()
    following = subprocess.Popen(
        command(path, "n", "--open", "--last", "1", "--follow"),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=take_interrupts,
    )
    try:
        assert following.stdout is not None
        assert following.stdout.readline() == f"{TIME}\tinfo\tsuspected\tn:begun\tn may have changed\n"
        write(life="withdrawn", sentence="n has not changed")
        assert following.stdout.readline() == "None\tinfo\twithdrawn\tn:begun\tn has not changed\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 0
    finally:
        following.kill()
        following.wait()


def test_an_unknown_model_is_a_user_s_fault(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(logistic_config("localhost:1", models=("m", "n"))))
    result = CliRunner().invoke(cli, ["incidents", "credit", "--config", str(path)])
    assert isinstance(result.exception, AttributaryError)
    assert str(result.exception) == "no model 'credit' is configured; configured are m, n"
