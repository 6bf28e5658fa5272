"""Worker that gives each record to the partition it belongs to.

It knows which partitions are ours.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any

import faust
from aiokafka.errors import KafkaError
from faust.types import TP

from ..config.settings import Config
from ..kafka.brokers import BROKERS
from .assigned import Assigned
from .partition import Partition
from .shared import Shared
from .view import WorkerView

logger = logging.getLogger(__name__)

GRACE_S = 20.0
"""Longest that the final checkpoints of all partitions may take together at a rebalance."""

LEAVE_S = 7.0
"""What of `watchdog.stop_within_s` is kept to leave the group, close the connections and end the process."""


class Worker:
    """Partitions of this process, and the routing of their records.

    Parameters
    ----------
    table, outputs
        As for `Shared`.
    """

    def __init__(self, app: faust.App, config: Config, table: Any, outputs: dict[str, Any]) -> None:
        self.app = app
        self.config = config
        self.outputs = outputs
        self.assigned: dict[int, Assigned] = {}
        self.view = WorkerView(self.assigned, table.sink, BROKERS)
        self._has_given_up = False
        self._shared = Shared(app, config, table, outputs, self.view)
        self.under_way = self._shared.under_way

    async def take(self, event: Any) -> None:
        """Queue the observations that a poll has brought for a partition.

        They are handled in their turn.
        """
        message = event.message
        if not self._is_late(message.tp, message.generation_id):
            self._assign(message.tp, message.generation_id).take(message.value.records)

    async def handle_control(self, event: Any) -> None:
        """Handle a record of the models topic."""
        if (assigned := self._owner(event.message)) is not None:
            await assigned.handle_control(event.message)

    async def handle_shard(self, event: Any) -> None:
        """Handle a record of the topic of shards."""
        if (assigned := self._owner(event.message)) is not None:
            await assigned.handle_shard(event.message)

    def _owner(self, message: Any) -> Assigned | None:
        """Return the observations' partition of another topic's record.

        None where it is not ours.
        """
        observations = TP(self.config.kafka.topics.observations, message.partition)
        if observations not in self.app.consumer.assignment():
            # Workers of several releases in one group: the assignor keeps topics apart that not all of them read.
            logger.warning(
                "%s[%d]: record ignored, because %s[%d] is another worker's",
                message.topic,
                message.partition,
                *observations,
            )
            return None
        if self._is_late(observations, message.generation_id):
            return None
        return self._assign(observations, message.generation_id)

    def _is_late(self, tp: TP, generation: int) -> bool:
        """Return whether a record was fetched before the last rebalance.

        The rebalance is that which gave us the partition; the record comes again.
        """
        known = self.assigned.get(tp.partition)
        return self._has_given_up or (known is not None and generation < known.generation)

    def _assign(self, tp: TP, generation: int) -> Assigned:
        """Return the partition of this or a later generation, making it if new.

        The generation is that of the consumer group.
        """
        known = self.assigned.get(tp.partition)
        if known is not None and known.generation >= generation:
            return known
        assigned = Assigned(self._shared, tp, generation)
        with self.view.lock:
            self.assigned[tp.partition] = assigned
        return assigned

    async def fence_others(self, partitions: Iterable[TP], within_s: float) -> set[TP]:
        """Become the only owner of partitions of the changelog.

        To be done before it is asked where they end.

        What an earlier owner has left open is ended then, and what it still sends is refused.

        Returns
        -------
        Partitions that must be read from the start: what we have written of them may have been aborted.

        Raises
        ------
        KafkaError
            The brokers refuse, or do not answer within `within_s` seconds.
        """
        if self._shared.producers is None:
            return set()
        ours = {tp.partition: tp for tp in partitions}
        doubtful = await self._shared.producers.start(ours, within_s)
        for number in doubtful:
            self._shared.records.forget(number)
        return {ours[number] for number in doubtful & ours.keys()}

    def give_up(self) -> None:
        """Leave all partitions as they are, for good.

        They have another owner, who repeats what we have not stored.
        """
        self._has_given_up = True
        with self.view.lock:
            self.assigned.clear()

    async def adopt(self, partitions: Iterable[TP], generation: int) -> None:
        """Take over partitions with recovered state, before their records.

        A model is restored when it is asked for; those that a scrape shows are restored beside the records.
        """
        ours = [] if self._has_given_up else [self._assign(tp, generation) for tp in partitions]
        for assigned in ours:
            await assigned.begin()
        stored = {model_id for assigned in ours for model_id in assigned.partition.models.waiting}
        # As a scrape chooses: those that had series keep them, and of others the first by id come.
        shown, models = self.view.shown, self.config.models
        in_order = sorted(stored, key=lambda model_id: (model_id not in models, model_id not in shown, model_id))
        chosen = set(in_order[: self.config.metrics.max_models])
        for assigned in ours:
            assigned.restore_shown(chosen)

    async def ask_backlog_ends(self) -> None:
        """Ask where the topic of newly adopted partitions ends.

        To be called soon after they were adopted.
        """
        for assigned in list(self.assigned.values()):
            try:
                await assigned.ask_backlog_end()
            except KafkaError as error:  # asked again when it is needed
                logger.info("partition %d: cannot tell where the topic ends (%r)", assigned.tp.partition, error)

    def tick(self) -> None:
        """Note the partitions' lags once a second, and start due work.

        Checkpoints run beside each other, at most one of a partition: a long one delays neither another's nor the next
        tick.

        Raises
        ------
        Exception
            What a checkpoint or restoring a model has failed with since the last tick.
        """
        self._shared.dead_letter_log.say_due()
        for assigned in self.assigned.values():
            assigned.tick()
        self._shared.heartbeat.tick(self._is_ours)
        self.under_way.check()

    def _is_ours(self, partition: Partition) -> bool:
        known = self.assigned.get(partition.number)
        return known is not None and known.partition is partition

    async def release(self, numbers: Iterable[int] | None = None) -> None:
        """Checkpoint and forget partitions, all of them by default.

        They are lost, or the worker stops.

        All have one deadline, whatever their number. Where it fails, the next owner repeats from the last checkpoint.
        """
        is_last = numbers is None
        if is_last:
            self._shared.dead_letter_log.say_rest()
        numbers = None if numbers is None else list(numbers)
        gone, numbers = numbers, list(self.assigned if numbers is None else numbers)
        leaving = [self.assigned[number] for number in numbers if number in self.assigned]
        # The smallest first, so that the deadline costs as few partitions as possible.
        leaving.sort(key=lambda assigned: assigned.pending_bytes)
        stop_by = self.view.activity.stop_by
        within_s = GRACE_S if stop_by is None else max(stop_by - LEAVE_S - time.monotonic(), 0.0)
        finals = {asyncio.ensure_future(assigned.checkpoint()): assigned for assigned in leaving}
        if finals:
            await asyncio.wait(finals, timeout=within_s)
            for final in finals:
                final.cancel()  # does nothing to those that are done
            await asyncio.wait(finals)
        for final, assigned in finals.items():
            why = f"not within {within_s:.0f} s" if final.cancelled() else final.exception()
            if why is not None:  # nothing is lost by giving up here, and we must not hang
                logger.log(
                    logging.WARNING if assigned.partition.n_pending else logging.INFO,
                    "partition %d: no final checkpoint (%s); its next owner repeats %d observations from the last one",
                    assigned.tp.partition,
                    why if isinstance(why, str) else repr(why),
                    assigned.partition.n_pending,
                )
            with self.view.lock:
                if assigned.is_ours:
                    del self.assigned[assigned.tp.partition]
        if is_last:
            await self.under_way.cancel()
            await self._shared.heartbeat.close()
            if self._shared.endpoints is not None:
                self._shared.endpoints.close()
        if self._shared.producers is not None:
            await self._shared.producers.stop(gone)
