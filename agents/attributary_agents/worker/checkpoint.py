"""Checkpoints of a partition, in an order that no crash breaks.

The order of a checkpoint is the whole promise (docs/delivery.md):

1. note the last offset, the counters up to it, and the models that have changed: the cut (`Cut`);
2. in slices: of some of these models, set how many observations are explained from now on (`budget`), and encode the
   state; await every event and dead letter that the observations in it have sent; then write and await the state (in
   the order of `state/store.py`: chunks or object, head). Between two slices further observations are handled, and
   while events and writes are awaited too, unless one of these models has another stride from now on;
3. write and await the partition's checkpoint: offset and counters of the cut, and which state of each model is stored;
   and then a copy of it, without the latter, where records of others are mapped: what was taken of them must not be
   lost with a damaged checkpoint;
4. commit the offset.

How events are sent and states written is told by `delivery.py`: where it is to be exactly once, 2 and 3 are one
transaction, which has the events too, and nothing is sent before.

A crash before 3 repeats observations whose effects each model's own offset lets it skip; so does one after it, for what
a state contains beyond the cut. A crash between 3 and 4 repeats observations that the checkpoint skips. Duplicates of
events carry the same ids and the same bytes.

The cut is the scope of a checkpoint under way; observations beyond it are handled already. It is the partition's last
offset, with the counters up to it and the models that had changed, when the checkpoint began. The states that are
stored for it are those of the moment at which each is encoded, and may be ahead of the cut: a model's own offset has
it skip what it contains when that is repeated. So the counters are those of the cut: what is repeated is counted
then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import NamedTuple

from faust.types import TP

from ..kafka.upstream.faust_app import commit_exactly
from ..state.checkpoints import StoredAt, encode_checkpoint, encode_copy
from ..state.codec import encode_state
from ..state.names import checkpoint_copy_key, checkpoint_key
from .activity import Step
from .delivery import Delivery, Sent, Write, put_all
from .partition import Partition
from .poison import Endings
from .schedule import ENCODE_S, CheckpointSchedule, Steps
from .shared import Shared
from .view import PartitionView


class Encoded(NamedTuple):
    """The state of a model, to be written.

    Attributes
    ----------
    share
        Share of the time that explaining took; None where it is not known.
    has_new_stride
        Whether another number of observations is explained from now on.
    """

    model_id: str
    blob: bytes
    share: float | None
    has_new_stride: bool


class Cut:
    """Scope of a partition's checkpoint, and the states still to store.

    Parameters
    ----------
    lag
        Observations of the partition that wait, None where that is not known; by it and the measured times the models'
        budgets are adapted.
    repeats_to
        Last offset that an owner before may have handled: up to there observations are explained as they were then.
    """

    def __init__(self, partition: Partition, lag: int | None, repeats_to: int = -1) -> None:
        counters = partition.counters
        self._partition = partition
        self._repeats_to = repeats_to
        self._counters = replace(
            counters,
            dead_letters=counters.dead_letters.copy(),
            replayed=counters.replayed.copy(),
            origins=counters.origins.copy(),
        )
        self._left = sorted(partition.dirty, reverse=True)
        self._deployed: dict[str, int] = {}
        self.offset = partition.offset
        """The last offset that the checkpoint covers."""
        partition.budget.begin(lag)

    @property
    def is_encoded(self) -> bool:
        """Whether the states of all models that had changed are encoded."""
        return not self._left

    def encode_next(self) -> Encoded:
        """Return the next model's state as it is now, and set its stride.

        The stride is set in the same step, never before.

        What the observations up to now have sent must be awaited before these bytes are written. Where the stride has
        changed, no further observation may be handled before they are durable: the state that a crash leaves would have
        another stride than what was published.
        """
        partition, model_id = self._partition, self._left.pop()
        state = partition.models[model_id]
        stride = state.stride
        # An owner that was killed may have published what follows: it comes again with the same bytes.
        share = partition.budget.adapt(state) if partition.offset >= self._repeats_to else None
        blob = encode_state(state)
        partition.dirty.discard(model_id)
        partition.models.stored[model_id] = StoredAt.of(state.offset, blob)
        self._deployed[model_id] = state.current.deployed
        return Encoded(model_id, blob, share, has_new_stride=state.stride != stride)

    def encode_checkpoint(self) -> bytes:
        """Return the bytes of the checkpoint, to be written after all states.

        All states have to be durable before.
        """
        return encode_checkpoint(self.offset, self._counters, self._partition.models.stored)

    @property
    def stored(self) -> Collection[str]:
        """Ids of the models whose states are encoded for it."""
        return self._deployed

    def encode_copy(self) -> bytes | None:
        """Return the bytes of the checkpoint's copy; None if not needed.

        It is not needed where no record was mapped.
        """
        return encode_copy(self.offset, self._counters)

    def finish(self) -> None:
        """Note that the checkpoint is durable and committed."""
        self._partition.record_checkpoint(self.offset, self._deployed)


WRITES_TOGETHER = 64
"""States under way at once in a checkpoint: bounds what is held of them, and keeps the event loop answering."""

CUT_S = 0.005
"""Longest that observations wait for the cut of a checkpoint that is due."""


class Slice(NamedTuple):
    """States of a checkpoint, and the sends that must come before them.

    The sends have to be acknowledged before the states are written.
    """

    states: list[Encoded]
    sent: list[Sent]

    @property
    def holds(self) -> bool:
        """Whether handling must wait until these states are durable.

        It must where a stride has changed with them.
        """
        return any(state.has_new_stride for state in self.states)


class Checkpoint:
    """Checkpoint that is being made: its cut, and its time so far."""

    def __init__(self, cut: Cut, work_s: float) -> None:
        self.cut = cut
        self.work_s = work_s
        self.began = time.perf_counter()
        self.busy_s = 0.0
        self.pending_since: float | None = None
        """When the first observation beyond the cut was handled, by `time.monotonic`."""


class Checkpointing:
    """Maker of a partition's checkpoints in a group generation.

    Parameters
    ----------
    view
        What is noted of them for a scrape: sizes, shares, since when something is pending.
    goes_on
        Whether the partition is ours, stays so, and none of its steps has failed.
    may_store
        The same of a partition that is about to go: what is handled of it is stored.
    """

    def __init__(
        self,
        shared: Shared,
        tp: TP,
        partition: Partition,
        view: PartitionView,
        endings: Endings,
        delivery: Delivery,
        steps: Steps,
        *,
        goes_on: Callable[[], bool],
        may_store: Callable[[], bool],
    ) -> None:
        self._shared = shared
        self._tp = tp
        self._partition = partition
        self._view = view
        self._endings = endings
        self._delivery = delivery
        self._steps = steps
        self._goes_on = goes_on
        self._may_store = may_store
        self._activity = shared.view.activity
        self.schedule = CheckpointSchedule(shared.config.checkpoint)
        self.task: asyncio.Task[None] | None = None
        """What makes the last checkpoint that has begun beside the records."""
        self.being_made: Checkpoint | None = None
        self._has_cut = asyncio.Event()

    @property
    def _is_under_way(self) -> bool:
        return self.task is not None and not self.task.done()

    @property
    def room(self) -> int:
        """Number of observations to handle before a checkpoint has to come.

        A checkpoint is due then, or the one under way has to be waited for.

        Where one is due already, it begins between two slices.
        """
        made, partition = self.being_made, self._partition
        n_done = partition.n_pending if made is None else partition.offset - made.cut.offset
        at_most = self._shared.config.checkpoint.max_observations
        return at_most - n_done if n_done < at_most else at_most

    def note_handled(self, seconds: float) -> None:
        """Note that observations have been handled, which took so long."""
        if self._partition.n_pending:
            self._view.mark_pending()
        if self.being_made is not None and self.being_made.pending_since is None:
            self.being_made.pending_since = time.monotonic()
        self.schedule.add_work(seconds)

    async def wait_where_far(self) -> None:
        """Wait for the checkpoint under way if it is too far behind.

        A crash would repeat too much of the work that was done since, or too much waits in memory for it.
        """
        made = self.being_made
        if self._delivery.wants_checkpoint and self._is_under_way and self.task is not None:
            await asyncio.wait([self.task])
            return
        if self.task is None or made is None:
            return
        n_beyond, work_s = self._partition.offset - made.cut.offset, self.schedule.work_s - made.work_s
        if self.schedule.is_far(n_beyond, work_s):
            await asyncio.wait([self.task])

    def begin_where_due(self) -> None:
        """Begin a checkpoint if it is due and none is under way.

        It is made beside the records.
        """
        if self._is_under_way or not self._goes_on():
            return
        if self.schedule.is_due(self._partition.n_pending) or self._delivery.wants_checkpoint:
            self._has_cut.clear()
            self.task = self._shared.under_way.start((self, "store"), self._store_in_slices)

    async def let_begin(self) -> None:
        """Wait a moment for the cut of a checkpoint that is just due.

        So the checkpoint covers little more.
        """
        if self._is_under_way and self.being_made is None and not self._has_cut.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(CUT_S):
                    await self._has_cut.wait()
            self._has_cut.set()  # once for each

    async def finish(self) -> None:
        """Wait for the checkpoint under way.

        It takes no rest between its slices once the partition is to go.
        """
        if self._is_under_way and self.task is not None:
            await self.task

    @asynccontextmanager
    async def between(self) -> AsyncIterator[None]:
        """Hold the partition's step inside the block.

        Where a checkpoint is one transaction, the step is taken while none is under way.
        """
        while True:
            if not self._delivery.publishes_early:
                await self.finish()
            async with self._steps:
                if self._delivery.publishes_early or self.being_made is None or not self._may_store():
                    yield
                    return

    async def store_rest(self) -> None:
        """Make a checkpoint of all that has been handled, in a single step.

        The caller has the partition's `Steps`.
        """
        if self._partition.n_pending:
            checkpoint = self._cut()
            while not await self._store_slice(checkpoint, self._encode_slice(checkpoint)):
                pass

    async def _store_in_slices(self) -> None:
        checkpoint, is_done = None, False
        while not is_done:
            if self._goes_on():
                await self._shared.slices.rest()
            async with self._steps:
                if not self._may_store():
                    return
                began = time.perf_counter()
                checkpoint = checkpoint or self._cut()
                encoded = self._encode_slice(checkpoint)
                self._shared.slices.note_slice(time.perf_counter() - began)
                holds = encoded.holds and self._delivery.publishes_early
                if holds:
                    is_done = await self._store_slice(checkpoint, encoded)
            if not holds:
                is_done = await self._store_slice(checkpoint, encoded)
        async with self._steps:
            if self._may_store():
                self._rest_idle()

    def _rest_idle(self) -> None:
        """Drop idle template models from memory; their states are stored."""
        with self._shared.view.lock:
            gone = self._partition.rest_idle()
            for model_id in gone:
                self._view.state_bytes.pop(model_id, None)
                self._view.explain_shares.pop(model_id, None)
            self._shared.view.n_evictions.update(gone.values())

    def _cut(self) -> Checkpoint:  # 1
        cut = Cut(self._partition, self._view.lag.records, self._endings.repeats_to)
        self.being_made = Checkpoint(cut, self.schedule.work_s)
        self._has_cut.set()
        return self.being_made

    async def _store_slice(self, checkpoint: Checkpoint, encoded: Slice) -> bool:
        """Write these states, and after the last states the checkpoint.

        Waits first until brokers have acknowledged what the observations in them have sent.

        Returns
        -------
        Whether the checkpoint is written.
        """
        with self._storing(checkpoint):
            await self._delivery.settle(encoded.sent)
            states = [(state.model_id.encode(), state.blob) for state in encoded.states]
            if checkpoint.cut.is_encoded:
                await self._store_cut(checkpoint, states)
            else:
                await put_all(self._delivery, states)
        return checkpoint.cut.is_encoded

    @contextmanager
    def _storing(self, checkpoint: Checkpoint) -> Iterator[None]:
        with self._activity.doing(Step("checkpoint", self._tp, checkpoint.cut.offset)):
            try:
                yield
            except BaseException:
                self._steps.has_failed = True  # also where it is given up: what is stored of it is not known
                raise

    async def _store_cut(self, checkpoint: Checkpoint, states: list[Write]) -> None:
        partition, cut = self._partition, checkpoint.cut
        name = checkpoint_key(partition.number)
        await self._delivery.conclude(states, cut.offset, name, cut.encode_checkpoint)  # the last of 2, and 3
        if (copy := cut.encode_copy()) is not None:
            await self._delivery.store((), [(checkpoint_copy_key(partition.number), copy)])
        await self._activity.wait_for_kafka(commit_exactly(self._shared.app, self._tp, cut.offset + 1))  # 4
        cut.finish()
        self._shared.heartbeat.note(partition, cut.stored)
        self.schedule.record_checkpoint(checkpoint.busy_s, self.schedule.work_s - checkpoint.work_s)
        self._view.mark_stored(checkpoint.pending_since)
        self._shared.view.record_checkpoint(time.perf_counter() - checkpoint.began)
        self.being_made = None

    def _encode_slice(self, checkpoint: Checkpoint) -> Slice:
        """Encode the current states of some models, without a pause."""
        cut, began = checkpoint.cut, time.perf_counter()
        states: list[Encoded] = []
        with self._storing(checkpoint):
            while not (cut.is_encoded or len(states) == WRITES_TOGETHER or (states and _has_passed(ENCODE_S, began))):
                with self._shared.view.lock:
                    state = cut.encode_next()
                    self._delivery.note_encoded(state.model_id)
                    self._view.state_bytes[state.model_id] = len(state.blob)
                    if state.share is not None:
                        self._view.explain_shares[state.model_id] = state.share
                states.append(state)
        checkpoint.busy_s += time.perf_counter() - began
        return Slice(states, self._delivery.sent)


def _has_passed(seconds: float, began: float) -> bool:
    return time.perf_counter() - began >= seconds
