"""`sources suggest` and `check --sample` on topics of a broker: what is read, what is said, and nothing is left."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka.admin import AIOKafkaAdminClient
from click.testing import CliRunner, Result
from support.kafka import create_topics, produce, read_all

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import KafkaConfig
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics as create_own
from attributary_agents.sources.samples import read_spread

pytestmark = [pytest.mark.long]

_numbers = itertools.count(1)
NOW_S = 1_760_000_000


@pytest.fixture(
    params=[pytest.param("embedded", marks=pytest.mark.embedded), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def broker(request: pytest.FixtureRequest) -> Broker:
    """Each of the two brokers."""
    return request.getfixturevalue(f"{request.param}_broker")  # type: ignore[no-any-return]


def rental(i: int) -> dict[str, Any]:
    return {"id": f"r{i}", "ts": (NOW_S + i) * 1000, "station": f"s{i % 5}", "temp": i * 37 % 101 / 4, "hour": i % 24}


def filled(broker: Broker, n: int = 600) -> str:
    """Rentals over six partitions and their counts, half an hour later, over three; the name that topics end with."""
    name = f"-{next(_numbers)}-{broker.bootstrap.rpartition(':')[2]}"
    create_topics(broker.bootstrap, {f"rentals{name}": 6, f"counts{name}": 3})
    produce(
        broker.bootstrap,
        f"rentals{name}",
        [(r["station"].encode(), json.dumps(r).encode(), []) for r in map(rental, range(n))],
    )
    counts = [{"id": f"r{i}", "count": i % 7, "at": (NOW_S + i + 1800) * 1000} for i in range(n)]
    produce(broker.bootstrap, f"counts{name}", [(None, json.dumps(one).encode(), []) for one in counts])
    return name


def command(*args: str) -> Result:
    return CliRunner().invoke(cli, list(args))


def groups(broker: Broker) -> list[Any]:
    async def ask() -> list[Any]:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            return list(await admin.list_consumer_groups())
        finally:
            await admin.close()

    return asyncio.run(ask())


def test_what_is_suggested_is_checked_and_works(broker: Broker, tmp_path: Path) -> None:
    name = filled(broker)
    before = groups(broker)
    done = command("sources", "suggest", f"rentals{name}", "--brokers", broker.bootstrap, "--labels", f"counts{name}")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "sources:                                          # by 600 records of rentals" in done.stdout
    assert "the record's key, which station is, too: 5 values that repeat" in done.stdout
    raw = yaml.safe_load(done.stdout)
    (source,), (labels,) = raw["sources"].values(), raw["labels"].values()
    assert (source["id"], source["time"], labels["id"], labels["time"], labels["y"], labels["ttl"]) == (
        "id", "ts", "id", "at", "count", "2h",
    )  # fmt: skip
    assert groups(broker) == before, "no group is made"

    raw["kafka"] |= {"group": f"own{name}", "topic_prefix": f"own{name}", "partitions": 2}
    create_own(parse_config(raw))
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    checked = command("check", "-c", str(path), "--sample", "600", "--json")
    assert checked.exit_code == 0, (checked.output, checked.exception)
    said = json.loads(checked.stdout)
    assert said["broker"] == "ok"
    sections = {key: (each["n_mapped"], each["time"]) for key, each in said["sources"].items() if key != "waiting"}
    assert set(sections.values()) == {(600, "ms since 1970")}
    (waiting,) = said["sources"]["waiting"].values()
    assert (waiting["n_joined"], waiting["delay_s"], waiting["n_waiting"]) == (600, 1800.0, 1800)
    (model,) = said["models"].values()
    assert (model["n_used"], model["problem"]) == (200, None)
    assert len(read_all(broker.bootstrap, f"own{name}.observations.v1")) == 0


def test_records_of_all_partitions_are_read_new_ones_and_old_ones(broker: Broker) -> None:
    name = f"-{next(_numbers)}-{broker.bootstrap.rpartition(':')[2]}"
    create_topics(broker.bootstrap, {f"rentals{name}": 3})
    for partition, n in ((0, 3000), (1, 40)):
        rows = [json.dumps({"place": partition, "n": i, "era": i // 1000, "label": i % 2}).encode() for i in range(n)]
        produce(broker.bootstrap, f"rentals{name}", [(None, row, []) for row in rows], partition=partition)
    found = asyncio.run(read_spread(KafkaConfig(brokers=[broker.bootstrap]), {f"rentals{name}": 3}, 200))
    read = {partition: [r.offset for r in found if r.partition == partition] for partition in (0, 1, 2)}
    assert (sorted(read[1]), read[2]) == (list(range(40)), [])
    assert len(read[0]) == len(set(read[0]))
    assert 150 <= len(read[0]) <= 160
    assert set(range(2920, 3000)) <= set(read[0]), "half of them are the newest"
    assert {offset // 600 for offset in read[0]} == {0, 1, 2, 3, 4}, "and the others are from everywhere"
    done = command("sources", "suggest", f"rentals{name}", "--brokers", broker.bootstrap, "--records", "200")
    assert "era: always" not in done.stdout, "what is constant among the newest is not among all"


@pytest.mark.parametrize("args", [["check", "--sample", "5"], ["check"]])
def test_a_topic_that_is_not_there_is_named_and_not_made(broker: Broker, args: list[str], tmp_path: Path) -> None:
    name = filled(broker, 5)
    raw = {
        "kafka": {"brokers": [broker.bootstrap], "topic_prefix": f"own{name}"},
        "sources": {"rentals": {"topic": f"rentls{name}", "y": "count"}},
        "models": {"bikes": {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}},
    }
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    said = f"no topic 'rentls{name}' on {broker.bootstrap}; did you mean 'rentals{name}'?"
    for _ in range(2):  # a question about it would make it
        done = command(*args, "-c", str(path))
        assert done.exit_code == 2
        assert f"sources.rentals.topic: {said}" in done.stderr
    asked = command("sources", "suggest", f"rentls{name}", "--brokers", broker.bootstrap)
    assert str(asked.exception) == f"TOPIC: {said}"


def test_a_topic_that_workers_read_themselves_has_as_many_partitions_as_ours(broker: Broker, tmp_path: Path) -> None:
    name = filled(broker, 5)
    raw = {
        "kafka": {"brokers": [broker.bootstrap], "topic_prefix": f"own{name}", "group": f"own{name}"},
        "sources": {"rentals": {"topic": f"rentals{name}", "y": "count", "key": "direct", "model": "{$key}"}},
        "models": {"s*": {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}},
    }
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    done = command("check", "-c", str(path))
    assert done.exit_code == 2
    said = "sources.rentals: 6 partitions, kafka.partitions is 4: set kafka.partitions: 6, or key: copy"
    assert said in done.stderr


def test_an_expression_that_finds_nothing_is_a_fault_at_the_check(broker: Broker, tmp_path: Path) -> None:
    name = filled(broker, 20)
    raw = {
        "kafka": {"brokers": [broker.bootstrap], "topic_prefix": f"own{name}", "group": f"own{name}"},
        "sources": {"rentals": {"topic": [f"rentals{name}"], "y": "cnt"}},
        "models": {"bikes": {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}},
    }
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    done = command("check", "-c", str(path), "--sample", "1000")
    assert done.exit_code == 2
    assert "sources.rentals.y: 'cnt' is in none of 20 records; they have id, ts, station, temp, hour" in done.stderr
