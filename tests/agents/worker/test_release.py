"""`Worker` without Kafka: how partitions are handed over, and what waits for a slow broker."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from attributary_agents.app import create_app
from attributary_agents.config.reading import parse_config
from attributary_agents.state.records import StateRecords
from attributary_agents.worker import worker as worker_module
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing
from attributary_agents.worker.view import WorkerView
from attributary_agents.worker.worker import MAX_SENT_BYTES, Assigned, Worker
from tests.agents.stand_ins import FACTORY, config_of

TOPIC = "attributary.observations.v1"
N = 40


class StandIn(Worker):
    """A worker whose checkpoints and sends end when the test says so."""

    def __init__(self) -> None:
        app: Any = SimpleNamespace(consumer=SimpleNamespace(highwater=lambda _tp: None))
        super().__init__(app, config_of(), SimpleNamespace(sink=StateRecords()), {}, WorkerView())
        self.hanging: set[int] = set()
        self.failing: set[int] = set()
        self.begun: list[int] = []
        self.sending: list[asyncio.Future[None]] = []

    def own(self, n: int) -> list[Assigned]:
        return [self._assign(TP(TOPIC, number), 1) for number in range(n)]

    async def checkpoint(self, assigned: Assigned) -> None:
        number = assigned.tp.partition
        self.begun.append(number)
        if number in self.failing:
            raise RuntimeError("no broker")
        if number in self.hanging:
            await asyncio.Event().wait()
        assigned.partition.checkpointed = assigned.partition.offset

    def _send(self, record: Outgoing) -> Any:
        self.sending.append(asyncio.get_running_loop().create_future())
        return self.sending[-1]


def test_all_partitions_share_one_deadline_and_the_failing_ones_hinder_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_module, "GRACE_S", 0.2)  # one after another they would need N / 2 times as long

    async def run() -> list[Assigned]:
        worker = StandIn()
        worker.hanging, worker.failing = set(range(0, N, 2)), {1}
        owned = worker.own(N)
        for assigned in owned:
            assigned.partition.offset = 9
        await worker.release()
        assert sorted(worker.begun) == list(range(N))
        assert worker.assigned == worker.view.partitions == {}
        return owned

    caplog.set_level(logging.WARNING)
    owned = asyncio.run(run())
    assert [a.tp.partition for a in owned if a.partition.n_pending] == [0, 1, *range(2, N, 2)]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == N // 2 + 1
    assert "partition 0: no final checkpoint (not within 0 s); its next owner repeats 10 observations" in told[0]
    assert any("partition 1: no final checkpoint (RuntimeError('no broker'))" in line for line in told)


def test_only_the_named_partitions_leave_those_with_little_to_store_first() -> None:
    async def run() -> None:
        worker = StandIn()
        for assigned in worker.own(4):
            number = assigned.tp.partition
            assigned.partition.dirty = {f"m{number}"}
            worker.view.state_bytes[f"m{number}"] = 1000 - number
        await worker.release([0, 1, 3, 7])
        assert worker.begun == [3, 1, 0]
        assert list(worker.assigned) == [2]

    asyncio.run(run())


def test_a_slow_broker_holds_the_worker_up_before_its_dead_letters_fill_the_memory() -> None:
    async def run() -> None:
        worker = StandIn()
        (assigned,) = worker.own(1)
        assigned.checked_start = True
        value = b"{poison" + b" " * 990_000

        async def handle_all() -> None:
            for offset in range(50):
                message = SimpleNamespace(
                    tp=assigned.tp, topic=TOPIC, partition=0, offset=offset, generation_id=1, key=b"m", value=value,
                    headers=[], timestamp=0.0,
                )  # fmt: skip
                await worker.handle(SimpleNamespace(message=message))

        handling = asyncio.create_task(handle_all())
        done = 0
        while not handling.done():
            await asyncio.sleep(0)
            waiting = [each for each in worker.sending if not each.done()]
            assert len(waiting) * len(value) <= MAX_SENT_BYTES + len(value)
            if assigned.lock.locked() and len(worker.sending) > done:
                await asyncio.sleep(0)
                assert not handling.done(), "it should wait for the broker"
                done = len(worker.sending)
                for each in waiting:
                    each.set_result(None)
        await handling
        assert isinstance(assigned.partition, Partition)
        assert assigned.partition.counters.dead_letters["invalid_json"] == 50

    asyncio.run(run())


def test_the_group_waits_for_as_long_as_a_step_is_called_healthy_and_polling_never_counts() -> None:
    config = parse_config(
        {"models": {"m": {"factory": FACTORY}}, "web": {"stuck_after_s": 500}, "watchdog": {"end_after_s": 2000}}
    )
    conf = create_app(config).app.conf
    assert conf.broker_rebalance_timeout > 500
    assert conf.broker_request_timeout > conf.broker_rebalance_timeout
    assert 2**31 / 1000 > conf.broker_max_poll_interval > 365 * 3600  # milliseconds in 32 bits
    assert conf.producer_request_timeout > 2000


class Storing(StandIn):
    """As `StandIn`, but checkpoints are made; the store is a list and may refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses = False
        self.stored: list[int] = []

    async def checkpoint(self, assigned: Assigned) -> None:
        await Worker.checkpoint(self, assigned)

    def _send(self, record: Outgoing) -> Any:
        sent = asyncio.get_running_loop().create_future()
        sent.set_result(None)
        return sent

    def _write(self, partition: int, key: bytes, value: bytes | None) -> Any:
        if self.refuses:
            raise RuntimeError("no broker")
        self.stored.append(partition)
        return self._send(Outgoing("", b"", b"", []))


def test_a_record_is_pending_from_when_it_is_handled_until_its_checkpoint_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = Storing()
    committed: list[int] = []

    async def commit(_app: Any, _tp: TP, offset: int) -> None:
        assert worker.view.pending_s(0) > 0, "not before it is committed"
        committed.append(offset)

    monkeypatch.setattr(worker_module, "commit_exactly", commit)

    async def handle(assigned: Assigned, offset: int) -> None:
        message = SimpleNamespace(
            tp=assigned.tp, topic=TOPIC, partition=0, offset=offset, generation_id=1, key=b"m",
            value=b'{"x": {"a": 1.0, "b": 1.0}, "y": true}', headers=[], timestamp=0.0,
        )  # fmt: skip
        await worker.handle(SimpleNamespace(message=message))

    async def run() -> None:
        (assigned,) = worker.own(1)
        assigned.checked_start = True
        assert worker.view.pending_s(0) == 0
        await handle(assigned, 0)
        before = worker.view.pending_s(0)
        await handle(assigned, 1)
        assert worker.view.pending_s(0) > before > 0, "the oldest counts"
        worker.refuses = True
        with pytest.raises(RuntimeError):
            await worker.checkpoint(assigned)
        assert worker.view.pending_s(0) > 0
        worker.refuses = False
        await worker.checkpoint(assigned)
        assert (committed, worker.view.pending_s(0)) == ([2], 0)
        await handle(assigned, 1)  # delivered again: it is in the checkpoint
        assert worker.view.pending_s(0) == 0

    asyncio.run(run())
