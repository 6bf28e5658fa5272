"""Offsets that do not follow each other: what transactions take is known, of all else one client asks a broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError
from faust.types import TP

from attributary_agents.errors import DeliveryError
from attributary_agents.kafka.batches import PassedOver
from attributary_agents.state.checkpoints import PartitionCounters
from attributary_agents.worker import gaps as module
from attributary_agents.worker.gaps import Gaps

from ..stand_ins import TOPIC, config_of


class Brokers:
    """Has records at some offsets, and counts who asks."""

    def __init__(self, *offsets: int) -> None:
        self.offsets = offsets
        self.n_started = self.n_stopped = self.n_asked = 0
        self.error: Exception | None = None

    def consumer(self, **_: Any) -> Any:
        return self

    async def start(self) -> None:
        self.n_started += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error

    async def stop(self) -> None:
        self.n_stopped += 1

    def questions(self, consumer: Any, _within_s: float) -> Any:
        assert consumer is self
        return self

    async def first(self, _place: TopicPartition, begin: int, end: int) -> int | None:
        self.n_asked += 1
        await asyncio.sleep(0)
        return next((offset for offset in self.offsets if begin <= offset < end), None)


@pytest.fixture
def passed_over(monkeypatch: pytest.MonkeyPatch) -> PassedOver:
    notes = PassedOver()
    monkeypatch.setattr(module, "PASSED_OVER", notes)
    return notes


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    found = Brokers()
    monkeypatch.setattr(module, "AIOKafkaConsumer", found.consumer)
    monkeypatch.setattr(module, "CommittedRecords", found.questions)
    return found


class App:
    """Runs what it is given until it stops."""

    def __init__(self) -> None:
        self.futures: list[asyncio.Future[Any]] = []
        self.committed: list[dict[TP, int]] = []
        self.consumer = self

    def add_future(self, coro: Awaitable[Any]) -> None:
        self.futures.append(asyncio.ensure_future(coro))

    async def _commit_offsets(self, offsets: dict[TP, int]) -> None:
        self.committed.append(offsets)

    async def stop(self) -> None:
        for future in self.futures:
            future.cancel()
        await asyncio.gather(*self.futures, return_exceptions=True)


def partition_at(offset: int, number: int = 0) -> Any:
    counters = PartitionCounters()
    return SimpleNamespace(topic=TOPIC, number=number, offset=offset, checkpointed=offset, counters=counters)


def told(partition: Any) -> tuple[int, int, int]:
    return partition.offset, partition.counters.unavailable, partition.counters.transactional


def test_what_transactions_take_is_counted_by_itself_and_nobody_is_asked(
    passed_over: PassedOver, brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        gaps, partition = Gaps(App(), config_of("m")), partition_at(9)  # type: ignore[arg-type]
        note = passed_over.begin(TopicPartition(TOPIC, 0), 10)
        assert note is not None
        note(8, 12)
        await gaps.check(partition, 10)
        assert told(partition) == (9, 0, 0)
        await gaps.check(partition, 12)
        assert told(partition) == (11, 0, 2)
        assert gaps.lag(TP(TOPIC, 0), 11, 12) == 0
        note(12, 13)
        assert gaps.lag(TP(TOPIC, 0), 11, 13) == 0
        assert gaps.lag(TP(TOPIC, 0), 11, 15) == 2
        assert gaps.lag(TP(TOPIC, 1), 11, 15) == 3

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert caplog.messages == []
    assert (brokers.n_started, brokers.n_asked) == (0, 0)


def test_all_other_gaps_are_asked_about_by_one_consumer_that_is_stopped_with_the_app(
    passed_over: PassedOver, brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        app = App()
        gaps = Gaps(app, config_of("m"))  # type: ignore[arg-type]
        note = passed_over.begin(TopicPartition(TOPIC, 0), 10)
        assert note is not None
        note(12, 13)
        partitions = [partition_at(9, number) for number in range(3)]
        await asyncio.gather(*(gaps.check(partition, 15) for partition in partitions))
        assert [told(partition) for partition in partitions] == [(14, 4, 1), (14, 5, 0), (14, 5, 0)]
        await gaps.check(partitions[0], 17)
        assert (brokers.n_started, brokers.n_asked, brokers.n_stopped) == (1, 4, 0)
        await app.stop()
        assert brokers.n_stopped == 1

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert caplog.messages[-1] == f"{TOPIC}[0]: no records at offsets 15 to 16 (retention or compaction)"


def test_a_record_that_delivery_has_skipped_stops_the_worker(passed_over: PassedOver, brokers: Brokers) -> None:
    async def run() -> None:
        app, partition = App(), partition_at(9)
        gaps = Gaps(app, config_of("m"))  # type: ignore[arg-type]
        note = passed_over.begin(TopicPartition(TOPIC, 0), 10)
        assert note is not None
        note(10, 12)
        brokers.offsets = (12,)
        with pytest.raises(DeliveryError, match="offset 12 was skipped on the way here"):
            await gaps.check(partition, 14)
        assert app.committed == [{TP(TOPIC, 0): 10}]
        assert told(partition) == (9, 0, 0)
        await app.stop()

    asyncio.run(run())


def test_the_consumer_goes_when_nothing_has_been_asked_for_a_time_and_another_comes(
    passed_over: PassedOver, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_S", 0.01)

    async def run() -> None:
        app, partition = App(), partition_at(9)
        gaps = Gaps(app, config_of("m"))  # type: ignore[arg-type]
        await gaps.check(partition, 12)
        await asyncio.gather(*app.futures)
        assert brokers.n_stopped == 1
        await gaps.check(partition, 14)
        assert brokers.n_started == 2
        await app.stop()
        brokers.error = KafkaConnectionError("away")
        with pytest.raises(KafkaConnectionError):
            await gaps.check(partition, 16)
        brokers.error = None
        await asyncio.gather(*app.futures, return_exceptions=True)
        await gaps.check(partition, 16)
        assert told(partition) == (15, 6, 0)
        await app.stop()
        assert brokers.n_started == brokers.n_stopped == 4

    asyncio.run(run())
