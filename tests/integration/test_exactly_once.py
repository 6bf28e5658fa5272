"""With `delivery: exactly_once` a reader of committed records sees each event and dead letter once."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import CoordinationType
from aiokafka.errors import KafkaConnectionError
from aiokafka.producer.sender import SendProduceReqHandler
from click.testing import CliRunner
from support.kafka import alter_topic, produce, read_committed
from support.states import stored
from support.undisturbed import check_equal, event_id, undisturbed
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker, KafkaBroker
from attributary_agents.errors import BrokersAwayError, FencedError, PreflightError
from attributary_agents.kafka import clients
from attributary_agents.kafka.transactions import PartitionProducer, Sending, check_transactions
from attributary_agents.state.writing import changelog_writer, fence_workers
from tests.integration.configs import created, observation
from tests.integration.test_several_workers import pids

pytestmark = [pytest.mark.long, pytest.mark.kafka]
MODELS = ("credit", "fraud")
OFTEN = {"interval_s": 1, "max_observations": 50, "max_share": 0.9}


def stream(n: int, first: int = 0) -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """Observations of two models, of which some cannot be read; with a change in the middle."""
    values = [b"{poison" if i % 97 == 40 else observation(i, flipped=i > n // 2) for i in range(first, first + n)]
    return [(MODELS[i % 7 == 0].encode(), value, []) for i, value in enumerate(values, first)]


def exact(broker: Broker, **sections: Any) -> tuple[dict[str, Any], Config]:
    raw, config = created(broker, models=MODELS, **{"delivery": "exactly_once", "checkpoint": OFTEN} | sections)
    return raw, config


def check_once(broker: Broker, config: Config) -> None:
    """Assert that what is committed is each event and dead letter of an undisturbed run, once, byte for byte."""
    expected = check_equal(broker.bootstrap, config)
    for topic, sent in expected.sent.items():
        found = read_committed(broker.bootstrap, topic)
        ids = [event_id(record.headers) for record in found]
        assert sorted(ids) == sorted(sent), f"{topic}: each once"
        assert {one: (record.value, [*record.headers]) for one, record in zip(ids, found, strict=True)} == {
            one: (value, [*headers]) for one, (value, headers) in sent.items()
        }


def test_a_worker_that_is_killed_at_any_moment_publishes_each_event_once(kafka_broker: Broker, tmp_path: Path) -> None:
    n, rng = 6000, random.Random(1)
    raw, config = exact(kafka_broker)
    produce(kafka_broker.bootstrap, config.kafka.topics.observations, stream(n), partition=0)
    worker = WorkerProcess(raw, tmp_path)
    for done in range(400, n, 800):
        with worker:
            worker.wait_consumed(done, timeout_s=120)
            time.sleep(rng.uniform(0, 0.4))
            worker.kill()
    worker.run_until(n)
    check_once(kafka_broker, config)


def wait_stored(config: Config, offsets: dict[int, int], timeout_s: float = 180.0) -> None:
    """Wait until the partitions' checkpoints have reached these offsets."""
    deadline = time.monotonic() + timeout_s
    while (now := {n: stored(config).checkpoints[n][1] for n in offsets}) != offsets:
        if time.monotonic() > deadline:
            raise TimeoutError(f"checkpoints are at {now}")
        time.sleep(0.5)


def test_a_worker_that_was_frozen_publishes_nothing_behind_its_successor(kafka_broker: Broker, tmp_path: Path) -> None:
    n = 4000
    raw, config = exact(kafka_broker)
    frozen, successor = WorkerProcess(raw, tmp_path), WorkerProcess(raw, tmp_path)
    produce(kafka_broker.bootstrap, config.kafka.topics.observations, stream(n // 2), partition=0)
    with frozen:
        frozen.wait_consumed(n // 4, timeout_s=120)
        os.kill(frozen.pid, signal.SIGSTOP)
        try:
            successor.start()
            wait_stored(config, {0: n // 2 - 1})
        finally:
            os.kill(frozen.pid, signal.SIGCONT)
        produce(kafka_broker.bootstrap, config.kafka.topics.observations, stream(n // 2, n // 2), partition=0)
        wait_stored(config, {0: n - 1})
        check_once(kafka_broker, config)
        assert successor.stop() == 0
        assert frozen.exit_code is None or "belong to another owner now" in frozen.log.read_text()


def test_partitions_that_move_between_workers_publish_each_event_once(kafka_broker: Broker, tmp_path: Path) -> None:
    n = 3000
    raw, config = exact(kafka_broker, kafka={"partitions": 2})
    first, second = WorkerProcess(raw, tmp_path), WorkerProcess(raw, tmp_path)
    for partition, model in enumerate(MODELS):
        records = [(model.encode(), value, headers) for _, value, headers in stream(n)]
        produce(kafka_broker.bootstrap, config.kafka.topics.observations, records, partition=partition)
    with first, second:
        first.wait_consumed(n // 2, timeout_s=120)
        deadline = time.monotonic() + 120
        while not (first.is_ready() and second.is_ready()):
            assert time.monotonic() < deadline, second.log_tail
            time.sleep(0.2)
        assert first.stop() == 0
        wait_stored(config, {0: n - 1, 1: n - 1})
        assert second.total("transactions_total") > 0
        assert second.stop() == 0
    check_once(kafka_broker, config)


async def is_open(broker: Broker, topic: str) -> bool:
    """Whether a transaction has written to partition 0 and has not ended: committed records end before the others."""
    place, ends = TopicPartition(topic, 0), []
    for isolation in ("read_committed", "read_uncommitted"):
        async with AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap, enable_auto_commit=False, isolation_level=isolation
        ) as consumer:
            ends.append((await consumer.end_offsets([place]))[place])
    return ends[0] < ends[1]


def test_a_worker_that_sleeps_until_its_transaction_has_expired_ends_and_its_restart_publishes_each_event_once(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    n = 6000
    raw, config = exact(kafka_broker, kafka={"transaction_timeout_s": 5, "session_timeout_s": 120})
    changelog = config.kafka.changelog
    produce(kafka_broker.bootstrap, config.kafka.topics.observations, stream(n), partition=0)
    worker = WorkerProcess(raw, tmp_path)
    with worker:
        worker.wait_consumed(200, timeout_s=120)
        for _ in range(200):
            os.kill(worker.pid, signal.SIGSTOP)
            time.sleep(0.3)  # what the broker has been asked for is done
            if asyncio.run(is_open(kafka_broker, changelog)):
                break
            os.kill(worker.pid, signal.SIGCONT)
            time.sleep(0.05)
        else:
            pytest.fail("it was in no transaction when it was stopped")
        wait_for("the broker has aborted", lambda: not asyncio.run(is_open(kafka_broker, changelog)), 60)
        os.kill(worker.pid, signal.SIGCONT)
        assert worker.wait(120) == 1
    assert "one was open for longer than kafka.transaction_timeout_s (5 s)" in worker.log.read_text()
    assert stored(config).checkpoints[0][1] < n - 1, "something is left to be repeated"
    worker.run_until(n)
    check_once(kafka_broker, config)


def test_two_workers_of_a_machine_of_which_one_is_killed_publish_each_event_once(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    n = 3000
    raw, config = exact(kafka_broker, kafka={"partitions": 2})
    for partition, model in enumerate(MODELS):
        records = [(model.encode(), value, headers) for _, value, headers in stream(n)]
        produce(kafka_broker.bootstrap, config.kafka.topics.observations, records, partition=partition)
    with WorkerProcess(raw, tmp_path, "--workers", "2") as worker:
        wait_for("some is handled", lambda: worker.total("records_consumed_total") >= n // 4, 120)
        killed = pids(worker)["worker 1"]
        os.kill(killed, signal.SIGKILL)
        wait_for("it is started again", lambda: pids(worker)["worker 1"] != killed, 60)
        wait_stored(config, {0: n - 1, 1: n - 1})
        wait_for("all are ready", worker.is_ready, 60)
        ended = worker.samples("attributary_transactions_total")
        assert sum(n for labels, n in ended.items() if ("outcome", "committed") in labels) > 0
        assert worker.stop() == 0
    check_once(kafka_broker, config)


def test_a_transaction_with_a_record_that_brokers_refuse_publishes_nothing(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    n = 1000
    raw, config = exact(kafka_broker)
    records = stream(n)
    records[n // 2] = (b"credit", b"{poison" + b" " * 20_000, [])
    observations, letters = config.kafka.topics.observations, config.kafka.topics.dead_letters
    produce(kafka_broker.bootstrap, observations, records[:200], partition=0)
    worker = WorkerProcess(raw, tmp_path)
    with worker:
        worker.wait_consumed(200, timeout_s=120)
        alter_topic(kafka_broker.bootstrap, letters, {"max.message.bytes": "10000"})
        produce(kafka_broker.bootstrap, observations, records[200:], partition=0)
        assert worker.wait(120) == 1
    assert "MessageSizeTooLarge" in worker.log.read_text()
    last = stored(config).checkpoints[0][1]
    assert last < n // 2
    expected = undisturbed(kafka_broker.bootstrap, config)
    for topic, sent in expected.sent.items():
        found = [event_id(record.headers) for record in read_committed(kafka_broker.bootstrap, topic)]
        assert len(set(found)) == len(found)
        assert set(found) < set(sent), "and nothing behind what is stored"
    alter_topic(kafka_broker.bootstrap, letters, {"max.message.bytes": str(config.kafka.max_record_bytes)})
    worker.run_until(n)
    check_once(kafka_broker, config)


@pytest.mark.parametrize("committed", [True, False])
def test_an_owner_is_refused_from_the_start_of_the_next_one_on(committed: bool, kafka_broker: Broker) -> None:
    _, config = exact(kafka_broker)
    topic = config.kafka.topics.importances

    async def run() -> None:
        n_ended: Counter[str] = Counter()
        first, second = (PartitionProducer(config, 0, n_ended) for _ in range(2))
        await first.start()
        await first.begin()
        await first.send_all([Sending(topic, b"credit", b"1")])
        if committed:
            await first.commit()
        await second.start()
        if not first.is_open:
            await first.begin()  # the client asks nobody
        with pytest.raises(FencedError, match=r"partition 0: its transactions belong to another owner now, or one was"):
            await first.send_all([Sending(topic, b"credit", b"2")])
        with pytest.raises(FencedError):
            await first.commit()
        await second.begin()
        await second.send_all([Sending(topic, b"credit", b"3")])
        await second.commit()
        await asyncio.gather(first.stop(), second.stop())
        assert n_ended == {"committed": 1 + committed, "fenced": 1}

    asyncio.run(run())
    found = [record.value for record in read_committed(kafka_broker.bootstrap, topic)]
    assert found == ([b"1"] if committed else []) + [b"3"]


@pytest.mark.parametrize("n_bytes", [10, 200_000])
def test_of_an_owner_that_is_fenced_the_event_loop_says_nothing_beside_the_error(
    n_bytes: int, kafka_broker: Broker
) -> None:
    """It is fenced when the transaction begins to write: no batch has been sent, and of large records not all fit."""
    _, config = exact(kafka_broker)
    said: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: said.append(context))
        first, second = (PartitionProducer(config, 0) for _ in range(2))
        await first.start()
        await first.begin()
        await second.start()
        letters = [Sending(config.kafka.topics.dead_letters, b"credit", b"." * n_bytes)] * 10
        with pytest.raises(FencedError):
            await first.send_all(letters)
        await asyncio.gather(first.stop(), second.stop())

    asyncio.run(run())
    gc.collect()
    assert said == []


def test_a_connection_that_closes_while_the_coordinator_is_looked_for_ends_no_transaction(kafka_broker: Broker) -> None:
    _, config = exact(kafka_broker)
    topic, n_closed = config.kafka.topics.importances, 0

    async def run() -> None:
        producer = PartitionProducer(config, 0)
        await producer.start()
        client, sender = producer._producer.client, producer._producer._sender
        look_up = client.coordinator_lookup

        async def closed(*_: object) -> None:
            nonlocal n_closed
            n_closed += 1
            client.coordinator_lookup = look_up
            raise KafkaConnectionError("closed, as by a broker that is being stopped")

        for i in range(3):
            sender._coordinator_dead(CoordinationType.TRANSACTION)
            client.coordinator_lookup = closed
            await producer.begin()
            await producer.send_all([Sending(topic, b"credit", b"%d" % i)])
            await producer.commit()
        await producer.stop()

    asyncio.run(run())
    assert n_closed == 3
    assert [record.value for record in read_committed(kafka_broker.bootstrap, topic)] == [b"0", b"1", b"2"]


def test_many_events_of_a_transaction_take_few_requests(kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    _, config = exact(kafka_broker)
    topic, n_requests = config.kafka.topics.importances, 0
    create_request = SendProduceReqHandler.create_request

    def counted(self: SendProduceReqHandler) -> Any:
        nonlocal n_requests
        n_requests += 1
        return create_request(self)

    monkeypatch.setattr(SendProduceReqHandler, "create_request", counted)

    async def run() -> None:
        producer = PartitionProducer(config, 0)
        await producer.start()
        await producer.begin()
        await producer.send_all([Sending(topic, b"credit", b"%1000d" % i) for i in range(3000)])
        await producer.commit()
        await producer.stop()

    asyncio.run(run())
    assert 0 < n_requests <= 8
    assert [int(record.value) for record in read_committed(kafka_broker.bootstrap, topic)] == [*range(3000)]


def test_before_states_are_written_by_a_command_open_transactions_are_ended(kafka_broker: Broker) -> None:
    _, config = exact(kafka_broker)

    async def run() -> None:
        frozen = PartitionProducer(config, 0)
        await frozen.start()
        await frozen.begin()
        state = Sending(config.kafka.changelog, b"credit\x001\x00h", b"of a worker that is frozen", partition=0)
        await frozen.send_all([state])
        async with changelog_writer(config) as send:
            await send(0, b"credit\x002\x00h", b"behind")
        await fence_workers(config)
        with pytest.raises(FencedError):
            await frozen.commit()
        await frozen.stop()

    asyncio.run(run())
    found = [record.value for record in read_committed(kafka_broker.bootstrap, config.kafka.changelog)]
    assert found == [b"behind"]


def test_a_transaction_that_is_stopped_in_the_middle_is_aborted_and_holds_up_nobody(kafka_broker: Broker) -> None:
    _, config = exact(kafka_broker)
    topic = config.kafka.topics.importances

    async def run() -> None:
        producer = PartitionProducer(config, 0, n_ended := Counter())
        await producer.start()
        await producer.begin()
        await producer.send_all([Sending(topic, b"credit", b"1")])
        await producer.stop()
        assert (n_ended, producer.is_open) == ({"aborted": 1}, True), "of what it has written nothing is sure"

    asyncio.run(run())
    produce(kafka_broker.bootstrap, topic, [(b"credit", b"2", [])])
    assert [record.value for record in read_committed(kafka_broker.bootstrap, topic)] == [b"2"]


class Uncoordinated(KafkaBroker):
    """One broker with Kafka's own default: its topic of transactions cannot be created."""

    def _properties(self, data: Path) -> str:
        own = super()._properties(data)
        assert "transaction.state.log.replication.factor=1" in own
        return own.replace("transaction.state.log.replication.factor=1", "transaction.state.log.replication.factor=3")


def test_brokers_without_a_coordinator_of_transactions_are_told_apart_from_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "STARTED_WITHIN_S", 4.0)
    with Uncoordinated(tmp_path / "broker") as broker:
        raw, config = exact(broker)
        with pytest.raises(BrokersAwayError, match=r"answer, but not what was asked .* no coordinator of transactions"):
            asyncio.run(check_transactions(config))
        path = tmp_path / "attributary.yaml"
        path.write_text(yaml.safe_dump(raw))
        checked = CliRunner().invoke(cli, ["check", "--config", str(path)])
        assert checked.exit_code == 2
        assert "transaction.state.log.replication.factor" in checked.output


def test_a_time_out_beyond_that_of_the_brokers_is_said_before_the_start(kafka_broker: Broker) -> None:
    _, config = exact(kafka_broker, kafka={"transaction_timeout_s": 901})
    with pytest.raises(PreflightError, match=r"kafka.transaction_timeout_s: 901 is more than the brokers allow"):
        asyncio.run(check_transactions(config))
