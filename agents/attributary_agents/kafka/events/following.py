"""Follower of topics from given offsets, also of topics still to come.

Topics may not be there yet, get partitions, or be made anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError

from ...config.settings import KafkaConfig
from ..batches import unread_batch
from ..clients import consumer
from ..topics.topic_ids import OriginTopic, ask_with_ids

logger = logging.getLogger(__name__)

ANSWERED_WITHIN_S = 5.0
"""Longest wait for what is asked of the brokers."""

Place = tuple[str, int]
"""Topic and partition."""

FollowingError = (KafkaError, OSError, TimeoutError)
"""What is raised where brokers do not answer, or not what was asked."""


class OffsetsGoneError(Exception):
    """Missing offset in a partition that was to be read from there.

    The partition was made anew, or that record has been deleted.
    """


class TopicFollower:
    """Reads batches of partitions that are chosen; see `topic_follower`."""

    def __init__(self, client: AIOKafkaConsumer) -> None:
        self._client = client

    async def find(self, names: Iterable[str]) -> dict[str, OriginTopic]:
        """Return the topics of these names that exist, without creating any."""
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            return await ask_with_ids(self._client._client, list(names))

    async def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        """Return where partitions begin and end now."""
        asked = [TopicPartition(*place) for place in places]
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            begins = await self._client.beginning_offsets(asked)
            ends = await self._client.end_offsets(asked)
        return {(one.topic, one.partition): (begins[one], ends[one]) for one in asked}

    async def offsets_at(self, places: Iterable[Place], time_ms: int) -> dict[Place, int | None]:
        """Return each partition's first offset at this time or later, or None.

        The time is of the record at the offset.
        """
        asked = [TopicPartition(*place) for place in places]
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            found = await self._client.offsets_for_times(dict.fromkeys(asked, time_ms))
        return {(one.topic, one.partition): None if found.get(one) is None else int(found[one].offset) for one in asked}

    def follow(self, starts: Mapping[Place, int]) -> None:
        """Read these partitions from these offsets on, and no others any more."""
        self._client.assign([TopicPartition(*place) for place in starts])
        for place, offset in starts.items():
            self._client.seek(TopicPartition(*place), offset)

    async def fetch(self, wait_ms: int, max_records: int) -> list[list[Any]]:
        """Return the next records, in a list for each partition.

        There is none where nothing came for `wait_ms`.

        Raises
        ------
        OffsetsGoneError
            As its class says.
        """
        try:
            fetched = await self._client.getmany(timeout_ms=wait_ms, max_records=max_records)
        except (OffsetOutOfRangeError, NoOffsetForPartitionError) as error:
            raise OffsetsGoneError(str(error)) from None
        batches = [[record for record in batch if not _passes_over(record)] for batch in fetched.values()]
        return [batch for batch in batches if batch]

    async def positions(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offsets up to which partitions are read.

        They pass records that no reader is shown, such as an aborted transaction.
        """
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            return {place: await self._client.position(TopicPartition(*place)) for place in places}


def _passes_over(record: Any) -> bool:
    if (unread := unread_batch(record.headers)) is None:
        return False
    logger.warning("%s[%d]: passed over: %s", record.topic, record.partition, unread.error())
    return True


@asynccontextmanager
async def topic_follower(kafka: KafkaConfig) -> AsyncIterator[TopicFollower]:
    """Connect a follower of topics; disconnect it behind the block.

    It reads committed records and is of no group.

    Raises
    ------
    PreflightError
        The brokers cannot be reached, or refuse, at the start or inside the block.
    """
    async with consumer(kafka, auto_offset_reset="none", request_timeout_ms=15_000) as client:
        yield TopicFollower(client)
