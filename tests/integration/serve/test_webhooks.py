"""Webhooks on Kafka: each event once and never twice, whoever is killed, and nothing of the past."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError, GroupLoadInProgressError, NotCoordinatorForGroupError
from support.kafka import produce
from support.waiting import wait_for

from attributary_agents.demo.brokers import Broker
from tests.agents.serve.webhooks.made import incident
from tests.integration.configs import created
from tests.integration.serve.receiver import Receiver
from tests.integration.serve.sender import Sender

pytestmark = [pytest.mark.long, pytest.mark.kafka]

PARTITIONS = 3


class Bench:
    """Topics, a receiver, a configuration."""

    def __init__(self, broker: Broker, folder: Path, receiver: Receiver, **webhooks: Any) -> None:
        hooks = {"ops": {"url": receiver.url}, **webhooks}
        raw, self.config = created(broker, partitions=PARTITIONS, serve={"webhooks": hooks})
        self.path = folder / "attributary.yaml"
        self.path.write_text(yaml.safe_dump(raw))
        self._broker = broker

    def write(self, *event_ids: str) -> None:
        """Write confirmed incidents in turn to the partitions, the same id always to the same."""
        for event_id in event_ids:
            value = json.dumps(incident(event_id, "credit")).encode()
            partition = sum(event_id.encode()) % PARTITIONS
            topic = self.config.kafka.topics.incidents
            produce(
                self._broker.bootstrap, topic, [(b"credit", value, [("ce_id", event_id.encode())])], partition=partition
            )

    def start(self) -> Sender:
        """Start a process; return when the group has a beginning of each partition."""
        sender = Sender(self.path)
        wait_for("a beginning of each partition", lambda: len(self.committed()) == PARTITIONS)
        return sender

    def committed(self) -> dict[TopicPartition, int]:
        return asyncio.run(_committed(self._broker.bootstrap, f"{self.config.kafka.group}-webhooks"))

    @property
    def n_committed(self) -> int:
        return sum(self.committed().values())


async def _committed(bootstrap: str, group: str) -> dict[TopicPartition, int]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        found = await admin.list_consumer_group_offsets(group)
    except (GroupCoordinatorNotAvailableError, NotCoordinatorForGroupError, GroupLoadInProgressError):
        return {}
    finally:
        await admin.close()
    return {place: one.offset for place, one in found.items() if one.offset >= 0}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def test_a_new_group_tells_nothing_of_the_past_and_goes_on_where_it_was(
    kafka_broker: Broker, tmp_path: Path, receiver: Receiver
) -> None:
    bench = Bench(kafka_broker, tmp_path, receiver)
    bench.write("past-1", "past-2", "past-3")
    with bench.start() as sender:
        bench.write("a", "b", "c")
        wait_for("three events", lambda: len(receiver.taken) == 3)
        assert sender.stop() == [{"name": "ops", "sent": 3, "failed": 0, "last_failure": None}]
    bench.write("while-away", "a")
    # Nothing but the group knows where it was: there is no store that could be lost.
    with bench.start() as sender:
        wait_for("the event of the time between", lambda: len(receiver.taken) == 4)
        bench.write("d")
        wait_for("the next event", lambda: len(receiver.taken) == 5)
        assert sender.stop()[0]["sent"] == 2, "what the topic has twice is known after a restart"
    assert sorted(receiver.came) == ["a", "b", "c", "d", "while-away"]


def test_killed_between_commit_and_answer_no_event_is_sent_again(
    kafka_broker: Broker, tmp_path: Path, receiver: Receiver
) -> None:
    bench = Bench(kafka_broker, tmp_path, receiver)
    receiver.holds.set()
    with bench.start() as sender:
        bench.write("a", "b")
        wait_for("an attempt", lambda: receiver.came)
        before = bench.n_committed
        assert before >= 1, "committed before it is attempted"
        wait_for("both are taken", lambda: bench.n_committed == 2)
        sender.kill()
    first = list(receiver.came)
    receiver.holds.clear()
    receiver.let_go.set()
    with bench.start() as sender:
        bench.write("c")
        wait_for("the next event", lambda: "c" in receiver.taken)
        (count,) = sender.stop()
    assert receiver.came == [*first, "c"]
    assert (count["sent"], count["failed"]) == (1, 2), "one was attempted and one waited: both may be lost"
    assert "taken by a server that has ended" in count["last_failure"]


def test_an_address_that_is_away_is_tried_again_and_holds_up_no_other(
    kafka_broker: Broker, tmp_path: Path, receiver: Receiver
) -> None:
    with Receiver() as other:
        hooks = {"url": other.url}
        bench = Bench(kafka_broker, tmp_path, receiver, other=hooks)
        receiver.status = 503
        with bench.start() as sender:
            bench.write("a")
            wait_for("attempts at it", lambda: len(receiver.came) >= 2)
            wait_for("the other one's", lambda: other.taken == ["a"])
            receiver.status = 200
            wait_for("the event", lambda: receiver.taken == ["a"])
            receiver.status = 500
            bench.write("b")
            wait_for("five attempts", lambda: receiver.came.count("b") == 5)
            wait_for("the other one's", lambda: other.taken == ["a", "b"])
            receiver.status = 200
            bench.write("c")
            wait_for("the event after it", lambda: receiver.taken == ["a", "c"])
            counts = {count["name"]: count for count in sender.stop()}
    assert counts["ops"] == {"name": "ops", "sent": 2, "failed": 1, "last_failure": "b: it answers 500, 5 times"}
    assert counts["other"]["sent"] == 3
    assert bench.n_committed == 3, "what was lost is behind it"


def test_of_two_servers_one_sends_each_event_also_when_one_is_killed(
    kafka_broker: Broker, tmp_path: Path, receiver: Receiver
) -> None:
    bench = Bench(kafka_broker, tmp_path, receiver)
    ids = [f"event-{n}" for n in range(60)]
    with bench.start() as first, Sender(bench.path) as second:
        for event_id in ids[:30]:  # while the second one comes
            bench.write(event_id)
        wait_for("the first half", lambda: len(set(receiver.taken)) == 30)
        for event_id in ids[30:40]:
            bench.write(event_id)
        wait_for("what came before the end of one", lambda: len(set(receiver.taken)) == 40)
        first.kill()
        for event_id in ids[40:]:
            bench.write(event_id)
        wait_for("all", lambda: len(set(receiver.taken)) == 60, timeout_s=120)
        second.stop()
    assert Counter(receiver.came) == Counter(ids), "each once"


def test_a_group_that_was_killed_before_its_first_event_begins_where_it_began(
    kafka_broker: Broker, tmp_path: Path, receiver: Receiver
) -> None:
    bench = Bench(kafka_broker, tmp_path, receiver)
    with bench.start() as sender:
        sender.kill()
    bench.write("a", "b", "c")
    with bench.start() as sender:
        wait_for("what came meanwhile", lambda: len(receiver.taken) == 3)
        sender.stop()


def test_a_broker_that_is_away_is_waited_for_and_said_once(
    tmp_path: Path, kafka_broker: Broker, receiver: Receiver
) -> None:
    bench = Bench(kafka_broker, tmp_path, receiver)
    raw = yaml.safe_load(bench.path.read_text())
    away = tmp_path / "away.yaml"
    away.write_text(yaml.safe_dump({**raw, "kafka": {**raw["kafka"], "brokers": ["127.0.0.1:1"]}}))
    log = away.with_suffix(".log")
    with Sender(away) as sender:
        wait_for("the line", lambda: "webhooks wait: " in log.read_text())
        sender.stop()
    assert log.read_text().count("webhooks wait: ") == 1
    assert "Traceback" not in log.read_text()
