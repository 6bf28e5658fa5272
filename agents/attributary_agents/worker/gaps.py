"""Finds offsets that do not follow each other: the worker never goes on over records that delivery has skipped."""

from __future__ import annotations

import asyncio
import logging

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.types import TP

from ..config.settings import Config
from ..errors import DeliveryError
from ..kafka.clients import client_options
from ..kafka.faust_fixes import commit_exactly
from .partition import Partition

logger = logging.getLogger(__name__)


class Gaps:
    """Distinguishes gaps in the topic (retention, compaction, transactions) from records that delivery has skipped."""

    def __init__(self, app: faust.App, config: Config) -> None:
        self._app = app
        self._config = config

    async def check(self, partition: Partition, offset: int, *, is_first: bool = False) -> None:
        """Count the offsets before `offset` at which the topic has no records.

        Where it has some, the group is set back to the checkpoint, so that a restarted worker reads them.

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
        tp = TP(partition.topic, partition.number)
        first = await self._first_offset(tp, expected)
        if first != offset:
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
            "%s[%d]: no records at offsets %d to %d (retention, compaction, or transactions)",
            partition.topic,
            partition.number,
            expected,
            offset - 1,
        )
        partition.counters.unavailable += offset - expected
        partition.offset = offset - 1

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

    async def _first_offset(self, tp: TP, offset: int) -> int:
        """Ask the broker, by a consumer of its own, for the offset of the first record at or after `offset`."""
        consumer = AIOKafkaConsumer(
            **client_options(self._config.kafka),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            partition = TopicPartition(tp.topic, tp.partition)
            consumer.assign([partition])
            consumer.seek(partition, offset)
            async with asyncio.timeout(60):
                record = await consumer.getone()
            return int(record.offset)
        finally:
            await consumer.stop()


def _committed_beyond(partition: Partition, offset: int, what: str) -> str:
    """Say that the group has committed what no checkpoint has: a checkpoint comes before its commit, always."""
    return (
        f"{partition.topic}[{partition.number}]: the group has committed offset {offset}, and the stored checkpoint is "
        f"at {partition.checkpointed}: the state's changelog has lost records, or somebody has put older ones in their "
        f"place or deleted them. The observations between the two were handled before {what}"
    )
