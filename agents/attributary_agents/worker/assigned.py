"""One partition that is ours, and the order in which what is handled becomes durable.

The order of a checkpoint is the whole promise (docs/delivery.md):

1. await every event and dead letter that the handled observations have sent;
2. set how many of its observations are explained from now on (`budget`), then write and await the state, of every
   model that has changed (in the order of `state/store.py`: chunks or object, head);
3. write and await the partition's checkpoint: offset and counters;
4. commit the offset.

A crash before 3 repeats observations whose effects each model's own offset lets it skip; a crash between 3 and 4
repeats observations that the checkpoint skips. Duplicates of events carry the same ids and the same bytes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import Any

from faust.types import TP

from ..kafka.faust_fixes import commit_exactly
from ..state.checkpoints import encode_checkpoint
from ..state.codec import encode_state
from ..state.names import checkpoint_key
from .activity import Step
from .deployments import PartitionControl
from .partition import Partition
from .records import Outgoing, record_of
from .schedule import CheckpointSchedule
from .shared import Shared
from .view import PartitionView

logger = logging.getLogger(__name__)

WRITES_TOGETHER = 64
"""States under way at once in a checkpoint: bounds what is held of them, and keeps the event loop answering."""

MAX_SENT_BYTES = 16_000_000
"""Values of events and dead letters in memory before they are awaited: a dead letter is as large as its record."""


class Assigned(PartitionView):
    """Handles the records of a partition in one generation of the consumer group, and makes their effects durable."""

    control: PartitionControl

    def __init__(self, shared: Shared, tp: TP, generation: int) -> None:
        self.tp = tp
        self.generation = generation
        self._shared = shared
        self._activity = shared.view.activity
        self._store = shared.open_store(tp.partition, generation)
        models_topic = shared.config.kafka.topics.models
        partition = Partition(tp.topic, tp.partition, shared.config, self._store.load, time.perf_counter)
        super().__init__(partition, PartitionControl(models_topic, partition, self._store.load))
        self._control_tp = TP(models_topic, tp.partition)
        self._schedule = CheckpointSchedule(shared.config.checkpoint)
        self._lock = asyncio.Lock()
        self._sent: list[Awaitable[Any]] = []
        self._sent_bytes = 0
        self._backlog_end: int | None = None
        self._is_restored = self._has_begun = self._control_has_begun = False

    @property
    def is_ours(self) -> bool:
        """Whether the worker has neither lost the partition nor taken it again in a later generation."""
        return self._shared.view.partitions.get(self.tp.partition) is self

    @property
    def pending_bytes(self) -> int:
        """Size of the states that the next checkpoint writes, as they were last stored."""
        return sum(self.state_bytes.get(model_id, 0) for model_id in self.partition.dirty)

    async def handle(self, message: Any) -> None:
        """Take one record of the observations topic; checkpoint when enough are pending."""
        async with self._lock:
            await self._restore()
            if not self.is_ours:
                return  # revoked while we waited: its next owner is given it again
            await self._check_offset(message.offset)
            for record in self._explain(message):
                self._sent.append(self._shared.send(record))
                self._sent_bytes += len(record.value or b"")
            if self._sent_bytes > MAX_SENT_BYTES:
                await self._await_sent()
            if self._schedule.is_due(self.partition.n_pending):
                await self._checkpoint()

    def _explain(self, message: Any) -> list[Outgoing]:
        view, began = self._shared.view, time.perf_counter()
        with self._activity.doing(Step("observation", message.tp, message.offset, message.key)), view.lock:
            outgoing = self.partition.handle(record_of(message))
            took = time.perf_counter() - began
            view.observation_times.observe(took)
            if self.partition.n_pending:
                self.mark_pending()
        self._schedule.add_work(took)
        return outgoing

    async def handle_control(self, message: Any) -> None:
        """Take one record of the models topic, and make what follows from it durable before any other record."""
        async with self._lock:
            await self._restore()
            if not self.is_ours:
                return
            if not self._control_has_begun:
                self._control_has_begun = True
                self.control.begin_at(message.offset)
                self._shared.gaps.check_not_recreated(message.tp, self.control.offset)
            backlog_end = await self.ask_backlog_end()
            step = Step("deployment", message.tp, message.offset, message.key)
            with self._activity.doing(step), self._shared.view.lock:
                outcome = self.control.take(record_of(message), backlog_end)
            await asyncio.gather(*map(self._shared.send, outcome.outgoing))
            for key, value in outcome.writes:
                await self._store.put(key, value)
            await commit_exactly(self._shared.app, message.tp, message.offset + 1)

    async def restore(self) -> None:
        """Load the stored models, once: they are then there from the next scrape on, before their observations."""
        async with self._lock:
            await self._restore()

    async def _restore(self) -> None:
        for name in () if self._is_restored else self._shared.records.names(self.tp.partition):
            if not self.is_ours:
                return
            with self._activity.doing(Step("restore", self.tp, self.partition.offset, name)):
                await self._store.fetch(name)
                if model_id := self._shared.model_ids.get(name):
                    with self._shared.view.lock:
                        self.partition.models.restore(model_id)
            self._activity.beat()
            await asyncio.sleep(0)  # there can be thousands
        self._is_restored = True

    async def ask_backlog_end(self) -> int:
        """Return the last offset that there was when the partition became ours; ask for it the first time.

        No earlier owner can have handled a later one. To be asked for early: a later end is as right, and further off.
        """
        if self._backlog_end is None:
            ends = await self._shared.app.consumer.highwaters(self.tp)
            self._backlog_end = ends[self.tp] - 1
        return self._backlog_end

    async def _check_offset(self, offset: int) -> None:
        if not self._has_begun:
            self._has_begun = True
            checkpointed = self.partition.checkpointed
            logger.info(
                "partition %d: first record at offset %d, checkpoint at %d", self.tp.partition, offset, checkpointed
            )
            self.partition.begin_at(offset)
            self._shared.gaps.check_not_recreated(self.tp, self.partition.checkpointed)
        await self._shared.gaps.check(self.partition, offset)

    async def tick(self) -> None:
        """Note how far behind the partition is, and checkpoint where that is due."""
        self._note_lags()
        if self._schedule.is_due(self.partition.n_pending):
            async with self._lock:
                if self.is_ours:
                    await self._checkpoint()

    def _note_lags(self) -> None:
        if (lag := self._find_lag()) is not None:
            self.lag = lag
        if self._control_tp in self._shared.app.consumer.assignment():
            end = self._shared.end(self._control_tp)
            if end is not None:
                self.control_lag = max(end - self.control.offset - 1, 0)

    def _find_lag(self) -> int | None:
        end = self._shared.end(self.tp)
        return None if end is None else max(end - self.partition.offset - 1, 0)

    async def checkpoint(self) -> None:
        """Make everything handled so far durable, in the order that the module describes.

        A failure stops the worker: going on would commit past it.
        """
        async with self._lock:
            await self._checkpoint()

    async def _checkpoint(self) -> None:
        partition = self.partition
        if not partition.n_pending:
            return
        with self._activity.doing(Step("checkpoint", self.tp, partition.offset)):
            began, offset = time.perf_counter(), partition.offset
            await self._await_sent()  # 1
            self._adapt_budgets()  # 2
            busy_s = await self._store_models()
            checkpoint = encode_checkpoint(offset, partition.counters)
            await self._store.put(checkpoint_key(partition.number), checkpoint)  # 3
            await commit_exactly(self._shared.app, self.tp, offset + 1)  # 4
            partition.record_checkpoint(offset)
            self._schedule.record_checkpoint(busy_s)
            self.mark_stored()
            self._shared.view.record_checkpoint(time.perf_counter() - began)

    async def _await_sent(self) -> None:
        sent, self._sent, self._sent_bytes = self._sent, [], 0
        await asyncio.gather(*sent)

    def _adapt_budgets(self) -> None:
        with self._shared.view.lock:
            shares = self.partition.budget.adapt(self.partition.changed, self._find_lag() or 0)
            self.explain_shares.update(shares)

    async def _store_models(self) -> float:
        """Write and await the state of every model that has changed; return the seconds that encoding them took."""
        changed, self.partition.dirty = self.partition.changed, set()
        busy_s = 0.0
        writes: list[Awaitable[None]] = []
        for state in changed:
            began = time.perf_counter()
            blob = encode_state(state)
            busy_s += time.perf_counter() - began
            self.state_bytes[state.model_id] = len(blob)
            writes.append(self._store.put(state.model_id.encode(), blob))
            if len(writes) == WRITES_TOGETHER:
                await asyncio.gather(*writes)
                self._activity.beat()
                writes = []
        await asyncio.gather(*writes)
        return busy_s
