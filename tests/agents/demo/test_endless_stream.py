"""The demo's stream: drifts where it says, the same every time, and it goes on where it was."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from river.datasets import synth
from support.compose import ROOT, read_env
from support.kafka import read_all

from attributary_agents.cli import demo_stream as drift_stream_cli
from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.endless_stream import DriftStream
from attributary_agents.errors import AttributaryError, PreflightError
from attributary_agents.kafka.topics import create_topics
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record

STREAM = DriftStream("credit", (1, 2, 4), first=30, every=50)


def rows(stream: DriftStream, n: int, after: int = 0) -> list[dict[str, Any]]:
    return [json.loads(value) for value in islice(stream.values(after), n)]


def test_the_rule_changes_at_first_and_after_every_so_many() -> None:
    assert [n for n in range(1, 200) if STREAM.drifts_at(n)] == [30, 80, 130, 180]
    assert [STREAM.rule(n) for n in (1, 29, 30, 79, 80, 129, 130)] == [1, 1, 2, 2, 4, 4, 1]
    assert not any(DriftStream("m", (1,), 30, 50).drifts_at(n) for n in range(1, 200))


def test_each_label_is_what_the_rule_of_its_place_says() -> None:
    for row in rows(STREAM, 200):
        x, rule = row["x"], STREAM.rule(row["observation"])
        decide = synth.Agrawal()._classification_functions[rule]
        assert row["y"] == decide(*x.values())


def test_observations_are_numbered_from_one_and_the_same_every_time() -> None:
    first = rows(STREAM, 200)
    assert [row["observation"] for row in first] == list(range(1, 201))
    assert rows(STREAM, 200) == first
    other = rows(DriftStream("loans", (1, 2, 4), 30, 50), 200)
    assert [row["x"] for row in other] != [row["x"] for row in first]


@pytest.mark.parametrize("after", [0, 1, 28, 29, 30, 79, 80, 130])
def test_it_goes_on_after_any_observation(after: int) -> None:
    assert rows(STREAM, 60, after) == rows(STREAM, 200)[after : after + 60]


@pytest.mark.long
@pytest.mark.parametrize(("name", "n", "expected"), [("CREDIT", 4200, ["suspected", "confirmed"]), ("LOANS", 6000, [])])
def test_compose_tells_of_no_incident_before_the_drift(name: str, n: int, expected: list[str]) -> None:
    settings = read_env()
    first = int(settings["FIRST_DRIFT"])
    stream = DriftStream.parse(settings[f"{name}_STREAM"], first=first, every=int(settings["DRIFT_EVERY"]))
    config = parse_config(yaml.safe_load((ROOT / "deploy" / "demo" / "attributary.yaml").read_text()))
    topics = config.kafka.topics
    partition = Partition(topics.observations, 0, config, lambda _key: None)
    told = [
        json.loads(sent.value or b"")
        for i, value in enumerate(islice(stream.values(), n))
        for sent in partition.handle(Record(topics.observations, 0, i, 20 * i, stream.model_id.encode(), value))
        if sent.topic == topics.incidents
    ]
    assert [event["life"] for event in told] == expected
    assert all(event["observation"] > first and event["since"]["observation"] >= first - 50 for event in told)


@pytest.mark.parametrize("text", ["credit", "=1", "credit=", "credit=1,x", "credit=10", "credit=-1", "credit=1,,2"])
def test_what_is_no_stream_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(AttributaryError, match=r"MODEL=RULES.*credit=1,2"):
        DriftStream.parse(text, first=30, every=50)


def test_a_stream_is_a_model_and_its_rules() -> None:
    assert DriftStream.parse("credit=1, 2", first=3, every=4) == DriftStream("credit", (1, 2), 3, 4)


class Scene:
    """A configuration file for a broker, and the command."""

    def __init__(self, bootstrap: str, folder: Path, name: str = "drift") -> None:
        model = {"model": {"class": "river.naive_bayes.GaussianNB"}}
        self.raw = {
            "kafka": {"brokers": [bootstrap], "group": name, "topic_prefix": name, "partitions": 2},
            "models": {"credit": model, "loans": model},
        }
        self.config = parse_config(self.raw)
        self.path = folder / "attributary.yaml"
        self.path.write_text(yaml.safe_dump(self.raw))

    def run(self, *arguments: str) -> Any:
        streams = ["--stream", "credit=1,2", "--stream", "loans=1", "--first", "30", "--every", "50", "--rate", "2000"]
        return CliRunner().invoke(cli, ["demo-stream", "--config", str(self.path), *streams, *arguments])


@pytest.mark.embedded
def test_the_command_sends_tells_its_drifts_and_goes_on(embedded_broker: Broker, tmp_path: Path) -> None:
    scene = Scene(embedded_broker.bootstrap, tmp_path)
    create_topics(scene.config)
    first, second = scene.run("--limit", "40"), scene.run("--limit", "100")
    assert (first.exit_code, second.exit_code) == (0, 0), (first.stderr, second.stderr)
    assert "credit: from observation 1 on, rule 1" in first.stderr
    assert "credit: drift at observation 30, from rule 1 to 2" in first.stderr
    assert "credit: from observation 41 on, rule 2" in second.stderr
    assert "credit: drift at observation 80, from rule 2 to 1" in second.stderr
    assert "loans: drift" not in first.stderr + second.stderr
    assert "120 observations sent to drift.observations.v1" in second.stdout
    sent: dict[bytes, list[Any]] = {b"credit": [], b"loans": []}
    for record in read_all(embedded_broker.bootstrap, scene.config.kafka.topics.observations):
        sent[record.key].append(json.loads(record.value))
    assert sent[b"credit"] == rows(DriftStream("credit", (1, 2), 30, 50), 100)
    assert sent[b"loans"] == rows(DriftStream("loans", (1,), 30, 50), 100)


def test_it_waits_for_the_topic_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def check(_config: object, topic: str) -> None:
        asked.append(topic)
        if len(asked) < 3:
            raise PreflightError("no Kafka yet")

    async def play(*_: object) -> int:
        return 7

    monkeypatch.setattr("attributary_agents.kafka.topics.check_topics", check)
    monkeypatch.setattr("attributary_agents.cli.demo_stream.time.sleep", lambda _s: None)
    monkeypatch.setattr(drift_stream_cli, "_play", play)
    result = Scene("127.0.0.1:1", tmp_path).run()
    assert (result.exit_code, len(asked)) == (0, 3)
    assert result.stderr.count("waiting: no Kafka yet") == 2


def test_without_a_broker_it_ends_with_what_to_do(tmp_path: Path) -> None:
    result = Scene("127.0.0.1:1", tmp_path).run("--wait", "0")
    assert isinstance(result.exception, PreflightError)
    assert "no Kafka at 127.0.0.1:1" in str(result.exception)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--stream", "other=1"], "no model 'other' is configured; configured are credit, loans"),
        (["--stream", "loans=2"], "loans: give each model one --stream"),
    ],
)
def test_streams_that_do_not_fit_the_configuration_are_refused(tmp_path: Path, more: list[str], message: str) -> None:
    result = Scene("127.0.0.1:1", tmp_path).run(*more)
    assert isinstance(result.exception, AttributaryError)
    assert message in str(result.exception)
