"""Owns one partition, and makes what is handled durable in an order that no crash breaks.

The order of a checkpoint is the whole promise (docs/delivery.md):

1. note the last offset, the counters up to it, and the models that have changed: the cut (`storing/cut.py`);
2. in slices: of some of these models, set how many observations are explained from now on (`budget`), and encode the
   state; await every event and dead letter that the observations in it have sent; then write and await the state (in
   the order of `state/store.py`: chunks or object, head). Between two slices further observations are handled, and
   while events and writes are awaited too, unless one of these models has another stride from now on;
3. write and await the partition's checkpoint: offset and counters of the cut, and which state of each model is stored;
4. commit the offset.

A crash before 3 repeats observations whose effects each model's own offset lets it skip; so does one after it, for what
a state contains beyond the cut. A crash between 3 and 4 repeats observations that the checkpoint skips. Duplicates of
events carry the same ids and the same bytes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from faust.types import TP

from attributary_topics import Deployment

from ..errors import DeliveryError, EndedWorkerError
from ..kafka.faust_fixes import commit_exactly
from ..kafka.open_transactions import OpenTransaction
from ..models.apart.building import build
from ..state.names import checkpoint_key
from .activity import Step
from .deployments import Make, PartitionControl
from .endings import Endings
from .endings.trial import try_observation
from .partition import Partition
from .records import Outgoing, record_of
from .schedule import CheckpointSchedule
from .shared import Shared
from .storing.cut import Cut, Encoded
from .storing.restoring import Restoring
from .storing.slices import ENCODE_S
from .storing.steps import Steps
from .view import PartitionView

logger = logging.getLogger(__name__)

WRITES_TOGETHER = 64
"""States under way at once in a checkpoint: bounds what is held of them, and keeps the event loop answering."""

MAX_SENT_BYTES = 16_000_000
"""Values of events and dead letters in memory before they are awaited: a dead letter is as large as its record."""


class Sent(NamedTuple):
    """An event or dead letter on its way: what ends when the broker has it, and the size of its value."""

    ends: Awaitable[Any]
    n_bytes: int


class Slice(NamedTuple):
    """Some states of a checkpoint, and what has to be acknowledged before they are written."""

    states: list[Encoded]
    sent: list[Sent]

    @property
    def holds(self) -> bool:
        """Whether no further observation may be handled before they are durable: a stride has changed with them."""
        return any(state.has_new_stride for state in self.states)


class Checkpoint:
    """A checkpoint that is being made: its cut, and what it has taken so far."""

    def __init__(self, cut: Cut, work_s: float) -> None:
        self.cut = cut
        self.work_s = work_s
        self.began = time.perf_counter()
        self.busy_s = 0.0
        self.pending_since: float | None = None
        """When the first observation beyond the cut was handled, by `time.monotonic`."""


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
        self._sent: list[Sent] = []
        self._sent_bytes = 0
        self._backlog_end: int | None = None
        self._building: asyncio.Future[bytes] | None = None
        at_most = shared.config.checkpoint.max_observations
        self._endings = Endings(self._store, tp.partition, partition.checkpointed, at_most)
        self._restoring = Restoring(shared, tp, partition, self._store, self._endings, self._goes_on)
        self._restores: asyncio.Task[None] | None = None
        self._stores: asyncio.Task[None] | None = None
        self._being_made: Checkpoint | None = None
        self._is_leaving = self._has_begun = self._control_has_begun = False

    @property
    def is_ours(self) -> bool:
        """Whether the worker has neither lost the partition nor taken it again in a later generation."""
        return self._shared.view.partitions.get(self.tp.partition) is self

    @property
    def pending_bytes(self) -> int:
        """Size of the states that the next checkpoint writes, as they were last stored."""
        return sum(self.state_bytes.get(model_id, 0) for model_id in self.partition.dirty)

    async def handle(self, message: Any) -> None:
        """Take one record of the observations topic; begin a checkpoint when enough are pending."""
        self._shared.slices.note_record()
        if self._stores is not None and self._is_far_beyond_the_cut:
            await asyncio.wait([self._stores])
        async with self._steps:
            await self._prepare(message.key)
            if not self._goes_on():
                return  # revoked while we waited: its next owner is given it again
            await self._check_offset(message.offset)
            is_allowed = True
            if self._endings.concerns(message.offset, self.partition.checkpointed):
                is_allowed = await self._is_allowed(message)
            for record in self._handle_observation(message, is_allowed):
                self._sent.append(Sent(self._shared.send(record), len(record.value or b"")))
                self._sent_bytes += self._sent[-1].n_bytes
            if self._sent_bytes > MAX_SENT_BYTES:
                await self._await_sent(self._sent)
        self._store_where_due()

    async def _is_allowed(self, message: Any) -> bool:
        """Return whether an observation may be handled; note it first, or try it apart, where workers have ended."""
        record = record_of(message)
        if record.offset <= self.partition.offset:
            return True  # delivered again, and not handled

        async def trial() -> None:
            with self._activity.doing(Step("trial", message.tp, message.offset, self._shared.known_key(message.key))):
                await try_observation(self.partition, record)

        return await self._endings.allows(record.offset, self.partition.checkpointed, trial)

    def _handle_observation(self, message: Any, is_allowed: bool) -> list[Outgoing]:
        """Handle or refuse an observation, and note how long that has taken; return what is to be sent."""
        view, began = self._shared.view, time.perf_counter()
        step = Step("observation", message.tp, message.offset, self._shared.known_key(message.key))
        with self._activity.doing(step), view.lock:
            record = record_of(message)
            outgoing = self.partition.handle(record) if is_allowed else self.partition.refuse(record)
            took = time.perf_counter() - began
            view.observation_times.observe(took)
            if self.partition.n_pending:
                self.mark_pending()
            if self._being_made is not None and self._being_made.pending_since is None:
                self._being_made.pending_since = time.monotonic()
        self._schedule.add_work(took)
        return outgoing

    async def handle_control(self, message: Any) -> None:
        """Take one record of the models topic, and make what follows from it durable before any other record."""
        self._shared.slices.note_record()
        async with self._steps:
            await self._prepare(message.key)
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
        self._building = asyncio.ensure_future(build(self._shared.config, deployment))
        try:
            await asyncio.wait([self._building])
        finally:
            self._building.cancel()  # does nothing where it is done
        building, self._building = self._building, None
        if building.cancelled():
            await self._endings.leave_deployment()
            return None
        return lambda _deployment: building.result()

    async def begin(self) -> None:
        """Take the partition over: it is ready then, and its models are restored as they are asked for.

        Raises
        ------
        StateError
            What is stored cannot be used by this release, as far as that can be told without loading it.
        """
        async with self._steps:
            if self._goes_on():
                await self._restoring.begin()

    def restore_shown(self, shown: Collection[str]) -> None:
        """Begin to restore, beside the records, the models that are to have series; the first call counts."""
        if self._restores is None and not self._is_leaving:
            self._restoring.choose(shown)
            restore = partial(self._restoring.restore_chosen, self._steps)
            self._restores = self._shared.under_way.start((self, "restore"), restore)

    async def _prepare(self, key: bytes | None) -> None:
        """Have the model of a record restored before anything else is done of it."""
        if self._goes_on():
            await self._restoring.begin()
            await self._restoring.restore_asked(key)

    def _goes_on(self) -> bool:
        """Return whether records may be handled and models restored: the partition is ours, and stays so."""
        return self._may_store() and not self._is_leaving

    def _may_store(self) -> bool:
        return self.is_ours and not self._steps.has_failed

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

    def tick(self) -> None:
        """Note how far behind the partition is, and what holds it up; begin a checkpoint where that is due."""
        self._note_lags()
        self.transaction_s, self.control_transaction_s = (
            held.see(self._shared.ends.fetched(at)) for at, held in self._transactions
        )
        self._store_where_due()

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
        self._is_leaving = True
        if self._building is not None:
            self._building.cancel()
        if self._restores is not None:
            self._restores.cancel()
        self._restoring.leave()
        if self._stores is not None and not self._stores.done():
            await self._stores  # without a rest between its slices
        async with self._steps:
            if self._steps.has_failed:
                raise DeliveryError("a step before it has failed")
            if self.partition.n_pending:
                checkpoint = self._cut()
                while not await self._store_slice(checkpoint, self._encode_slice(checkpoint)):
                    pass
            await self._endings.close()

    @property
    def _is_far_beyond_the_cut(self) -> bool:
        """Whether so much has been handled since the checkpoint under way began that a crash would repeat too much."""
        made = self._being_made
        return made is not None and self._schedule.is_far(
            self.partition.offset - made.cut.offset, self._schedule.work_s - made.work_s
        )

    def _store_where_due(self) -> None:
        """Begin a checkpoint beside the records, where one is due and none is under way."""
        is_under_way = self._stores is not None and not self._stores.done()
        if not is_under_way and self._goes_on() and self._schedule.is_due(self.partition.n_pending):
            self._stores = self._shared.under_way.start((self, "store"), self._store_in_slices)

    async def _store_in_slices(self) -> None:
        checkpoint, is_done = None, False
        while not is_done:
            if not self._is_leaving:
                await self._shared.slices.rest()
            async with self._steps:
                if not self._may_store():
                    return
                began = time.perf_counter()
                checkpoint = checkpoint or self._cut()
                encoded = self._encode_slice(checkpoint)
                self._shared.slices.note_slice(time.perf_counter() - began)
                if encoded.holds:
                    is_done = await self._store_slice(checkpoint, encoded)
            if not encoded.holds:
                is_done = await self._store_slice(checkpoint, encoded)

    def _cut(self) -> Checkpoint:  # 1
        cut = Cut(self.partition, self.lag.records, self._endings.repeats_to)
        self._being_made = Checkpoint(cut, self._schedule.work_s)
        return self._being_made

    async def _store_slice(self, checkpoint: Checkpoint, encoded: Slice) -> bool:
        """Write these states once what their observations have sent is acknowledged, and after the last the checkpoint.

        Returns
        -------
        Whether the checkpoint is written.
        """
        with self._storing(checkpoint):
            await self._await_sent(encoded.sent)
            await asyncio.gather(*(self._store.put(state.model_id.encode(), state.blob) for state in encoded.states))
            if checkpoint.cut.is_encoded:
                await self._store_cut(checkpoint)
        return checkpoint.cut.is_encoded

    @contextmanager
    def _storing(self, checkpoint: Checkpoint) -> Iterator[None]:
        with self._activity.doing(Step("checkpoint", self.tp, checkpoint.cut.offset)):
            try:
                yield
            except BaseException:
                self._steps.has_failed = True  # also where it is given up: what is stored of it is not known
                raise

    async def _store_cut(self, checkpoint: Checkpoint) -> None:
        partition, cut = self.partition, checkpoint.cut
        await self._store.put(checkpoint_key(partition.number), cut.encode_checkpoint())  # 3
        await self._activity.wait_for_kafka(commit_exactly(self._shared.app, self.tp, cut.offset + 1))  # 4
        cut.finish()
        self._schedule.record_checkpoint(checkpoint.busy_s, self._schedule.work_s - checkpoint.work_s)
        self.mark_stored(checkpoint.pending_since)
        self._shared.view.record_checkpoint(time.perf_counter() - checkpoint.began)
        self._being_made = None

    async def _await_sent(self, sent: Sequence[Sent]) -> None:
        """Wait until brokers have these events and dead letters; those that come meanwhile stay to be waited for."""
        awaited = [one.ends for one in sent]
        # Shielded: a step that is given up leaves what has been sent on its way.
        await self._activity.wait_for_kafka(asyncio.shield(asyncio.gather(*awaited)))
        # The handling of records and a slice may wait at the same time, for some of the same.
        known = set(map(id, awaited))
        self._sent = [one for one in self._sent if id(one.ends) not in known]
        self._sent_bytes = sum(one.n_bytes for one in self._sent)

    def _encode_slice(self, checkpoint: Checkpoint) -> Slice:
        """Encode the states of some of the models as they are now, without a pause in between."""
        cut, began = checkpoint.cut, time.perf_counter()
        states: list[Encoded] = []
        with self._storing(checkpoint):
            while not (cut.is_encoded or len(states) == WRITES_TOGETHER or (states and _has_passed(ENCODE_S, began))):
                with self._shared.view.lock:
                    state = cut.encode_next()
                    self.state_bytes[state.model_id] = len(state.blob)
                    if state.share is not None:
                        self.explain_shares[state.model_id] = state.share
                states.append(state)
        checkpoint.busy_s += time.perf_counter() - began
        return Slice(states, list(self._sent))


def _has_passed(seconds: float, began: float) -> bool:
    return time.perf_counter() - began >= seconds


def _refuse(_deployment: Deployment) -> bytes:
    raise EndedWorkerError("two workers ended while they built this version: it is not built again")
