"""Correction of Faust's `Consumer` on aiokafka, and its thread.

- Records of aborted transactions are delivered, unless the whole app is of Faust's `exactly_once`.
- aiokafka is handed the live set of active partitions. A rebalance that empties it during a poll makes it mean "all",
  and what is then read is lost.
- A message costs several times what a light model does: the records of a poll become one (`inbox.py`).
- At ERROR it calls healthy partitions and threads dead: those that wait for a model or for the next checkpoint, and a
  thread while it is the event loop that is in a long step. It compares the broker's clock with the process's. The
  watchdog and the metrics say what these lines should.

True for faust-streaming 0.15.3; `test_faust.py` says when it is mended.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from faust.types import TP, ConsumerMessage

from ..brokers import BROKERS
from ..inbox import Fetch, Intake, message_of
from .aiokafka_coordinator import NamedCoordinator
from .aiokafka_fetcher import PromptFetcher

_ABOUT_WAITING = ("Warning: Task timed out!", "Please make sure it's hanging before restart.")
_ABOUT_THREADS = "Thread keepalive is not responding"


def is_unexplained(record: logging.LogRecord) -> bool:
    """Return whether a line of Faust says something that nothing else says.

    Of a commit or a rebalance that lasts while it waits for brokers, their watch says so, and no restart mends it.
    """
    line = str(record.msg)
    return not (_ABOUT_THREADS in line or (line.endswith(_ABOUT_WAITING) and BROKERS.is_told))


logging.getLogger(__name__).addFilter(is_unexplained)  # Faust logs under the module of the subclass

LOOK_S = 0.05
"""Longest poll while a partition is not polled because its inbox is full."""


class CommittedThread(AIOKafkaConsumerThread):  # type: ignore[misc]  # Faust is untyped
    """Thread of a consumer that reads records of committed transactions only."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"  # read when it starts
        return consumer

    async def on_start(self) -> None:
        """Start with our fetcher, and with our coordinator if there is a name."""
        await super().on_start()
        # Both are made by the consumer, and not ours to choose.
        self._consumer._fetcher.__class__ = PromptFetcher
        coordinator = self._consumer._coordinator
        if coordinator._group_instance_id is not None:
            coordinator.__class__ = NamedCoordinator
            coordinator.on_fenced = lambda: self.app.loop.call_soon_threadsafe(self.app.on_fenced)


class ExactConsumer(Consumer):  # type: ignore[misc]
    """Consumer that polls a copy of the active partitions that have room."""

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
        """Skip upstream's check that active partitions move on."""

    def verify_recovery_event_path(self, now: float, tp: TP) -> None:
        """Skip upstream's check of the time of recovery events."""


class FetchState(NamedTuple):
    """Partition as the last answer to a fetch described it."""

    end: int
    """Offset that the next record will have."""
    stable: int | None
    """Where the first open transaction begins, or `end`; None where brokers do not say."""
    position: int | None
    """Offset that is asked for next; None where there is none yet."""
    time_ms: int
    """When it came, in milliseconds since the epoch, by the system's clock."""


def fetch_state(consumer: Any, tp: TP) -> FetchState | None:
    """Return the state of a partition at its last fetch, or None.

    aiokafka's public methods for this raise where the client, in its own thread, has just lost the partition, and tell
    no position without waiting.
    """
    client = getattr(getattr(consumer, "_thread", None), "_consumer", None)
    subscription = None if client is None else client._subscription.subscription
    assignment = None if subscription is None else subscription.assignment
    if assignment is None or tp not in assignment.tps:
        return None
    state = assignment.state_value(tp)
    if state.highwater is None or state.timestamp is None:
        return None
    stable = None if state.lso is None or state.lso < 0 else state.lso  # -1 without transactions
    return FetchState(state.highwater, stable, state.position if state.has_valid_position else None, state.timestamp)
