"""`attributary importance` on a topic: the latest event of each explainer, and those that come."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.interrupts import take_interrupts
from support.kafka import produce
from support.processes.forked import run_command

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import BrokerMissingError, KafkaBroker
from attributary_agents.worker.records import Outgoing
from tests.agents.monitoring.views import config_of, filled
from tests.integration.configs import created

pytestmark = [pytest.mark.long, pytest.mark.kafka]

LINE_WITHIN_S = 120.0


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that other tests do not need."""
    broker = KafkaBroker(tmp_path_factory.mktemp("broker"))
    try:
        broker.start()
    except BrokerMissingError as error:
        # Under CI a missing broker is a broken pipeline; elsewhere it is somebody without Java.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    with broker:
        yield broker


@pytest.fixture(scope="module")
def explained(own_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Outgoing]]:
    """A configuration with a long topic of importances of two models, those of m far from the end; the events of m."""
    raw, config = created(own_broker, partitions=3, models=("m", "n", "silent"))
    sent: list[Outgoing] = []
    filled(config_of("m", "n", publish={"every": 50}), {0: ["m", "n"]}, n=200, sent=sent)
    events = [one for one in sent if one.topic.endswith("importances.v1")]
    of_m, of_n = ([one for one in events if one.model_id == name] for name in "mn")
    topic = config.kafka.topics.importances
    produce(own_broker.bootstrap, topic, [(b"m", b"no JSON", []), *map(record, of_m), record(of_m[0])], partition=1)
    produce(own_broker.bootstrap, topic, [record(of_n[0])] * 2500, partition=1)
    path = tmp_path_factory.mktemp("importance") / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path, of_m


def record(event: Outgoing) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
    return event.key, event.value, [(name, value or b"") for name, value in event.headers]


def command(path: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "attributary_agents.cli", "importance", "--config", str(path), *arguments]


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(["importance", "--config", path, *arguments])


def last_of(events: list[Outgoing], explainer: str) -> bytes:
    found = [one.value or b"" for one in events if json.loads(one.value or b"")["explainer"] == explainer]
    return found[-1]


def test_the_last_event_of_each_explainer_is_printed_unaltered(explained: tuple[Path, list[Outgoing]]) -> None:
    path, events = explained
    done = run(path, "m", "--json")
    assert done.returncode == 0, done.stderr
    assert [line.encode() for line in done.stdout.splitlines()] == [last_of(events, name) for name in ("pfi", "sage")]


def test_the_table_has_the_figures_of_the_last_event(explained: tuple[Path, list[Outgoing]]) -> None:
    path, events = explained
    lines = run(path, "m").stdout.splitlines()
    heads = [number for number, line in enumerate(lines) if line.startswith("2023-11-14T22:13:20.500Z\tm\tversion v3")]
    assert len(heads) == 2
    for number, name in zip(heads, ("pfi", "sage"), strict=True):
        event = json.loads(last_of(events, name))
        assert f"\t{name} ({event['removal']})\tobservation {event['observation']}\t" in lines[number]
        rows = [line.split() for line in lines[number + 2 : number + 2 + len(event["features"])]]
        assert [row[0] for row in rows] == list(event["features"])
        for row, feature in zip(rows, event["features"].values(), strict=True):
            assert float(row[1].replace("−", "-")) == pytest.approx(feature["importance"], rel=0.05, abs=1e-4)
            assert (row[3], row[5]) == (f"{100 * feature['share']:.0f}", str(feature["rank"]))


def test_a_model_without_an_event_is_told_in_a_line(explained: tuple[Path, list[Outgoing]]) -> None:
    path, _ = explained
    done = run(path, "silent")
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (0, "")
    assert "has no event of silent yet" in line
    assert "`attributary check`" in line
    done = run(path, "silnt")
    assert (done.returncode, done.stderr) == (
        2,
        "attributary: no model 'silnt' is configured: did you mean 'silent'?\n",
    )


def test_it_goes_on_through_a_broker_that_is_away(
    own_broker: KafkaBroker, explained: tuple[Path, list[Outgoing]]
) -> None:
    path, events = explained
    topic = parse_config(yaml.safe_load(path.read_text())).kafka.topics.importances
    following = subprocess.Popen(
        command(path, "m", "--json", "--follow"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # a line that Python had read ahead would not be seen by select
        preexec_fn=take_interrupts,
    )

    def line(stream: object) -> bytes:
        ready, _, _ = select.select([stream], [], [], LINE_WITHIN_S)
        assert ready, "nothing came"
        return bytes(stream.readline())  # type: ignore[attr-defined]

    try:
        assert [line(following.stdout) for _ in range(2)] == [last_of(events, name) + b"\n" for name in ("pfi", "sage")]
        own_broker.stop()
        assert b"do not answer; events are printed as soon as they do" in line(following.stderr)
        own_broker.start()
        assert b"answer again" in line(following.stderr)
        value = last_of(events, "pfi").replace(b'"interval"', b'"new"')
        produce(own_broker.bootstrap, topic, [(b"n", value, []), (b"m", value, [("ce_id", b"new")])], partition=1)
        assert line(following.stdout) == value + b"\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 0
        assert following.stderr is not None
        assert following.stderr.read() == b""
    finally:
        following.kill()
        following.wait()
