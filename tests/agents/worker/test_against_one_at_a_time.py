"""Fetches in slices beside slow brokers, checkpoints, rebalances and crashes, against one observation after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from faust.types import TP
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attributary_agents.state.checkpoints import decode_checkpoint
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker import checkpoint as checkpointing
from attributary_agents.worker import observations
from attributary_agents.worker import restore as restoring
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import record_from_client
from tests.agents.stand_ins import TOPIC, config_of
from tests.agents.worker.test_assigned import GOOD, Broker, Running, fetch, record

N_PARTITIONS, MOST = 2, 7
IDS = ("m", "n")
VALUES = (GOOD, b'{"x": {"a": -1.0, "b": 2.0}, "y": false}', b'{"x": {"a": -1.0, "b": 2.0}}', b"junk")
KEYS = (b"m", b"m", b"n", b"unknown")
Sent = tuple[bytes | None, bytes | None, tuple[Any, ...]]


def _sent(one: Any) -> Sent:
    return one["key"], one["value"], tuple(one["headers"])


class SlowBroker(Broker):
    """Acknowledges when it is told to; checks what is stored and acknowledged when something is committed."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Sent] = []
        self.acknowledged: set[Sent] = set()
        self.waiting: list[tuple[asyncio.Future[None], Sent | None]] = []
        self.is_slow = False
        self.committed = dict.fromkeys(range(N_PARTITIONS), 0)
        self.must_have: Callable[[int, int], set[Sent]] = lambda _number, _offset: set()
        self.load: Callable[[int], bytes | None] = lambda _number: None

    def _future(self, one: Sent | None) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((future, one))
        if not self.is_slow:
            self.answer()
        return future

    def answer(self) -> None:
        for future, one in self.waiting:
            if one is not None:
                self.acknowledged.add(one)
            if not future.done():
                future.set_result(None)
        self.waiting.clear()

    def send_soon(self, **given: Any) -> asyncio.Future[None]:
        self.sent.append(_sent(given))
        return self._future(self.sent[-1])

    def send_changelog(self, partition: int, key: bytes, _value: bytes | None) -> asyncio.Future[None]:
        if partition in self.failing:
            raise RuntimeError("no broker")
        return self._future(None)

    async def _commit(self, offsets: dict[TP, int]) -> None:
        for tp, offset in offsets.items():
            stored = self.load(tp.partition)
            assert stored is not None
            assert decode_checkpoint(stored)[1] + 1 >= offset, "committed, and not in a checkpoint"
            assert self.must_have(tp.partition, offset) <= self.acknowledged, "committed before it was acknowledged"
            assert offset >= self.committed[tp.partition]
            self.committed[tp.partition] = offset


class World:
    """A worker of which partitions come and go, and the records of its topic."""

    def __init__(self, streams: list[list[tuple[bytes, bytes]]]) -> None:
        self.streams = [
            [record(offset, value, number, key) for offset, (key, value) in enumerate(stream)]
            for number, stream in enumerate(streams)
        ]
        self.broker = SlowBroker()
        self.generation = 0
        self.oracle()
        self.broker.must_have = lambda number, offset: set().union(*self.expected[number][:offset])
        self.broker.load = lambda number: self.running.worker.assigned[number]._store.load(checkpoint_key(number))

    def config(self) -> Any:
        config = config_of(*IDS, publish={"every": 1}, explainers={"pfi": {}})
        checkpoint = config.checkpoint.model_copy(update={"max_observations": MOST, "max_share": 1.0})
        return config.model_copy(update={"checkpoint": checkpoint})

    def oracle(self) -> None:
        self.expected: list[list[set[Sent]]] = []
        self.order: dict[Sent, tuple[int, int]] = {}
        self.counters = []
        for number, stream in enumerate(self.streams):
            partition = Partition(TOPIC, number, self.config(), lambda _key: None)
            found = []
            for one in stream:
                sent = [(o.key, o.value, tuple(o.headers)) for o in partition.handle(record_from_client(one))]
                for event in sent:
                    assert event not in self.order
                    self.order[event] = (number, len(self.order))
                found.append(set(sent))
            self.expected.append(found)
            self.counters.append(partition.counters)

    async def start(self) -> None:
        self.running = Running(broker=self.broker)
        config = self.config()
        topics = config.kafka.topics
        outputs = dict.fromkeys((topics.importances, topics.incidents, topics.dead_letters), self.broker)
        self.running.worker = type(self.running.worker)(self.broker, config, self.broker, outputs)  # type: ignore[arg-type]
        await self.own(range(N_PARTITIONS))

    async def own(self, numbers: Any) -> None:
        self.generation += 1
        self.broker.is_slow = False
        self.broker.answer()
        await self.running.worker.adopt([TP(TOPIC, number) for number in numbers], self.generation)
        self.position = {**getattr(self, "position", {}), **{n: self.broker.committed[n] for n in numbers}}

    async def step(self, what: str, number: int, n: int) -> None:
        worker, broker = self.running.worker, self.broker
        if what in ("fetch", "again"):
            at = (
                self.position[number]
                if what == "fetch"
                else max(self.position[number] - n, self.broker.committed[number])
            )
            records = self.streams[number][at : at + n]
            if records:
                await worker.take(fetch(records, worker.assigned[number].generation))
                self.position[number] = max(self.position[number], at + len(records))
        elif what == "turns":
            for _ in range(n):
                await asyncio.sleep(0)
        elif what == "slow":
            broker.is_slow = True
        elif what == "answer":
            broker.answer()
        elif what == "quick":
            broker.is_slow = False
            broker.answer()
        elif what == "tick":
            for assigned in worker.assigned.values():
                assigned._storing.schedule._stored_at = -1e9 if n % 2 else assigned._storing.schedule._stored_at
            worker.tick()
        elif what == "rebalance":
            leaving = asyncio.ensure_future(worker.release([number]))
            for _ in range(n):
                await asyncio.sleep(0)
            broker.is_slow = False
            broker.answer()
            while not leaving.done():
                await asyncio.sleep(0)
                broker.answer()
            await self.own([number])
        elif what == "crash":
            await worker.under_way.cancel()
            worker.assigned.clear()
            await self.start()
        elif what == "fail":
            broker.failing = {number}
            broker.is_slow = False
            broker.answer()
            try:
                for _ in range(n):
                    await asyncio.sleep(0)
                    worker.tick()
            except RuntimeError:
                await worker.under_way.settle()
                broker.failing = set()
                await worker.under_way.cancel()
                worker.assigned.clear()
                await self.start()
            broker.failing = set()

    async def finish(self) -> None:
        worker = self.running.worker
        self.broker.is_slow = False
        self.broker.answer()
        for number, stream in enumerate(self.streams):
            rest = stream[self.position[number] :]
            if rest:
                await worker.take(fetch(rest, worker.assigned[number].generation))
        for _ in range(3):
            await worker.under_way.settle()
            worker.tick()
        assigned = dict(worker.assigned)
        assert not any(one._observations._inbox for one in assigned.values())
        for number, one in assigned.items():
            assert one.partition.counters == self.counters[number]
            assert one.partition.offset == len(self.streams[number]) - 1
        self.broker.load = lambda number: assigned[number]._store.load(checkpoint_key(number))
        await worker.release()
        for number, stream in enumerate(self.streams):
            assert self.broker.committed[number] == len(stream)
        first = list(dict.fromkeys(self.broker.sent))
        assert set(first) == set(self.order), "all of it, with these bytes, and nothing else"
        for number in range(N_PARTITIONS):
            places = [at for partition, at in map(self.order.__getitem__, first) if partition == number]
            assert places == sorted(places), "in the order of their observations"


records_of = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)), min_size=4, max_size=40)
KINDS = (
    "fetch",
    "fetch",
    "fetch",
    "again",
    "turns",
    "turns",
    "slow",
    "answer",
    "quick",
    "tick",
    "rebalance",
    "crash",
    "fail",
)
steps = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, N_PARTITIONS - 1), st.integers(1, 12)), min_size=3, max_size=25
)


@pytest.mark.long
@given(st.lists(records_of, min_size=N_PARTITIONS, max_size=N_PARTITIONS), steps, st.sampled_from([0.0, 0.02, 10.0]))
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_whatever_comes_between_the_records_are_handled_as_one_after_another(
    streams: list[list[tuple[bytes, bytes]]], todo: list[tuple[str, int, int]], handle_s: float
) -> None:
    async def trial(*given: Any) -> None:
        begun = next(filter(callable, given))
        await begun()

    async def run() -> None:
        world = World(streams)
        await world.start()
        for what, number, n in todo:
            await world.step(what, number, n)
        await world.finish()

    with (
        mock.patch.object(observations, "HANDLE_S", handle_s),
        mock.patch.object(observations, "try_observation", trial),
        mock.patch.object(restoring, "try_restore", trial),
        mock.patch.object(checkpointing, "WRITES_TOGETHER", 1),
        mock.patch("attributary_agents.models.budget.Budget.adapt", return_value=0.0),
    ):
        asyncio.run(asyncio.wait_for(run(), 60))
