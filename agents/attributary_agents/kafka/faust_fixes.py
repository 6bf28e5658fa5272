"""Corrections to faust-streaming 0.15.3 and aiokafka 0.14.0.

They are subclasses, where exact state or a true log needs them. Both versions are pinned, and a test fails when they
move: then prove these again before moving the pin.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from time import monotonic
from typing import Any

import faust
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from faust.types import TP, ConsumerMessage
from mode import Service

from .aiokafka_fixes import PromptFetcher
from .brokers.committed import CommittedRecords
from .brokers.producer import WaitingProducer
from .brokers.watch import BROKERS
from .fetches import Fetch, Intake, message_of
from .membership import NamedCoordinator

PROVED_VERSIONS = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0"}


_REBALANCING = "Heartbeat failed for group %s because it is rebalancing"


def _is_news(record: logging.LogRecord) -> bool:
    # A heartbeat that is told of a rebalance has not failed: it is how each member hears of it.
    return record.msg != _REBALANCING


logging.getLogger("aiokafka.consumer.group_coordinator").addFilter(_is_news)

_ABOUT_WAITING = ("Warning: Task timed out!", "Please make sure it's hanging before restart.")


def _is_unexplained(record: logging.LogRecord) -> bool:
    # Of a commit or a rebalance that lasts. While it waits for brokers, their watch says so, and no restart mends it.
    return not (str(record.msg).endswith(_ABOUT_WAITING) and BROKERS.is_told)


logging.getLogger(__name__).addFilter(_is_unexplained)  # Faust logs under the module of the subclass


_FENCED_SHARE = 0.4  # of the time that a recovery has until it reads, for what comes before it

LOOK_S = 0.05
"""Longest poll while a partition is not polled because its inbox is full."""


class CommittedThread(AIOKafkaConsumerThread):  # type: ignore[misc]  # Faust is untyped
    """Reads only records of committed transactions.

    Upstream does so under `exactly_once` only, and is otherwise given what a transactional producer has aborted: the
    model would learn what was never said.
    """

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"  # read when it starts
        return consumer

    async def on_start(self) -> None:
        """Start with our fetcher, and with our coordinator if there is a name.

        They are `PromptFetcher` and `NamedCoordinator`, which joins under the configured name.
        """
        await super().on_start()
        # Both are made by the consumer, and not ours to choose.
        self._consumer._fetcher.__class__ = PromptFetcher
        coordinator = self._consumer._coordinator
        if coordinator._group_instance_id is not None:
            coordinator.__class__ = NamedCoordinator
            coordinator.on_fenced = lambda: self.app.loop.call_soon_threadsafe(self.app.on_fenced)

    async def _keepalive2(self) -> None:
        """Wake the event loop up regularly, as upstream does.

        Unlike upstream it calls no thread dead while it is the loop that is in a long step.
        """
        while not self.should_stop:
            await self.sleep(1.1)
            await self._wakeup_timer_in_thread()


class ExactConsumer(Consumer):  # type: ignore[misc]
    """Consumer that polls the active partitions that have room.

    It polls a copy of the set, by a `CommittedThread`, and folds the records that come. Upstream hands aiokafka its
    live set. When a rebalance empties it during the long poll, aiokafka reads the empty set as "all partitions", moves
    past their records, and Faust drops them.
    """

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return CommittedThread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        if active_partitions is None:
            return await self._thread.getmany(None, timeout)
        intake: Intake = self.app.intake
        polled = intake.with_room(active_partitions)
        if len(polled) < len(active_partitions):
            timeout = min(timeout, LOOK_S)  # those that are full get room long before the others have records
        if not polled:
            await intake.wait_for_room(min(timeout, LOOK_S))
            return {}
        return intake.fold(await self._thread.getmany(polled, timeout))

    def _to_message(self, tp: TP, record: Any) -> ConsumerMessage:
        if type(record) is Fetch:
            return message_of(tp, record, self.app.consumer_generation_id)
        return super()._to_message(tp, record)

    async def verify_all_partitions_active(self) -> None:
        """Skip upstream's check that active partitions move on.

        Upstream takes waiting for a model, or for the next checkpoint, for a fault. It says so at ERROR, with settings
        that our configuration does not have. The watchdog tells a step that lasts, and the metrics tell lag, what is
        pending and the last checkpoint.
        """

    def verify_recovery_event_path(self, now: float, tp: TP) -> None:
        """Skip upstream's check of the time of recovery events.

        Upstream compares the broker's clock with this process's.
        """


class ExactRecovery(Recovery):  # type: ignore[misc]
    """Recovery up to the last committed record.

    It seeks the source partitions before it resumes them.

    Upstream is done when the *record* before the changelog's end has come. Behind a transaction that is its marker,
    and what was aborted never comes either: it would wait for ever.

    Upstream also resumes first and then seeks to the committed offsets, with the fetcher already running: records
    fetched in between are delivered, and everything before them is then dropped as already read.
    """

    async def _build_highwaters(self, consumer: Any, tps: set[TP], destination: Any, title: str) -> None:
        """Note the offset of the last record of each partition that will come."""
        began = monotonic()
        if title == "active":
            again = await self.app.before_recovery(tps, _FENCED_SHARE * self.app.conf.broker_request_timeout)
            for tp in again:
                self.active_offsets[tp] = -1
        thread = consumer._thread
        # Within less than what upstream waits for this: it takes its own time-out for a stop, and says nothing.
        within_s = 0.8 * self.app.conf.broker_request_timeout - (monotonic() - began)
        last = await thread.call_thread(CommittedRecords(thread._ensure_consumer(), within_s).last, tps)
        # What was recovered before may be gone from the end: a tombstone is, some time after what it has deleted.
        had = self.active_offsets if title == "active" else self.standby_offsets
        beyond = {tp: had[tp] for tp in tps if had.get(tp) is not None and had[tp] > last[tp]}
        if beyond:
            ends = await consumer.highwaters(*beyond)
            # A topic that ends before was deleted and made again: upstream says so.
            last |= {tp: offset for tp, offset in beyond.items() if offset < ends[tp]}
        self.log.info(
            "Last records of %s changelog partitions:\n%s", title, self._highwater_logtable(last, title=title)
        )
        destination.clear()
        destination.update(last)

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Hold every resume back until upstream has sought."""
        consumer = self.app.consumer
        resume = consumer.resume_partitions
        held: list[Any] = []
        consumer.resume_partitions = held.append  # on the instance, and removed below
        try:
            await super().on_recovery_completed(generation_id)
        finally:
            del consumer.resume_partitions
        for partitions in held:
            resume(partitions)

    @Service.task  # type: ignore[untyped-decorator]
    async def _publish_stats(self) -> None:
        """Warn of a recovery to which no records come.

        Upstream also calls it an internal error when all have come and we still read what the sink needs.
        """
        async for _ in self.itertimer(self.stats_interval, name="Recovery.stats"):
            if self.in_recovery and (stats := self.active_stats()):
                await self._verify_remaining(monotonic(), stats)


class ExactTableManager(TableManager):  # type: ignore[misc]
    """Uses `ExactRecovery`."""

    @property
    def recovery(self) -> Recovery:
        """The recovery service, which is made on first use as upstream does."""
        recovery: Recovery = self._recovery  # type: ignore[has-type]  # set to None by the base class
        if recovery is None:
            recovery = self._recovery = ExactRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return recovery


class RawTable(faust.Table):  # type: ignore[misc]
    """Hands the changelog's records to `sink` as they are.

    Upstream keeps them in a dictionary of its own, where a record without a key, or a tombstone, raises in the middle
    of a batch; recovery logs that and goes on without the rest of the batch.
    """

    sink: Any = None
    read_again: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Reads what the sink has passed over and needs after all, before the streams go on."""
    _reading: asyncio.Future[None] | None = None

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        """Take recovered records."""
        for event in batch:
            message = event.message
            self.sink.apply(message.partition, message.key, message.value)

    async def on_rebalance(self, *args: Any, **named: Any) -> None:
        """End the further reading: after the next recovery there is another.

        Upstream ends the recovery and not what it waits for, which would go on into the next one.
        """
        if self._reading is not None:
            self._reading.cancel()
        await super().on_rebalance(*args, **named)

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Forget lost partitions, and read again the records the sink needs."""
        await super().on_recovery_completed(active_tps, standby_tps)
        self.sink.keep_only({tp.partition for tp in active_tps})
        try:
            if self.read_again is not None:
                self._reading = asyncio.ensure_future(self.read_again())
                await self._reading
        except Exception as error:  # upstream would go on, with states that are not whole
            await self.app.crash(error)
            raise


class ExactApp(faust.App):  # type: ignore[misc]
    """A Faust app with the fixes above."""

    intake: Intake
    """What has been fetched of the observations and waits to be handled."""
    on_fenced: Callable[[], None]
    """Called where another process has taken our name in the group."""
    before_recovery: Callable[[set[TP], float], Awaitable[set[TP]]]
    """Called with the changelog's partitions, and how many seconds it may take, before their ends are asked for.

    Returns those that are to be read from the start.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("TableManager", ExactTableManager)
        kwargs.setdefault("Table", RawTable)
        super().__init__(*args, **kwargs)

    def _new_transport(self) -> Any:
        transport = super()._new_transport()
        transport.Consumer = ExactConsumer
        transport.Producer = WaitingProducer
        return transport

    def _create_directories(self) -> None:
        """Create no directories, since tables are in memory.

        Upstream's empty folders would lie where the worker was started.
        """


async def commit_exactly(app: faust.App, partition: TP, offset: int) -> None:
    """Commit the next offset of a partition, past Faust's record of acks.

    Faust commits over gaps when acks come out of order. A partition that is no longer ours is left alone:
    its new owner commits.
    """
    await app.consumer._commit_offsets({partition: offset})
