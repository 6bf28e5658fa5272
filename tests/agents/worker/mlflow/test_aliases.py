"""The poller sends a version once per change, whatever is restarted, comes late or fails: the topic has the word."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from attributary_agents.config.mlflow import Registered
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import BrokersAwayError, DeploymentError, FilesAwayError, RegistryAwayError
from attributary_agents.worker import aliases as module
from attributary_agents.worker.aliases import AliasPoller, RegistryBoard


def config(**given: Any) -> Config:
    model = {"model": {"mlflow": "models:/bank@champion", "poll": "1s"}, "learn": False, **given}
    return parse_config({"kafka": {"partitions": 3}, "models": {"m": model}})


@dataclass
class Record:
    key: bytes
    value: bytes | None
    partition: int


@dataclass
class Topic:
    """The models topic, compacted to the last record of each key and partition, as `read_deployments` gives it."""

    records: list[Record] = field(default_factory=list)
    n_reads: int = 0

    async def read(self, _config: Config) -> dict[str, list[Any]]:
        self.n_reads += 1
        last: dict[str, dict[int, Record]] = {}
        for record in self.records:
            last.setdefault(record.key.decode(), {})[record.partition] = record
        return {key: sorted(found.values(), key=self.records.index, reverse=True) for key, found in last.items()}

    async def send(self, config: Config, model_id: str, value: bytes, partition: int | None) -> list[tuple[int, int]]:
        shards = range(config.kafka.partitions) if model_id in config.sharded else [partition or 0]
        self.records += [Record(model_id.encode(), value, number) for number in shards]
        return [(number, len(self.records)) for number in shards]

    @property
    def versions(self) -> list[str]:
        return [uri for record in self.records if (uri := named(record.value))]


def named(value: bytes | None) -> str:
    try:
        return str(orjson.loads(value or b"{}").get("mlflow", ""))
    except orjson.JSONDecodeError:
        return ""


class Registry:
    """Stands in for MLflow's registry."""

    def __init__(self) -> None:
        self.aliases = {"models:/bank@champion": "1"}
        self.faults: list[Exception] = []
        self.lacks: set[str] = set()
        self.without_files: set[str] = set()
        self.asked: list[str] = []
        self.n_fetched = 0
        self.while_fetching: Callable[[], None] = lambda: None

    def version_of(self, registered: Registered) -> str:
        self.asked.append(registered.name)
        if self.faults:
            raise self.faults.pop(0)
        if str(registered) not in self.aliases:
            raise DeploymentError("no alias")
        return self.aliases[str(registered)]

    def fetch(self, registered: Registered, folder: Path) -> str:
        self.n_fetched += 1
        self.while_fetching()
        if str(registered) in self.lacks:
            raise DeploymentError(f"{registered}: no files")
        if str(registered) in self.without_files:
            raise FilesAwayError(f"{registered}: no route to the bucket")
        return str(registered)[-1] * 64


def made(
    registry: Registry, topic: Topic, chosen: Config | None = None, is_ours: Callable[[], bool] = lambda: True
) -> AliasPoller:
    return AliasPoller(chosen or config(), RegistryBoard(), is_ours, registry, topic.read, topic.send)  # type: ignore[arg-type]


def poll(one: AliasPoller) -> None:
    """Look at all aliases, whenever they are due."""
    one._due.clear()
    asyncio.run(one.look())


def test_a_version_is_sent_once_and_named_exactly() -> None:
    registry, topic = Registry(), Topic()
    one = made(registry, topic)
    for _ in range(3):
        poll(one)
    poll(made(registry, topic))  # a restart, or another process that has got partition 0
    (record,) = topic.records
    assert record.key == b"m"
    assert orjson.loads(record.value or b"") == {"version": "1", "mlflow": "models:/bank/1", "sha256": "1" * 64}
    assert registry.n_fetched == 1


def test_each_move_of_the_alias_is_sent_once_also_back() -> None:
    registry, topic = Registry(), Topic()
    one = made(registry, topic)
    for version in ("1", "2", "2", "1", "1"):
        registry.aliases["models:/bank@champion"] = version
        poll(one)
        poll(made(registry, topic))
    assert topic.versions == ["models:/bank/1", "models:/bank/2", "models:/bank/1"]


def test_a_late_record_of_a_frozen_process_is_corrected() -> None:
    registry, topic = Registry(), Topic()
    one = made(registry, topic)
    poll(one)
    stale = topic.records[0]
    registry.aliases["models:/bank@champion"] = "2"
    poll(one)
    topic.records.append(stale)
    poll(one)
    poll(one)
    assert topic.versions == [f"models:/bank/{n}" for n in (1, 2, 1, 2)]


@pytest.mark.parametrize("value", [None, b"{poison", b'{"version": "9", "model": {"class": "river.x.Y"}}'])
def test_what_else_is_on_the_topic_is_replaced(value: bytes | None) -> None:
    registry, topic = Registry(), Topic([Record(b"m", value, 0)])
    for _ in range(2):
        poll(made(registry, topic))
    assert topic.versions == ["models:/bank/1"]
    assert len(topic.records) == 2


def test_later_versions_go_where_the_first_one_is() -> None:
    registry, topic = Registry(), Topic([Record(b"m", b'{"version": "0", "factory": "a:b"}', 2)])
    poll(made(registry, topic))
    assert [record.partition for record in topic.records] == [2, 2]


def test_every_shard_has_to_have_it() -> None:
    registry, topic, chosen = Registry(), Topic(), config(sharded=True)
    poll(made(registry, topic, chosen))
    poll(made(registry, topic, chosen))
    assert [record.partition for record in topic.records] == [0, 1, 2]
    del topic.records[1]  # somebody's mistake
    poll(made(registry, topic, chosen))
    assert [record.partition for record in topic.records] == [0, 2, 0, 1, 2]


def test_what_one_model_lacks_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    both = parse_config(
        {
            "models": {
                name: {"model": {"mlflow": f"models:/{name}@champion"}, "learn": False} for name in ("bank", "shop")
            }
        }
    )
    registry, topic = Registry(), Topic()
    one = made(registry, topic, both)
    poll(one)
    assert (topic.versions, one.board.missing) == (["models:/bank/1"], {"shop": "no alias"})
    registry.aliases["models:/shop@champion"] = "7"
    registry.lacks.add("models:/shop/7")
    for _ in range(3):
        poll(one)
        assert (topic.versions, one.board.missing) == (["models:/bank/1"], {"shop": "models:/shop/7: no files"})
    assert caplog.text.count("models:/shop/7: no files; its version stays") == 1
    registry.lacks.clear()
    poll(one)
    assert (topic.versions, one.board.missing) == (["models:/bank/1", "models:/shop/7"], {})


def test_a_store_that_is_away_holds_up_no_other_model_and_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    names = ("bank", "shop")
    both = parse_config(
        {"models": {name: {"model": {"mlflow": f"models:/{name}@champion"}, "learn": False} for name in names}}
    )
    registry, topic = Registry(), Topic()
    registry.aliases["models:/shop@champion"] = "7"
    registry.without_files.add("models:/bank/1")
    one = made(registry, topic, both)
    with caplog.at_level(logging.INFO, "attributary_agents"):
        for _ in range(3):
            poll(one)
            assert (topic.versions, one.board.is_up) == (["models:/shop/7"], True)
            assert list(one.board.retried) == ["bank"]
    assert caplog.text.count("models:/bank/1: no route to the bucket; it is tried again") == 1
    assert caplog.text.count("MLflow's registry") == 0, "it answers all the time"
    registry.without_files.clear()
    poll(one)
    assert (topic.versions, one.board.retried) == (["models:/shop/7", "models:/bank/1"], {})


def test_an_alias_that_goes_back_from_a_version_without_files_ends_the_tries() -> None:
    registry, topic = Registry(), Topic()
    one = made(registry, topic)
    poll(one)
    registry.aliases["models:/bank@champion"] = "2"
    registry.without_files.add("models:/bank/2")
    poll(one)
    assert list(one.board.retried) == ["m"]
    registry.aliases["models:/bank@champion"] = "1"
    poll(one)
    assert (topic.versions, one.board.retried) == (["models:/bank/1"], {})


def test_an_alias_that_goes_ends_the_tries_of_what_it_named() -> None:
    registry, topic = Registry(), Topic()
    registry.without_files.add("models:/bank/1")
    one = made(registry, topic)
    poll(one)
    assert (list(one.board.retried), one.board.missing) == (["m"], {})
    registry.aliases.clear()
    poll(one)
    assert (one.board.retried, one.board.missing) == ({}, {"m": "no alias"})
    registry.aliases["models:/bank@champion"] = "1"
    poll(one)
    assert (list(one.board.retried), one.board.missing) == (["m"], {})


def test_nothing_is_sent_by_a_process_that_has_lost_the_partition_while_it_fetched() -> None:
    registry, topic, ours = Registry(), Topic(), [True]
    registry.while_fetching = ours.clear
    poll(made(registry, topic, is_ours=lambda: bool(ours)))
    assert registry.n_fetched == 1
    assert topic.records == []


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def test_whatever_fails_is_said_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("LOOK_S", "AGAIN_S"):
        monkeypatch.setattr(module, name, 0.001)
    registry, topic = Registry(), Topic()
    one = made(registry, topic)
    registry.faults = [RegistryAwayError("refused")] * 3
    registry.faults += [BrokersAwayError("no broker answers", "x")] * 3 + [ZeroDivisionError("a value of a record")] * 3

    async def run() -> None:
        task = asyncio.ensure_future(one.run())
        await until(lambda: one.board.n_sent["m"] > 0)
        await asyncio.sleep(0.05)
        task.cancel()

    with caplog.at_level(logging.INFO, "attributary_agents"):
        asyncio.run(run())
    assert topic.versions == ["models:/bank/1"]
    said = [record.message for record in caplog.records]
    assert len(said) == len(set(said)) == 6
    assert said[1] == "MLflow's registry cannot be asked, and is asked again until it can: refused"
    assert said[2] == "looking at MLflow's registry has failed, and is tried again: no broker answers"
    assert said[3].startswith("looking at MLflow's registry has failed, and is tried again: ZeroDivisionError in ")
    assert said[4] == "MLflow's registry answers again"
    assert said[5] == "model m: models:/bank@champion is version 1: deployed, attributary.models.v1[0]@1"
    assert "a value of a record" not in caplog.text


def test_only_the_owner_asks_and_who_no_longer_is_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.001)
    registry, topic, ours = Registry(), Topic(), [False]
    one = made(registry, topic, is_ours=lambda: ours[0])

    async def run() -> None:
        task = asyncio.ensure_future(one.run())
        await asyncio.sleep(0.05)
        assert registry.asked == []
        ours[0] = True
        await until(lambda: bool(topic.records))
        assert one.board.is_up is True
        ours[0] = False
        await until(lambda: one.board.is_up is None)
        await asyncio.sleep(0.05)
        assert registry.asked == ["bank"]
        task.cancel()

    asyncio.run(run())


def test_a_model_is_asked_about_as_often_as_its_poll_says(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    models = {
        name: {"model": {"mlflow": f"models:/{name}@champion", "poll": every}, "learn": False}
        for name, every in (("bank", "10s"), ("shop", "60s"))
    }
    registry, topic = Registry(), Topic()
    registry.aliases["models:/shop@champion"] = "1"
    one = made(registry, topic, parse_config({"models": models}))

    async def run() -> None:
        for _ in range(120):
            await one.look()
            now[0] += 1

    asyncio.run(run())
    assert registry.asked == (["bank", "shop"] + ["bank"] * 5) * 2
    assert topic.n_reads == 12, "once for all that are due"
