"""What becomes of a source whose topic is missing, grows, is deleted and made again, or is set back on purpose."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from click.testing import CliRunner, Result
from support.kafka import create_topics, produce, read_all
from support.processes.forked import run_command
from support.waiting import wait_for

from attributary_agents.cli.main import cli, main
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.admin import with_admin
from attributary_topics.origins import ORIGIN_HEADER, decode_origin, find_header
from tests.integration.sources.process import MapperProcess
from tests.integration.sources.rentals import Made, made

pytestmark = [pytest.mark.long, pytest.mark.kafka]


def rental(i: int, **more: Any) -> bytes:
    value = {"id": f"x{i}", "ts": 1_700_000_000_000 + i, "station": i % 3, "temp": i % 7, "late": i % 2 == 0}
    return json.dumps({**value, **more}).encode()


def write(data: Made, name: str, values: list[bytes], **more: Any) -> None:
    topic = f"{data.config.kafka.topic_prefix}-{name}"
    produce(data.bootstrap, topic, [(None, value, []) for value in values], **more)


def origins(data: Made) -> list[str]:
    """Where what is on our topic comes from, each as topic:partition:offset without the prefix, sorted."""
    found = []
    for record in read_all(data.bootstrap, data.config.kafka.topics.observations):
        origin = decode_origin(find_header(record.headers, ORIGIN_HEADER) or b"")
        found.append(f"{origin.topic.rpartition('-')[2]}:{origin.partition}:{origin.offset}")
    return sorted(found)


def attributary(data: Made, folder: Path, *arguments: str) -> Result:
    path = folder / "command.yaml"
    path.write_text(yaml.safe_dump(data.raw))
    return CliRunner().invoke(cli, [*arguments, "-c", str(path)])


def test_a_topic_that_is_not_there_is_said_at_the_start_with_the_one_that_may_be_meant(
    kafka_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = made(kafka_broker.bootstrap, 0)
    name = data.raw["sources"]["rentals"]["topic"]
    data.raw["sources"]["rentals"]["topic"] = name[:-1]
    data.raw["run"] = {"mapper": True}  # a worker that maps nothing asks for no topic of others
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(data.raw))
    for command in ("map", "run"):
        monkeypatch.setattr("sys.argv", ["attributary", command, "-c", str(path)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        said = capsys.readouterr().err.replace("\n", "")
        assert (
            f"sources.rentals.topic: no topic '{name[:-1]}' on {kafka_broker.bootstrap}; did you mean '{name}'?" in said
        )


def test_bad_records_are_dead_letters_of_their_place_tombstones_are_passed_over_and_all_ends_at_sigterm(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    data = made(kafka_broker.bootstrap, 0)
    write(data, "rentals", [rental(0), b"{poison", b"", rental(1)], partition=2)
    mapper = MapperProcess(data.raw, tmp_path)
    wait_for("both are mapped", lambda: len(origins(data)) == 2, 60)
    (letter,) = read_all(data.bootstrap, data.config.kafka.topics.dead_letters)
    headers = dict(letter.headers)
    assert (letter.value, headers["attributary-dlq-stage"]) == (b"{poison", b"map")
    assert headers["attributary-dlq-id"].endswith(b"-rentals:2:1")
    assert headers["attributary-dlq-source"] == b"rentals"
    assert mapper.stop() == 0, mapper.said
    assert "Traceback" not in mapper.said
    assert "2 mapped, 1 filtered, 1 dead" in mapper.said


def test_partitions_that_a_topic_gets_are_mapped_from_their_beginning(kafka_broker: Broker, tmp_path: Path) -> None:
    data = made(kafka_broker.bootstrap, 0)
    topic = data.raw["sources"]["rentals"]["topic"]
    write(data, "rentals", [rental(0)], partition=0)
    mapper = MapperProcess(data.raw, tmp_path)
    wait_for("the first is mapped", lambda: len(origins(data)) == 1, 60)

    async def grow(admin: AIOKafkaAdminClient) -> None:
        await admin.create_partitions({topic: NewPartitions(7)})

    with_admin(data.config.kafka, grow)
    wait_for("the partition can be written", lambda: _writes(data, 6), 30)
    wait_for("it is mapped", lambda: "rentals:6:0" in origins(data), 60)
    assert mapper.stop() == 0, mapper.said


def _writes(data: Made, partition: int) -> bool:
    try:
        write(data, "rentals", [rental(1)], partition=partition)
    except Exception:  # noqa: BLE001 - whatever a client says of a partition that it does not know yet
        return False
    return True


def test_a_topic_that_is_made_again_stops_its_source_alone_until_that_is_set_back(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    data = made(kafka_broker.bootstrap, 0)
    # Two units: the models of one do not meet those of the other.
    data.raw["sources"]["rentals"]["model"], data.raw["sources"]["returns"]["model"] = "s0", "s1"
    topic = data.raw["sources"]["rentals"]["topic"]
    write(data, "rentals", [rental(0), rental(3)], partition=0)
    mapper = MapperProcess(data.raw, tmp_path)
    wait_for("both are mapped", lambda: len(origins(data)) == 2, 60)

    async def delete(admin: AIOKafkaAdminClient) -> None:
        await admin.delete_topics([topic])
        while topic in await admin.list_topics():
            await asyncio.sleep(0.05)

    # Asleep meanwhile, it next reads offset 2, which the former topic never had and the new one has.
    mapper.freeze()
    with_admin(data.config.kafka, delete)
    create_topics(data.bootstrap, {topic: 6}, {"retention.ms": "-1"})
    write(data, "rentals", [rental(0), rental(3), rental(6)], partition=0)
    mapper.wake()
    wait_for("it is told", lambda: "was deleted and made again" in mapper.said, 90)
    write(data, "returns", [rental(1)], partition=0)
    wait_for("the other goes on", lambda: "returns:0:0" in origins(data), 60)
    assert len(origins(data)) == 3
    refused = attributary(data, tmp_path, "sources", "reset", "rentals", "--yes")
    assert "mappers run" in str(refused.exception)
    assert mapper.stop() == 0, mapper.said

    done = attributary(data, tmp_path, "sources", "reset", "rentals", "--yes")
    assert done.exit_code == 0, done.exception
    assert f"{topic}[0]\tis mapped from 0 on" in done.output
    mapper = MapperProcess(data.raw, tmp_path, once=True)
    assert mapper.child.wait(60) == 0, mapper.said
    again = [f"rentals@1:0:{offset}" for offset in range(3)]
    assert origins(data) == sorted(["rentals:0:0", "rentals:0:1", "returns:0:0", *again])
    said = attributary(data, tmp_path, "sources", "status").output
    assert "rentals\tmapped by nobody now\tread again 1x" in said
    assert f"{topic}[0]\tmapped up to 3\tends at 3\t0 to map" in said


def test_before_ours_are_made_the_status_says_what_there_is_at_once_and_nothing_else(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    data = made(kafka_broker.bootstrap, 0)
    topic = data.raw["sources"]["rentals"]["topic"]
    data.raw["kafka"] |= {"topic_prefix": f"{topic}-later", "group": f"{topic}-later"}
    write(data, "rentals", [rental(0)], partition=2)
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(data.raw))
    done = run_command(["sources", "status", "-c", path], timeout_s=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{topic}[2]\tnot begun\tends at 1\n" in done.stdout


def test_a_source_begins_where_start_says_once_and_then_where_it_was(kafka_broker: Broker, tmp_path: Path) -> None:
    data = made(kafka_broker.bootstrap, 0)
    data.raw["sources"]["rentals"]["start"] = "latest"
    write(data, "rentals", [rental(0)], partition=0)
    for _ in range(2):
        mapper = MapperProcess(data.raw, tmp_path, once=True)
        assert mapper.child.wait(60) == 0, mapper.said
        assert origins(data) == ["rentals:0:1"] * (_ > 0)
        write(data, "rentals", [rental(1)], partition=0)
