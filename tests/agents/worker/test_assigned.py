"""A partition that is ours, and the `Worker` that hands it over, without Kafka: what waits for a slow broker."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from attributary_agents.app import create_app
from attributary_agents.config.reading import parse_config
from attributary_agents.errors import StateError
from attributary_agents.kafka.inbox import Fetch, Intake, message_of
from attributary_agents.state.checkpoints import decode_checkpoint
from attributary_agents.state.names import checkpoint_key, control_key
from attributary_agents.state.records import StateRecords
from attributary_agents.worker import checkpoint as checkpointing
from attributary_agents.worker import worker as worker_module
from attributary_agents.worker.assigned import Assigned
from attributary_agents.worker.delivery import MAX_SENT_BYTES
from attributary_agents.worker.worker import Worker
from tests.agents.kafka.fetched_partitions import client_thread, noted
from tests.agents.stand_ins import FACTORY, MODELS, TOPIC, config_of

N = 40
GOOD = b'{"x": {"a": 1.0, "b": 1.0}, "y": true}'


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a test of a coroutine."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        asyncio.run(test(*args, **named))

    return run


class Broker:
    """Stands in for the Faust app, the outputs and the table; writes and sends end when the test says so."""

    def __init__(self) -> None:
        self.log: list[str] = []
        """What was sent, written and committed, in this order."""
        self.hanging: set[int] = set()
        self.failing: set[int] = set()
        self.slow = False
        self.sending: list[asyncio.Future[None]] = []
        self.assigned: set[TP] = set()
        self.consumer = SimpleNamespace(
            highwater=lambda _tp: None,
            highwaters=self._highwaters,
            assignment=lambda: self.assigned,
            _commit_offsets=self._commit,
        )
        self.sink = StateRecords()
        self.intake = Intake(TOPIC)
        self.flows = True
        self.flow_control = SimpleNamespace(is_active=lambda: self.flows)

    async def _highwaters(self, *tps: TP) -> dict[TP, int]:
        return dict.fromkeys(tps, 0)

    async def _commit(self, offsets: dict[TP, int]) -> None:
        self.log += [f"commit {tp.topic}[{tp.partition}] {offset}" for tp, offset in offsets.items()]

    def send_changelog(self, partition: int, key: bytes, _value: bytes | None) -> asyncio.Future[None]:
        if partition in self.failing:
            raise RuntimeError("no broker")
        sent = asyncio.get_running_loop().create_future()
        if partition not in self.hanging:
            sent.set_result(None)
        self.log.append(f"write {key.split(bytes(1))[0 if key[0] else 1].decode()}")
        return sent

    def send_soon(self, **_record: Any) -> asyncio.Future[None]:
        sent = asyncio.get_running_loop().create_future()
        if not self.slow:
            sent.set_result(None)
        self.sending.append(sent)
        self.log.append("send")
        return sent


class Running:
    """A worker with its broker."""

    def __init__(self, *model_ids: str, broker: Broker | None = None, **model: Any) -> None:
        self.broker = broker or Broker()
        config = config_of(*model_ids, **model)
        topics = config.kafka.topics
        outputs = dict.fromkeys((topics.importances, topics.incidents, topics.dead_letters), self.broker)
        app: Any = self.broker
        self.worker = Worker(app, config, self.broker, outputs)

    async def own(self, n: int) -> list[Assigned]:
        await self.worker.adopt([TP(TOPIC, number) for number in range(n)], 1)
        return list(self.worker.assigned.values())

    async def handle(
        self, offset: int, value: bytes = GOOD, partition: int = 0, generation: int = 1, key: bytes = b"m"
    ) -> None:
        """Hand a record over as a poll does that brings it alone, and wait until it is handled or is not ours."""
        await self.worker.take(fetch([record(offset, value, partition, key)], generation))
        for task in list(self.worker.under_way._tasks.values()):
            if task.get_coro().__name__ == "_handle_all":  # type: ignore[union-attr]
                await task


def event(topic: str, offset: int, value: bytes, partition: int = 0, generation: int = 1, key: bytes = b"m") -> Any:
    message = SimpleNamespace(
        tp=TP(topic, partition), topic=topic, partition=partition, offset=offset, generation_id=generation, key=key,
        value=value, headers=[], timestamp=0.0,
    )  # fmt: skip
    return SimpleNamespace(message=message)


def record(offset: int, value: bytes = GOOD, partition: int = 0, key: bytes = b"m") -> Any:
    """Return a record as aiokafka's consumer gives it."""
    return SimpleNamespace(
        topic=TOPIC, partition=partition, offset=offset, timestamp=0, timestamp_type=0, key=key, value=value, headers=()
    )


def fetch(records: list[Any], generation: int = 1) -> Any:
    """Return the event of what one poll has brought of a partition."""
    tp = TP(TOPIC, records[0].partition)
    return SimpleNamespace(message=message_of(tp, Fetch(records), generation))


def test_all_partitions_share_one_deadline_and_the_failing_ones_hinder_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_module, "GRACE_S", 0.2)  # one after another they would need N / 2 times as long

    async def run() -> list[Assigned]:
        running = Running()
        owned = await running.own(N)
        running.broker.hanging, running.broker.failing = set(range(0, N, 2)), {1}
        for assigned in owned:
            assigned.partition.offset = 9
        await running.worker.release()
        begun = [line for line in running.broker.log if line.startswith("write checkpoint")]
        assert sorted(begun) == sorted(f"write checkpoint/{n}" for n in range(N) if n != 1)
        assert running.worker.assigned == running.worker.view.partitions == {}
        assert not any(assigned.is_ours for assigned in owned)
        return owned

    caplog.set_level(logging.WARNING)
    owned = asyncio.run(run())
    assert [a.tp.partition for a in owned if a.partition.n_pending] == [0, 1, *range(2, N, 2)]
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == N // 2 + 1
    assert "partition 0: no final checkpoint (not within 0 s); its next owner repeats 10 observations" in logged[0]
    assert any("partition 1: no final checkpoint (RuntimeError('no broker'))" in line for line in logged)


@in_a_loop
async def test_only_the_named_partitions_leave_those_with_little_to_store_first() -> None:
    running = Running()
    for assigned in await running.own(4):
        number = assigned.tp.partition
        assigned.partition.offset = 9
        assigned.partition.dirty = {"m"}
        assigned.partition.models.find_or_make("m")
        assigned.state_bytes["m"] = 1000 - number
    await running.worker.release([0, 1, 3, 7])
    committed = [line for line in running.broker.log if line.startswith("commit")]
    assert committed == [f"commit {TOPIC}[{number}] 10" for number in (3, 1, 0)]
    assert list(running.worker.assigned) == [2]


@in_a_loop
async def test_a_checkpoint_awaits_what_was_sent_then_states_then_the_offset_then_commits() -> None:
    running = Running(publish={"every": 1}, explainers={"pfi": {}})
    running.broker.slow = True
    (assigned,) = await running.own(1)
    assert running.broker.log == ["write note/0"], "once, before anything is handled"
    running.broker.log.clear()
    for offset in range(3):
        await running.handle(offset)
    assert running.broker.log == ["send"] * 2
    storing = asyncio.create_task(assigned.checkpoint())
    for _ in range(10):
        await asyncio.sleep(0)
    assert running.broker.log == ["send"] * 2, "no state is written before the events are there"
    for sent in running.broker.sending:
        sent.set_result(None)
    await storing
    stored = ["write m", "write checkpoint/0", f"commit {TOPIC}[0] 3", "write note/0"]
    assert running.broker.log[2:] == stored
    counters, offset = decode_checkpoint(assigned._store.load(checkpoint_key(0)))
    assert (offset, counters.used) == (2, 3)
    await assigned.checkpoint()
    assert len(running.broker.log) == 6, "nothing has been handled since"


@in_a_loop
async def test_after_an_event_that_could_not_be_sent_nothing_is_committed() -> None:
    running = Running(publish={"every": 1}, explainers={"pfi": {}})
    running.broker.slow = True
    (assigned,) = await running.own(1)
    for offset in range(3):
        await running.handle(offset)
    for sent in running.broker.sending:
        sent.set_exception(RuntimeError("no broker"))
    assigned._storing.schedule.is_due = lambda n_pending: True  # type: ignore[method-assign]
    running.broker.log.clear()
    running.worker.tick()
    await running.worker.under_way.settle()
    with pytest.raises(RuntimeError, match="no broker"):
        running.worker.tick()
    await running.handle(3)
    await running.worker.release()  # the stop that follows
    assert running.broker.log == []
    assert assigned.partition.offset == 2


@in_a_loop
async def test_after_a_state_that_could_not_be_written_no_checkpoint_names_it() -> None:
    running = Running()
    (assigned,) = await running.own(1)
    await running.handle(0)
    running.broker.failing.add(0)
    assigned._storing.schedule.is_due = lambda n_pending: True  # type: ignore[method-assign]
    running.worker.tick()
    await running.worker.under_way.settle()
    with pytest.raises(RuntimeError, match="no broker"):
        running.worker.tick()
    running.broker.failing.clear()  # it is back for the stop that follows
    running.broker.log.clear()
    await running.worker.release()
    assert running.broker.log == []


@in_a_loop
async def test_behind_a_final_checkpoint_that_is_given_up_a_waiting_record_is_neither_handled_nor_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "GRACE_S", 0.1)
    running = Running()
    (assigned,) = await running.own(1)
    running.broker.slow = True
    for offset in range(5):
        await running.handle(offset, b"junk")
    assigned._storing.schedule.is_due = lambda n_pending: n_pending >= 5  # type: ignore[method-assign]
    # As where a stride has changed: no record is handled before the slice is stored.
    monkeypatch.setattr(checkpointing.Slice, "holds", True)
    running.worker.tick()
    await asyncio.sleep(0.02)  # the slice awaits what was sent, with the lock
    record = asyncio.ensure_future(running.handle(5))
    await asyncio.sleep(0)
    running.broker.slow = False
    running.broker.log.clear()
    await running.worker.release([0])
    await record
    await running.worker.under_way.settle()
    assert (running.broker.log, assigned.partition.offset, assigned.partition.checkpointed) == ([], 4, -1)
    assert not any(sent.cancelled() for sent in running.broker.sending), "they are on their way all the same"


@in_a_loop
async def test_a_state_whose_writing_is_given_up_is_named_by_no_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "GRACE_S", 0.1)
    running = Running("m", "large")
    (assigned,) = await running.own(1)
    for offset in range(4):
        await running.handle(offset, key=b"large")
    assigned._storing.schedule.is_due = lambda n_pending: n_pending >= 4  # type: ignore[method-assign]
    running.worker.tick()
    await running.worker.under_way.settle()
    put, log = assigned._store.put, running.broker.log

    async def put_slowly(name: bytes, blob: bytes) -> None:
        if name == b"large":
            await asyncio.Event().wait()
        await put(name, blob)

    assigned._store.put = put_slowly  # type: ignore[method-assign]
    for offset in range(4, 9):
        await running.handle(offset, key=b"large")
    await asyncio.sleep(0.02)
    log.clear()
    record = asyncio.ensure_future(running.handle(9))
    await asyncio.sleep(0)
    await running.worker.release([0])
    await record
    assert log == []
    await running.worker.adopt([TP(TOPIC, 0)], 2)
    successor = running.worker.assigned[0]
    assert successor.partition.checkpointed == 3
    await running.handle(4, generation=2, key=b"large")
    assert (successor.partition.models.refused, successor.partition.models["large"].offset) == ({}, 4)


@in_a_loop
async def test_a_checkpoint_that_lasts_delays_no_lag_and_no_other_partition() -> None:
    running = Running()
    first, second = await running.own(2)
    running.broker.hanging.add(0)
    ends = {TP(TOPIC, number): noted(10) for number in (0, 1)}
    running.broker.consumer._thread = client_thread(ends)
    is_ticking = False  # the handling of an observation makes none itself
    for assigned in (first, second):
        assigned._storing.schedule.is_due = lambda n_pending: is_ticking and n_pending > 0  # type: ignore[method-assign]
    for partition in (0, 1):
        await running.handle(0, partition=partition)
    for offset in range(1, 4):
        ends[TP(TOPIC, 0)] = noted(10 + offset)
        is_ticking = True
        running.worker.tick()  # while the first one of partition 0 is under way no second one begins
        assert second._storing.task is not None
        await second._storing.task
        is_ticking = False
        await running.handle(offset, partition=1)
        assert (first.lag.records, second.lag.records) == (9 + offset, 10 - offset)
    commits = [line for line in running.broker.log if line.startswith("commit")]
    assert commits == [f"commit {TOPIC}[1] {offset + 1}" for offset in range(3)]
    assert running.broker.log.count("write m") == 4, "one of partition 0, three of partition 1"
    await running.worker.under_way.cancel()


@in_a_loop
async def test_an_observation_whose_deployments_cannot_be_read_is_not_passed_over() -> None:
    running = Running()
    (assigned,) = await running.own(1)
    await running.handle(0)
    await assigned._store.put(control_key("m", 0), b"of another release")
    assigned.partition.models._logs.clear()
    running.broker.log.clear()
    with pytest.raises(StateError):
        await running.handle(1)
    await running.worker.release()
    assert running.broker.log == []


@in_a_loop
async def test_a_deployment_is_stored_before_its_position_and_committed_last() -> None:
    running = Running()
    value = b'{"version": "2", "model": {"class": "river.naive_bayes.GaussianNB"}}'
    await running.worker.handle_control(event(MODELS, 0, value))
    assert running.worker.assigned == {}, "the observations' partition is another worker's"
    running.broker.assigned = {TP(TOPIC, 0), TP(MODELS, 0)}
    await running.worker.handle_control(event(MODELS, 0, value))
    await running.worker.handle_control(event(MODELS, 1, b"{poison"))
    assert running.broker.log == [
        "write note/0", "write note/0",
        "write control/0/m", "write control-checkpoint/0", f"commit {MODELS}[0] 1",
        "send", "write control-checkpoint/0", f"commit {MODELS}[0] 2",
    ]  # fmt: skip


@in_a_loop
async def test_a_record_of_an_earlier_generation_is_left_alone_and_a_later_one_begins_from_what_is_stored() -> None:
    running = Running()
    (first,) = await running.own(1)
    for offset in range(3):
        await running.handle(offset)
    await first.checkpoint()
    await running.handle(3)  # in no checkpoint
    await running.handle(3, generation=4)
    (second,) = running.worker.assigned.values()
    assert (second.generation, second.partition.models["m"].n_observations) == (4, 4)
    assert not first.is_ours
    await running.handle(4, generation=1)
    assert second.partition.offset == 3
    await running.worker.adopt([TP(TOPIC, 0)], 3)
    assert list(running.worker.assigned.values()) == [second]


@in_a_loop
async def test_a_slow_broker_holds_the_worker_up_before_its_dead_letters_fill_the_memory() -> None:
    running = Running()
    running.broker.slow = True
    (assigned,) = await running.own(1)
    value = b"{poison" + b" " * 990_000

    async def handle_all() -> None:
        for offset in range(50):
            await running.handle(offset, value)

    handling = asyncio.create_task(handle_all())
    done, sending = 0, running.broker.sending
    while not handling.done():
        await asyncio.sleep(0)
        waiting = [each for each in sending if not each.done()]
        assert len(waiting) * len(value) <= MAX_SENT_BYTES + len(value)
        if assigned._steps.is_running and len(sending) > done:
            await asyncio.sleep(0)
            assert not handling.done(), "it should wait for the broker"
            done = len(sending)
            for each in waiting:
                each.set_result(None)
    await handling
    assert done > 0
    assert assigned.partition.counters.dead_letters["invalid_json"] == 50


def test_the_group_waits_for_as_long_as_a_step_is_called_healthy_and_polling_never_counts() -> None:
    config = parse_config(
        {"models": {"m": {"factory": FACTORY}}, "web": {"stuck_after_s": 500}, "watchdog": {"end_after_s": 2000}}
    )
    conf = create_app(config).app.conf
    assert conf.broker_rebalance_timeout > 500
    assert conf.broker_request_timeout > conf.broker_rebalance_timeout
    assert 2**31 / 1000 > conf.broker_max_poll_interval > 365 * 3600  # milliseconds in 32 bits
    assert conf.producer_request_timeout > 2000


@in_a_loop
async def test_a_record_is_pending_from_when_it_is_handled_until_its_checkpoint_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = Running()
    (assigned,) = await running.own(1)
    committed: list[int] = []

    async def commit(_app: Any, _tp: TP, offset: int) -> None:
        assert assigned.pending_s > 0, "not before it is committed"
        committed.append(offset)

    monkeypatch.setattr(checkpointing, "commit_exactly", commit)
    assert assigned.pending_s == 0
    await running.handle(0)
    before = assigned.pending_s
    await running.handle(1)
    assert assigned.pending_s > before > 0, "the oldest counts"
    assigned._storing.schedule.is_due = lambda n_pending: n_pending > 1  # type: ignore[method-assign]
    running.worker.tick()
    await running.worker.under_way.settle()
    assert (committed, assigned.pending_s) == ([2], 0)
    await running.handle(1)  # delivered again: it is in the checkpoint
    assert assigned.pending_s == 0
    await running.handle(2)
    running.broker.failing = {0}
    with pytest.raises(RuntimeError):
        await assigned.checkpoint()
    assert (committed, assigned.pending_s > 0) == ([2], True)


@in_a_loop
async def test_a_checkpoint_that_waits_for_kafka_is_known_to(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running()
    (assigned,) = await running.own(1)
    activity, committing = running.worker.view.activity, asyncio.Event()

    async def commit(*_: Any) -> None:
        await committing.wait()

    async def waits() -> int:
        for _ in range(50):
            await asyncio.sleep(0)
        (step,) = activity.steps
        return step.n_kafka_waits

    monkeypatch.setattr(checkpointing, "commit_exactly", commit)
    running.broker.slow, running.broker.hanging = True, {0}
    written: list[asyncio.Future[None]] = []
    send = running.broker.send_changelog

    def send_changelog(*record: Any) -> asyncio.Future[None]:
        written.append(send(*record))
        return written[-1]

    monkeypatch.setattr(running.broker, "send_changelog", send_changelog)
    await running.handle(0, b"no JSON")
    storing = asyncio.ensure_future(assigned.checkpoint())
    assert await waits() == 1, "for what is sent"
    assert written == []
    running.broker.sending[0].set_result(None)
    assert await waits() == 1, "for what is written"
    assert written
    running.broker.hanging = set()
    for sent in written:
        sent.set_result(None)
    assert await waits() == 1, "for the commit"
    committing.set()
    await storing
    assert activity.steps == []
