"""Check of offsets that do not follow each other.

The worker never goes on over records that delivery has skipped.
"""

from __future__ import annotations

import asyncio
import logging

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from faust.types import TP

from ..config.settings import Config
from ..errors import DeliveryError
from ..kafka.batches import PASSED_OVER
from ..kafka.clients import client_options
from ..kafka.committed import CommittedRecords
from ..kafka.upstream.faust_app import commit_exactly
from .partition import Partition

logger = logging.getLogger(__name__)

KEPT_S = 60.0
"""Seconds without a question after which, and within twice of which, the consumer that asks is stopped."""

ANSWER_WITHIN_S = 60.0
"""Longest wait for a broker's answer."""


class Gaps:
    """Check that tells gaps in the topic from records skipped on the way.

    Gaps come from retention, compaction or transactions.
    """

    def __init__(self, app: faust.App, config: Config) -> None:
        self._app = app
        self._config = config
        self._kept: asyncio.Future[AIOKafkaConsumer] | None = None
        self._n_asking = self._n_asked = 0
        PASSED_OVER.follow(config.kafka.topics.observations, config.kafka.topics.models)

    async def check(self, partition: Partition, offset: int, *, is_first: bool = False) -> None:
        """Count the offsets before `offset` at which the topic has no records.

        Where it has some, the group is set back to the checkpoint, so that a restarted worker reads them. What the
        consumer has passed over, markers of transactions and aborted records, is known, and nobody is asked.

        Parameters
        ----------
        is_first
            Whether it is the first record that this owner is given: where the group has committed.

        Raises
        ------
        DeliveryError
            The topic has records there that were not delivered.
        """
        expected = partition.offset + 1
        if offset <= expected:
            return
        n_passed = PASSED_OVER.count(partition.topic, partition.number, expected, offset)
        n_gone = offset - expected - n_passed
        if n_gone:
            await self._check_gone(partition, offset, is_first=is_first)
            partition.counters.origins.note_gap()
        partition.counters.unavailable += n_gone
        partition.counters.transactional += n_passed
        partition.offset = offset - 1

    def lag(self, tp: TP, offset: int, end: int) -> int:
        """Return how many offsets of a partition are still to be handled.

        Parameters
        ----------
        offset
            The last one that was handled.
        end
            Where the topic ends.
        """
        return max(end - PASSED_OVER.next_offset(tp.topic, tp.partition, offset + 1), 0)

    async def _check_gone(self, partition: Partition, offset: int, *, is_first: bool) -> None:
        """Check with a broker that no records before `offset` were skipped.

        Logs a gap in the topic; raises DeliveryError where records were skipped.
        """
        expected = partition.offset + 1
        tp = TP(partition.topic, partition.number)
        first = await self._first_offset(tp, expected, offset)
        if first is not None:
            if is_first:
                logger.error(_committed_beyond(partition, offset, "and are repeated, with events of the same ids"))
            await commit_exactly(self._app, tp, partition.checkpointed + 1)
            raise DeliveryError(
                f"{partition.topic}[{partition.number}]: offset {first} was skipped on the way here "
                f"(got {offset} after {partition.offset}); restart the worker, it resumes from its checkpoint"
            )
        if is_first and await self._committed(tp) > expected:
            logger.error(_committed_beyond(partition, offset, "and are gone from the topic: models lack them"))
        logger.warning(
            "%s[%d]: no records at offsets %d to %d (retention or compaction)",
            partition.topic,
            partition.number,
            expected,
            offset - 1,
        )

    def check_not_recreated(self, tp: TP, checkpointed: int) -> None:
        """Raise DeliveryError where the topic ends before the checkpoint."""
        end = self._app.consumer.highwater(tp)
        if end is not None and end <= checkpointed:
            raise DeliveryError(
                f"{tp.topic}[{tp.partition}] ends at offset {end}, but the checkpoint is at {checkpointed}: the topic "
                f"was deleted and made again. Use a new kafka.group, or delete the group and "
                f"{self._config.kafka.changelog}"
            )

    async def _committed(self, tp: TP) -> int:
        """Ask the broker for the offset that the group has committed; -1 for none."""
        consumer = AIOKafkaConsumer(
            **client_options(self._config.kafka), group_id=self._config.kafka.group, enable_auto_commit=False
        )
        await consumer.start()
        try:
            partition = TopicPartition(tp.topic, tp.partition)
            consumer.assign([partition])
            async with asyncio.timeout(60):
                committed = await consumer.committed(partition)
            return -1 if committed is None else int(committed)
        finally:
            await consumer.stop()

    async def _first_offset(self, tp: TP, begin: int, end: int) -> int | None:
        """Return the offset of the first record from `begin`, below `end`.

        Asks a broker; None where there is no such record.
        """
        self._n_asking += 1
        self._n_asked += 1
        try:
            asked = CommittedRecords(await self._consumer(), ANSWER_WITHIN_S)
            return await asked.first(TopicPartition(tp.topic, tp.partition), begin, end)
        finally:
            self._n_asking -= 1

    async def _consumer(self) -> AIOKafkaConsumer:
        """Return the only consumer for questions, starting it if needed.

        It is kept for a while.
        """
        if self._kept is None:
            self._kept = asyncio.get_running_loop().create_future()
            self._app.add_future(self._keep(self._kept))  # the app ends it when it stops
        return await asyncio.shield(self._kept)

    async def _keep(self, kept: asyncio.Future[AIOKafkaConsumer]) -> None:
        consumer = AIOKafkaConsumer(
            **client_options(self._config.kafka), enable_auto_commit=False, isolation_level="read_committed"
        )
        try:
            try:
                await consumer.start()
            except KafkaError as error:
                kept.set_exception(error)  # whoever asks is told
                return
            kept.set_result(consumer)
            n_asked = -1
            while self._n_asking or n_asked != self._n_asked:
                n_asked = self._n_asked
                await asyncio.sleep(KEPT_S)
        finally:
            self._kept = None
            kept.cancel()  # does nothing where it is done
            await consumer.stop()


def _committed_beyond(partition: Partition, offset: int, what: str) -> str:
    """Return the message that offsets were committed beyond a checkpoint.

    A checkpoint always comes before its commit.
    """
    return (
        f"{partition.topic}[{partition.number}]: the group has committed offset {offset}, and the stored checkpoint is "
        f"at {partition.checkpointed}: the state's changelog has lost records, or somebody has put older ones in their "
        f"place or deleted them. The observations between the two were handled before {what}"
    )
