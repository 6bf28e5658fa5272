"""One partition that is ours, and the order in which what is handled becomes durable.

The order of a checkpoint is the whole promise (docs/delivery.md):

1. await every event and dead letter that the handled observations have sent;
2. set how many of its observations are explained from now on (`budget`), then write and await the state, of every
   model that has changed (in the order of `state/store.py`: chunks or object, head);
3. write and await the partition's checkpoint: offset, counters, and which state of each model is stored;
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

from attributary_topics import Deployment

from ..errors import DeliveryError, EndedWorkerError, StateError
from ..kafka.faust_fixes import commit_exactly
from ..kafka.open_transactions import OpenTransaction, reach
from ..models.apart.building import build
from ..state.checkpoints import StoredAt, encode_checkpoint
from ..state.codec import encode_state
from ..state.names import checkpoint_key
from .activity import Step
from .deployments import Make, PartitionControl
from .endings import Endings
from .endings.trial import try_observation, try_restore
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


class Steps:
    """Lets one step of a partition begin after another, and remembers where one fails.

    What a failed step has handled may be stored in part, or not be sent: nothing further may be stored or committed.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.has_failed = False

    @property
    def is_running(self) -> bool:
        """Whether a step has begun and not ended."""
        return self._lock.locked()

    async def __aenter__(self) -> None:
        await self._lock.acquire()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._lock.release()
        self.has_failed |= kind is not None and issubclass(kind, Exception)  # being cancelled is no failure


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
        partition = Partition(
            tp.topic, tp.partition, shared.config, self._store.load, time.perf_counter, shared.dead_letter_log
        )
        super().__init__(partition, PartitionControl(models_topic, partition, self._store.load))
        self._control_tp = TP(models_topic, tp.partition)
        self._transactions = [(at, OpenTransaction(f"{at.topic}[{at.partition}]")) for at in (tp, self._control_tp)]
        self._schedule = CheckpointSchedule(shared.config.checkpoint)
        self._steps = Steps()
        self._sent: list[Awaitable[Any]] = []
        self._sent_bytes = 0
        self._backlog_end: int | None = None
        self._is_apart = False
        self._building: asyncio.Future[bytes] | None = None
        at_most = shared.config.checkpoint.max_observations
        self._endings = Endings(self._store, tp.partition, partition.checkpointed, at_most)
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
        async with self._steps:
            await self._restore()
            if not self._goes_on():
                return  # revoked while we waited: its next owner is given it again
            await self._check_offset(message.offset)
            is_allowed = True
            if self._endings.concerns(message.offset, self.partition.checkpointed):
                is_allowed = await self._is_allowed(message)
            for record in self._explain(message, is_allowed):
                self._sent.append(self._shared.send(record))
                self._sent_bytes += len(record.value or b"")
            if self._sent_bytes > MAX_SENT_BYTES:
                await self._await_sent()
            if self._schedule.is_due(self.partition.n_pending):
                await self._checkpoint()

    async def _is_allowed(self, message: Any) -> bool:
        """Return whether an observation may be handled; note it first, or try it apart, where workers have ended."""
        record = record_of(message)
        if record.offset <= self.partition.offset:
            return True  # delivered again, and not handled

        async def trial() -> None:
            self._is_apart = True
            try:
                with self._activity.doing(
                    Step("trial", message.tp, message.offset, self._shared.known_key(message.key))
                ):
                    await try_observation(self.partition, record)
            finally:
                self._is_apart = False

        return await self._endings.allows(record.offset, self.partition.checkpointed, trial)

    def _explain(self, message: Any, is_allowed: bool) -> list[Outgoing]:
        view, began = self._shared.view, time.perf_counter()
        step = Step("observation", message.tp, message.offset, self._shared.known_key(message.key))
        with self._activity.doing(step), view.lock:
            record = record_of(message)
            outgoing = self.partition.handle(record) if is_allowed else self.partition.refuse(record)
            took = time.perf_counter() - began
            view.observation_times.observe(took)
            if self.partition.n_pending:
                self.mark_pending()
        self._schedule.add_work(took)
        return outgoing

    async def handle_control(self, message: Any) -> None:
        """Take one record of the models topic, and make what follows from it durable before any other record."""
        async with self._steps:
            await self._restore()
            if not self._goes_on():
                return
            if not self._control_has_begun:
                self._control_has_begun = True
                self.control.begin_at(message.offset)
                self._shared.gaps.check_not_recreated(message.tp, self.control.offset)
            backlog_end = await self.ask_backlog_end()
            step = Step("deployment", message.tp, message.offset, self._shared.known_key(message.key))
            record = record_of(message)
            with self._activity.doing(step):
                with self._shared.view.lock:
                    wanted = self.control.find_wanted(record)
                make = None if wanted is None else await self._build(wanted, record.offset)
                if wanted is not None and make is None:
                    return  # its next owner builds it
                with self._shared.view.lock:
                    outcome = self.control.take(record, backlog_end, make)
            await asyncio.gather(*map(self._shared.send, outcome.outgoing))
            for key, value in outcome.writes:
                await self._store.put(key, value)
            await commit_exactly(self._shared.app, message.tp, message.offset + 1)

    async def _build(self, deployment: Deployment, offset: int) -> Make | None:
        """Build a deployment's model in a process of its own; return what gives its bytes, or says why there are none.

        Where the partition goes meanwhile, the building ends, and None is returned: a rebalance does not wait for it.
        """
        if not await self._endings.begin_deployment(offset):
            return _refuse
        self._building, self._is_apart = asyncio.ensure_future(build(self._shared.config, deployment)), True
        try:
            await asyncio.wait([self._building])
        finally:
            self._is_apart = False
            self._building.cancel()  # does nothing where it is done
        building, self._building = self._building, None
        if building.cancelled():
            await self._endings.leave_deployment()
            return None
        return lambda _deployment: building.result()

    async def restore(self) -> None:
        """Load the stored models, once: they are then there from the next scrape on, before their observations."""
        async with self._steps:
            await self._restore()

    async def _restore(self) -> None:
        if self._is_restored or not self._goes_on():
            return
        await self._endings.open()
        for name in self._names():
            if not self._goes_on():
                return
            with self._activity.doing(Step("restore", self.tp, self.partition.offset, self._shared.known_key(name))):
                await self._store.fetch(name)
                if (model_id := self._shared.model_ids.get(name)) and await self._may_restore(model_id):
                    with self._shared.view.lock:
                        self.partition.models.restore(model_id)
            await asyncio.sleep(0)  # there can be thousands
        await self._sign()
        self._is_restored = True
        await self._endings.restored()

    async def _sign(self) -> None:
        """Sign what has been stored without a signature, while the group begins to sign."""
        if not self._shared.config.state.accept_unsigned:
            return
        with self._activity.doing(Step("sign", self.tp, self.partition.offset)):
            signed = await self._store.sign(self._goes_on)
        if not self._goes_on():
            return
        logger.warning(
            "partition %d: %d stored states had no signature, and have one now: this partition needs no "
            "state.accept_unsigned any more",
            self.tp.partition,
            signed,
        )

    def _goes_on(self) -> bool:
        return self.is_ours and not self._steps.has_failed

    async def _may_restore(self, model_id: str) -> bool:
        """Return whether a model may be restored; note it first, or try it apart, where workers have ended."""

        async def trial() -> None:
            try:
                blob = self._store.load(model_id.encode())
            except StateError:
                return
            if blob is not None:
                await try_restore(self._shared.config, model_id, blob)
            await self._store.fetch(model_id.encode())  # once more: a fetched object is there for one reader

        if await self._endings.allows_restore(model_id, trial):
            return True
        self.partition.models.refuse(model_id)
        return False

    def _names(self) -> list[bytes]:
        """Return the names that are stored, and those that the checkpoint names and that are gone."""
        found = self._shared.records.names(self.tp.partition)
        named, known = map(str.encode, self.partition.models.stored), set(found)
        return [*found, *(name for name in named if name not in known)]

    async def ask_backlog_end(self) -> int:
        """Return the last offset that there was when the partition became ours; ask for it the first time.

        No earlier owner can have handled a later one. To be asked for early: a later end is as right, and further off.
        """
        if self._backlog_end is None:
            ends = await self._shared.app.consumer.highwaters(self.tp)
            self._backlog_end = ends[self.tp] - 1
        return self._backlog_end

    async def _check_offset(self, offset: int) -> None:
        is_first, self._has_begun = not self._has_begun, True
        if is_first:
            checkpointed = self.partition.checkpointed
            logger.info(
                "partition %d: first record at offset %d, checkpoint at %d", self.tp.partition, offset, checkpointed
            )
            self.partition.begin_at(offset)
            self._shared.gaps.check_not_recreated(self.tp, self.partition.checkpointed)
        await self._shared.gaps.check(self.partition, offset, is_first=is_first)

    def tick(self) -> bool:
        """Note how far behind the partition is, and what holds it up; return whether a checkpoint is due."""
        self._note_lags()
        self.transaction_s, self.control_transaction_s = (
            held.see(reach(self._shared.app, *at)) for at, held in self._transactions
        )
        # Apart, a process of its own is waited for, with the lock.
        return not self._is_apart and self._schedule.is_due(self.partition.n_pending)

    async def checkpoint_due(self) -> None:
        """Make a checkpoint unless an observation has made it since it was found due."""
        async with self._steps:
            if self._goes_on() and self._schedule.is_due(self.partition.n_pending):
                await self._checkpoint()

    def _note_lags(self) -> None:
        if (end := self._shared.ends.end(self.tp)) is not None:
            self.lag.note(max(end.offset - self.partition.offset - 1, 0), end.seen_at)
        if self._control_tp in self._shared.app.consumer.assignment():
            end = self._shared.ends.end(self._control_tp)
            if end is not None:
                self.control_lag.note(max(end.offset - self.control.offset - 1, 0), end.seen_at)

    async def checkpoint(self) -> None:
        """Make everything handled so far durable before the partition goes, in the order that the module describes.

        A failure stops the worker: going on would commit past it.

        Raises
        ------
        DeliveryError
            A step has failed before.
        """
        if self._building is not None:
            self._building.cancel()
        async with self._steps:
            if self._steps.has_failed:
                raise DeliveryError("a step before it has failed")
            await self._checkpoint()
            await self._endings.close()

    async def _checkpoint(self) -> None:
        partition = self.partition
        if not partition.n_pending:
            return
        with self._activity.doing(Step("checkpoint", self.tp, partition.offset)):
            began, offset = time.perf_counter(), partition.offset
            await self._await_sent()  # 1
            self._adapt_budgets()  # 2
            busy_s = await self._store_models()
            checkpoint = encode_checkpoint(offset, partition.counters, partition.models.stored)
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
            shares = self.partition.budget.adapt(self.partition.changed, self.lag.records or 0)
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
            self.partition.models.stored[state.model_id] = StoredAt.of(state.offset, blob)
            writes.append(self._store.put(state.model_id.encode(), blob))
            if len(writes) == WRITES_TOGETHER:
                await asyncio.gather(*writes)
                writes = []
        await asyncio.gather(*writes)
        return busy_s


def _refuse(_deployment: Deployment) -> bytes:
    raise EndedWorkerError("two workers ended while they built this version: it is not built again")
