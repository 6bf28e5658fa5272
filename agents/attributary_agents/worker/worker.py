"""The worker's side of delivery: which partitions are ours, checkpoints, gaps.

The order of a checkpoint is the whole promise (docs/delivery.md):

1. await every event and dead letter that the handled observations have sent;
2. set how many of its observations are explained from now on (`budget`), then write and await the state, of every
   model that has changed (in the order of `state_store`: chunks or object, head);
3. write and await the partition's checkpoint: offset and counters;
4. commit the offset.

A crash before 3 repeats observations whose effects each model's own offset lets it skip; a crash between 3 and 4
repeats observations that the checkpoint skips. Duplicates of events carry the same ids and the same bytes.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Iterable
from typing import Any

import faust
from aiokafka.errors import KafkaError
from faust.types import TP

from ..config.settings import Config
from ..kafka.faust_fixes import commit_exactly
from ..state.checkpoints import encode_checkpoint
from ..state.codec import encode_state
from ..state.names import checkpoint_key
from ..state.objects import object_store
from ..state.records import StateRecords
from ..state.seal import Seal
from ..state.store import PartitionStore
from .cadence import Cadence
from .deployments import PartitionControl
from .gaps import Gaps
from .partition import Partition
from .records import Outgoing, Record
from .view import Step, WorkerView

logger = logging.getLogger(__name__)

WRITES_TOGETHER = 64
"""States under way at once in a checkpoint: bounds what is held of them, and keeps the event loop answering."""

GRACE_S = 20.0
"""Longest that the final checkpoints of all partitions may take together at a rebalance."""

LEAVE_S = 7.0
"""What of `watchdog.stop_within_s` is kept to leave the group, close the connections and end the process."""

MAX_SENT_BYTES = 16_000_000
"""Values of events and dead letters in memory before they are awaited: a dead letter is as large as its record."""


class Assigned:
    """A partition in one generation of the consumer group, with what has been sent for it and not yet awaited."""

    def __init__(
        self,
        tp: TP,
        generation: int,
        partition: Partition,
        control: PartitionControl,
        store: PartitionStore,
        cadence: Cadence,
    ) -> None:
        self.tp = tp
        self.generation = generation
        self.partition = partition
        self.control = control
        self.store = store
        self.cadence = cadence
        self.settled: int | None = None
        """Last offset that there was when the partition became ours: no earlier owner can have handled a later one."""
        self.sent: list[Any] = []
        self.sent_bytes = 0
        """Bytes of the values in `sent`."""
        self.lock = asyncio.Lock()
        self.restored = False
        self.checked_start = False
        self.checked_control = False


class Worker:
    """Everything that this process holds of its partitions."""

    def __init__(self, app: faust.App, config: Config, table: Any, outputs: dict[str, Any], view: WorkerView) -> None:
        self.app = app
        self.config = config
        self.table = table
        self.records: StateRecords = table.sink
        self.gaps = Gaps(app, config)
        self.seal = Seal(config.state.read_key(), accept_unsigned=config.state.accept_unsigned)
        self.objects = object_store(config.state.url, config.kafka.group)
        self.outputs = outputs
        self.view = view
        self._model_ids = {model_id.encode(): model_id for model_id in config.models}
        self.assigned: dict[int, Assigned] = {}
        self.handlers: tuple[Any, ...] = ()
        # Held while an observation changes a state, and by a scrape while it reads one.
        self.lock: threading.Lock = view.lock

    async def handle(self, event: Any) -> None:
        """Take one record of the observations topic; checkpoint when enough are pending."""
        message = event.message
        if self._is_late(message.tp, message.generation_id):
            return
        assigned = self._assigned(message)
        async with assigned.lock:
            if not await self._restored(assigned):
                return  # revoked while we waited: its next owner is given it again
            partition = assigned.partition
            await self._check_offset(assigned, message.offset)
            began = time.perf_counter()
            with self.view.doing(Step("observation", message.tp, message.offset, message.key)), self.lock:
                outgoing = partition.handle(_record(message))
                took = time.perf_counter() - began
                self.view.step(took)
                if partition.n_pending:
                    self.view.pending(partition.number)
            assigned.cadence.worked(took)
            for record in outgoing:
                assigned.sent.append(self._send(record))
                assigned.sent_bytes += len(record.value or b"")
            if assigned.sent_bytes > MAX_SENT_BYTES:
                await self._settle_sent(assigned)
            if assigned.cadence.is_due(partition.n_pending):
                await self.checkpoint(assigned)

    async def handle_control(self, event: Any) -> None:
        """Take one record of the models topic."""
        message = event.message
        observations = TP(self.config.kafka.topics.observations, message.partition)
        if observations not in self.app.consumer.assignment():
            # Workers of several releases in one group: the assignor keeps topics apart that not all of them read.
            logger.warning("%s[%d] without %s[%d]: left alone", message.topic, message.partition, *observations)
            return
        if self._is_late(observations, message.generation_id):
            return
        assigned = self._assigned_of(observations, message.generation_id)
        async with assigned.lock:
            if not await self._restored(assigned):
                return
            if not assigned.checked_control:
                assigned.checked_control = True
                assigned.control.begin_at(message.offset)
                self.gaps.check_not_made_again(message.tp, assigned.control.offset)
            settled = await self._settled(assigned)
            with self.view.doing(Step("deployment", message.tp, message.offset, message.key)), self.lock:
                step = assigned.control.take(_record(message), settled)
            await asyncio.gather(*map(self._send, step.outgoing))
            for key, value in step.writes:
                await assigned.store.put(key, value)
            await commit_exactly(self.app, message.tp, message.offset + 1)

    def _is_late(self, tp: TP, generation: int) -> bool:
        """Whether a record was fetched before the rebalance that gave us the partition: it comes again."""
        known = self.assigned.get(tp.partition)
        return known is not None and generation < known.generation

    def _assigned(self, message: Any) -> Assigned:
        known = self.assigned.get(message.partition)
        assigned = self._assigned_of(message.tp, message.generation_id)
        if assigned is not known:
            logger.info(
                "partition %d: first record at offset %d, checkpoint at %d",
                message.partition,
                message.offset,
                assigned.partition.checkpointed,
            )
        return assigned

    def _assigned_of(self, tp: TP, generation: int) -> Assigned:
        assigned = self.assigned.get(tp.partition)
        if assigned is None or assigned.generation != generation:
            assigned = self._assign(tp, generation)
        return assigned

    def _assign(self, tp: TP, generation: int) -> Assigned:
        store = PartitionStore(self.records, tp.partition, generation, self._write, self.seal, self.objects)
        partition = Partition(tp.topic, tp.partition, self.config, store.load, time.perf_counter)
        control = PartitionControl(self.config.kafka.topics.models, partition, store.load)
        assigned = Assigned(tp, generation, partition, control, store, Cadence(self.config.checkpoint))
        with self.lock:
            self.assigned[tp.partition] = assigned
            self.view.partitions[tp.partition] = partition
            self.view.controls[tp.partition] = control
        return assigned

    async def adopt(self, partitions: Iterable[TP], generation: int) -> None:
        """Take over partitions whose state has been recovered, before their first record.

        Their models are explained from the start of a scrape, not from their next observation.
        """
        for tp in partitions:
            assigned = self.assigned.get(tp.partition) or self._assign(tp, generation)
            async with assigned.lock:
                await self._restored(assigned)

    async def _restored(self, assigned: Assigned) -> bool:
        """Load the stored models, once, and whether the partition is still ours; the caller holds its lock."""
        number = assigned.tp.partition
        for name in () if assigned.restored else self.records.names(number):
            if self.assigned.get(number) is not assigned:
                return False
            with self.view.doing(Step("restore", assigned.tp, assigned.partition.offset, name)):
                await assigned.store.fetch(name)
                if model_id := self._model_ids.get(name):
                    with self.lock:
                        assigned.partition.restore(model_id)
            self.view.beat()
            await asyncio.sleep(0)  # there can be thousands
        assigned.restored = True
        return self.assigned.get(number) is assigned

    async def note_ends(self) -> None:
        """Ask where the topic of newly adopted partitions ends, soon after they were; see `Assigned.settled`."""
        for assigned in list(self.assigned.values()):
            try:
                await self._settled(assigned)
            except KafkaError as error:  # asked again when it is needed; a later end is as right, and further off
                logger.info("partition %d: cannot tell where the topic ends (%r)", assigned.tp.partition, error)

    async def _settled(self, assigned: Assigned) -> int:
        if assigned.settled is None:
            ends = await self.app.consumer.highwaters(assigned.tp)
            assigned.settled = ends[assigned.tp] - 1
        return assigned.settled

    def _send(self, record: Outgoing) -> Any:
        return self.outputs[record.topic].send_soon(key=record.key, value=record.value, headers=record.headers)

    async def _check_offset(self, assigned: Assigned, offset: int) -> None:
        partition = assigned.partition
        if not assigned.checked_start:
            assigned.checked_start = True
            partition.begin_at(offset)
            self.gaps.check_not_made_again(assigned.tp, partition.checkpointed)
        await self.gaps.check(partition, offset)

    async def checkpoint(self, assigned: Assigned) -> None:
        """Make everything handled so far durable, in the order that the module describes.

        The caller holds the partition's lock. A failure stops the worker: going on would commit past it.
        """
        partition = assigned.partition
        if not partition.n_pending:
            return
        with self.view.doing(Step("checkpoint", assigned.tp, partition.offset)):
            await self._checkpoint(assigned)

    async def _settle_sent(self, assigned: Assigned) -> None:
        sent, assigned.sent, assigned.sent_bytes = assigned.sent, [], 0
        await asyncio.gather(*sent)

    async def _checkpoint(self, assigned: Assigned) -> None:
        partition, store = assigned.partition, assigned.store
        began, busy_s = time.perf_counter(), 0.0
        offset, number = partition.offset, partition.number
        await self._settle_sent(assigned)  # 1
        with self.lock:  # 2
            self.view.explain_shares.update(partition.think_over(self._lag(assigned) or 0))
        dirty, partition.dirty = partition.dirty, set()
        writes: list[Awaitable[None]] = []
        for model_id in sorted(dirty):
            encoding = time.perf_counter()
            blob = encode_state(partition.models[model_id])
            busy_s += time.perf_counter() - encoding
            self.view.state_bytes[model_id] = len(blob)
            writes.append(store.put(model_id.encode(), blob))
            if len(writes) == WRITES_TOGETHER:
                await asyncio.gather(*writes)
                self.view.beat()
                writes = []
        await asyncio.gather(*writes)
        await store.put(checkpoint_key(number), encode_checkpoint(offset, partition.counters))  # 3
        await commit_exactly(self.app, assigned.tp, offset + 1)  # 4
        partition.checkpoint_done(offset)
        assigned.cadence.stored(busy_s)
        self.view.stored(number)
        self.view.checkpoint(time.perf_counter() - began)

    def _write(self, partition: int, key: bytes, value: bytes | None) -> Any:
        # The changelog's future is awaited by us: Faust itself only logs a write that the broker refuses.
        return self.table.send_changelog(partition, key, value)

    async def tick(self) -> None:
        """Once a second: checkpoint what is due, and note that the loop is alive."""
        self.view.beat()
        for assigned in list(self.assigned.values()):
            self._note_control_lag(assigned)
            lag = self._lag(assigned)
            if lag is not None:
                self.view.lag[assigned.tp] = lag
            if not assigned.cadence.is_due(assigned.partition.n_pending):
                continue
            async with assigned.lock:
                if self.assigned.get(assigned.tp.partition) is assigned:
                    await self.checkpoint(assigned)

    def _lag(self, assigned: Assigned) -> int | None:
        end = self.app.consumer.highwater(assigned.tp)
        return None if end is None else max(end - assigned.partition.offset - 1, 0)

    def _note_control_lag(self, assigned: Assigned) -> None:
        tp = TP(self.config.kafka.topics.models, assigned.tp.partition)
        end = self.app.consumer.highwater(tp) if tp in self.app.consumer.assignment() else None
        if end is not None:
            self.view.lag[tp] = max(end - assigned.control.offset - 1, 0)

    async def release(self, numbers: Iterable[int] | None = None) -> None:
        """Checkpoint and forget partitions, all by default: they are lost, or we are stopping.

        All have one deadline, whatever their number. Where it fails, the next owner repeats from the last checkpoint.
        """
        numbers = list(self.assigned if numbers is None else numbers)
        leaving = [self.assigned[number] for number in numbers if number in self.assigned]
        # The smallest first, so that the deadline costs as few partitions as may be.
        leaving.sort(key=self._stored_bytes)
        began = time.monotonic()
        within_s = GRACE_S if self.view.stop_by is None else max(self.view.stop_by - LEAVE_S - began, 0.0)
        finals = {asyncio.ensure_future(self._final_checkpoint(assigned)): assigned for assigned in leaving}
        if finals:
            await asyncio.wait(finals, timeout=within_s)
            for final in finals:
                final.cancel()  # does nothing to those that are done
            await asyncio.wait(finals)
        for final, assigned in finals.items():
            why = f"not within {within_s:.0f} s" if final.cancelled() else final.exception()
            if why is not None:  # nothing is lost by giving up here, and we must not hang
                pending = assigned.partition.n_pending
                logger.warning(
                    "partition %d: no final checkpoint (%s); its next owner repeats %d observations from the last one",
                    assigned.tp.partition,
                    why if isinstance(why, str) else repr(why),
                    pending,
                )
            with self.lock:
                if self.assigned.get(assigned.tp.partition) is assigned:
                    del self.assigned[assigned.tp.partition]
                    self.view.forget(assigned.tp.partition)

    def _stored_bytes(self, assigned: Assigned) -> int:
        return sum(self.view.state_bytes.get(model_id, 0) for model_id in assigned.partition.dirty)

    async def _final_checkpoint(self, assigned: Assigned) -> None:
        async with assigned.lock:
            await self.checkpoint(assigned)


def _record(message: Any) -> Record:
    headers = message.headers
    pairs = headers.items() if hasattr(headers, "items") else headers or []
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=round(message.timestamp * 1000) if message.timestamp else 0,
        key=message.key,
        value=message.value,
        headers=[(name, value) for name, value in pairs],
    )
