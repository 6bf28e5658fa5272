"""Ownership of a partition in a generation of the consumer group.

Takes the partition over, handles its records and lets it go.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from faust.types import TP

from attributary_topics import Deployment, InvalidRecordError

from ..errors import DeliveryError, DeploymentError, EndedWorkerError, NotBegunError
from ..kafka.lag import OpenTransaction
from ..kafka.upstream.faust_app import commit_exactly
from ..models.deployments import decode
from ..models.from_mlflow.loading import registered_of
from ..models.subprocess.build import build
from ..state.names import merge_key
from .activity import Step
from .checkpoint import Checkpointing
from .deployments import Make, PartitionControl
from .observations import Observations
from .partition import Partition
from .poison import Endings
from .records import Record, record_of
from .restore import Restoring
from .schedule import Steps
from .shards import PartitionMerges
from .shared import Shared
from .version_files import Files, fetched
from .view import PartitionView

logger = logging.getLogger(__name__)

BUILD_AGAIN_S = (2.0, 10.0, 60.0)
"""Pauses before a deployment is built again whose process could not be started; then it is refused."""


class Assigned(PartitionView):
    """Owner of a partition in a generation of the consumer group.

    It handles the partition's records and makes their effects durable.
    """

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
        partition.models.known.n_handled = shared.view.n_of_templates
        super().__init__(partition, PartitionControl(models_topic, partition, self._store.load))
        if shared.config.sharded:
            self.merges = PartitionMerges(partition, self._store.load)
        self._control_tp = TP(models_topic, tp.partition)
        self._transactions = [(at, OpenTransaction(f"{at.topic}[{at.partition}]")) for at in (tp, self._control_tp)]
        self._steps = Steps()
        self._backlog_end: int | None = None
        self._building: asyncio.Future[Any] | None = None
        at_most = shared.config.checkpoint.max_observations
        self._endings = Endings(self._store, tp.partition, partition.checkpointed, at_most)
        self._restoring = Restoring(shared, tp, partition, self._store, self._endings, self._goes_on)
        self._restores: asyncio.Task[None] | None = None
        self._delivery = shared.open_delivery(tp.partition, self._store)
        self._storing = Checkpointing(
            shared, tp, partition, self, self._endings, self._delivery, self._steps,
            goes_on=self._goes_on, may_store=self._may_store,
        )  # fmt: skip
        self._observations = Observations(
            shared,
            tp,
            partition,
            self._endings,
            self._restoring,
            self._storing,
            self._delivery,
            self._steps,
            self._goes_on,
        )
        self._is_leaving = self._control_has_begun = self._are_merges_restored = False

    @property
    def is_ours(self) -> bool:
        """Whether the worker still owns the partition in this generation.

        False once it was lost, or taken again in a later generation.
        """
        return self._shared.view.partitions.get(self.tp.partition) is self

    @property
    def pending_bytes(self) -> int:
        """Bytes of the states that the next checkpoint writes.

        The sizes are those of the last stored versions.
        """
        return sum(self.state_bytes.get(model_id, 0) for model_id in self.partition.dirty)

    def take(self, records: Sequence[Any]) -> asyncio.Task[None]:
        """Queue observation records; return the task that handles them.

        The task ends when they are handled, or belong to another owner.
        """
        return self._observations.take(records)

    async def handle_control(self, message: Any) -> None:
        """Handle a record of the models topic and make its effects durable.

        They are durable before any other record is handled.
        """
        self._shared.slices.note_record()
        async with self._fetched(message) as files:
            if files is not None:
                await self._handle_tried(message, files)

    async def _handle_tried(self, message: Any, files: Files) -> None:
        """Handle a control record, again if its process could not be started.

        The process is that in which the model is built. Other records are handled between the attempts.
        """
        board, model_id = self._shared.view.registry, self._shared.model_id_of(message.key) or ""
        try:
            for pause_s in BUILD_AGAIN_S:
                if (error := await self._handle_control(message, files)) is None:
                    return
                board.note_retried(model_id, str(error))
                if not await self._pause(pause_s):
                    return  # its next owner builds it
            await self._handle_control(message, files, is_last=True)
        finally:
            board.note_tried(model_id)

    async def _pause(self, seconds: float) -> bool:
        """Wait as long as the partition stays; return whether it does."""
        self._building = asyncio.ensure_future(asyncio.sleep(seconds))
        try:
            await asyncio.wait([self._building])
        finally:
            self._building.cancel()
        self._building = None
        return self._goes_on()

    @asynccontextmanager
    async def _fetched(self, message: Any) -> AsyncIterator[Files | None]:
        """Yield the files that a record of the models topic needs.

        Yields None where the partition goes meanwhile.

        Other records are handled while they are fetched: a registry that is away holds up no observation.
        """
        wanted = await self._wanted_files(record_of(message))
        if wanted is None:
            yield Files()
            return
        files = fetched(self._shared.config, wanted, self._shared.view.registry)
        self._building = asyncio.ensure_future(files.__aenter__())
        try:
            await asyncio.wait([self._building])
        finally:
            self._building.cancel()  # does nothing where it is done
        fetching, self._building = self._building, None
        if fetching.cancelled():
            yield None
            return
        try:
            yield fetching.result()
        finally:
            await files.__aexit__(None, None, None)

    async def _wanted_files(self, record: Record) -> Deployment | None:
        """Return a record's deployment if its files must be fetched first."""
        try:
            deployment = decode(self._shared.config, record.key, record.value)
        except InvalidRecordError:
            return None
        if registered_of(deployment.spec) is None:
            return None
        async with self._storing.between():
            await self._prepare(record.key)
            if not self._goes_on():
                return None
            with self._shared.view.lock:
                return self.control.find_wanted(record)

    async def _handle_control(self, message: Any, files: Files, *, is_last: bool = False) -> NotBegunError | None:
        """Handle a control record; return an error if it must be retried.

        Where an error is returned, nothing of the record has been done.
        """
        async with self._storing.between():
            await self._prepare(message.key)
            if not self._goes_on():
                return None
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
                made = None if wanted is None else await self._build(wanted, record.offset, files)
                if wanted is not None and made is None:
                    return None  # its next owner builds it
                if isinstance(made, NotBegunError):
                    if not is_last:
                        await self._endings.leave_deployment()
                        return made
                    made = partial(_raise, made)
                with self._shared.view.lock:
                    outcome = self.control.take(record, backlog_end, made)
            await self._delivery.store(outcome.outgoing, outcome.writes)
            await commit_exactly(self._shared.app, message.tp, message.offset + 1)
        return None

    async def handle_shard(self, message: Any) -> None:
        """Handle a record of the topic of shards and make its effects durable.

        They are durable before the next record is handled.
        """
        self._shared.slices.note_record()
        async with self._storing.between():
            await self._begin()
            if not self._goes_on() or self.merges is None:
                return
            step = Step("shard", message.tp, message.offset, self._shared.known_key(message.key))
            with self._activity.doing(step), self._shared.view.lock:
                outcome = self.merges.take(record_of(message))
            await self._delivery.store(outcome.outgoing, outcome.writes)
            await commit_exactly(self._shared.app, message.tp, message.offset + 1)

    async def _begin(self) -> None:
        """Note the stored models and restore the merges of shards, once."""
        if self._goes_on():
            await self._restoring.begin()
        if self.merges is None or self._are_merges_restored or not self._goes_on():
            return
        self._are_merges_restored = True
        for model_id in sorted(self._shared.config.sharded):
            await self._store.fetch(merge_key(model_id, self.tp.partition))
            with self._shared.view.lock:
                self.merges.restore(model_id)

    async def _build(self, deployment: Deployment, offset: int, files: Files) -> Make | NotBegunError | None:
        """Build a deployment's model in a separate process.

        Returns a function that gives the model's bytes, or raises the reason why there are none.

        Where the partition goes meanwhile, the building ends, and None is returned: a rebalance does not wait for it. A
        NotBegunError is returned: nothing of the model has been tried.
        """
        if (error := files.error) is not None:
            return partial(_raise, error)
        if not await self._endings.begin_deployment(offset):
            return _refuse
        self._building = asyncio.ensure_future(build(self._shared.config, deployment, files.folder))
        try:
            await asyncio.wait([self._building])
        finally:
            self._building.cancel()  # does nothing where it is done
        building: asyncio.Future[bytes] = self._building
        self._building = None
        if building.cancelled():
            await self._endings.leave_deployment()
            return None
        if isinstance(failed := building.exception(), NotBegunError):
            return failed
        return lambda _deployment: building.result()

    async def begin(self) -> None:
        """Take over the partition, which is ready then.

        Its models are restored as they are asked for.

        Raises
        ------
        StateError
            What is stored cannot be used by this release, as far as that can be told without loading it.
        """
        async with self._steps:
            await self._begin()

    def restore_shown(self, shown: Collection[str]) -> None:
        """Begin to restore the models that are to have series.

        Runs beside the records; only the first call has an effect.
        """
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
        """Return whether records may be handled and models restored.

        They may while the partition is ours and is not about to go.
        """
        return self._may_store() and not self._is_leaving

    def _may_store(self) -> bool:
        return self.is_ours and not self._steps.has_failed

    async def ask_backlog_end(self) -> int:
        """Return the topic's last offset when the partition became ours.

        The first call asks the brokers for it. No earlier owner can have handled a later offset. To be asked for early:
        a later end is as right, and further off.
        """
        if self._backlog_end is None:
            ends = await self._shared.app.consumer.highwaters(self.tp)
            self._backlog_end = ends[self.tp] - 1
        return self._backlog_end

    def tick(self) -> None:
        """Update the partition's lags, and begin a checkpoint if it is due.

        Notes also what holds the partition up, and goes on with observations that wait.
        """
        self._note_lags()
        self.transaction_s, self.control_transaction_s = (
            held.see(self._shared.ends.fetched(at)) for at, held in self._transactions
        )
        self._observations.resume()
        self._storing.begin_where_due()

    def _note_lags(self) -> None:
        if (end := self._shared.ends.end(self.tp)) is not None:
            self.lag.note(self._shared.gaps.lag(self.tp, self.partition.offset, end.offset), end.seen_at)
        if self._control_tp in self._shared.app.consumer.assignment():
            end = self._shared.ends.end(self._control_tp)
            if end is not None:
                lag = self._shared.gaps.lag(self._control_tp, self.control.offset, end.offset)
                self.control_lag.note(lag, end.seen_at)

    async def checkpoint(self) -> None:
        """Make everything handled so far durable before the partition goes.

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
        self._observations.leave()
        await self._storing.finish()
        async with self._steps:
            if self._steps.has_failed:
                raise DeliveryError("a step before it has failed")
            await self._storing.store_rest()
            await self._endings.close()


def _raise(error: DeploymentError, _deployment: Deployment) -> bytes:
    raise error


def _refuse(_deployment: Deployment) -> bytes:
    raise EndedWorkerError("two workers ended while they built this version: it is not built again")
