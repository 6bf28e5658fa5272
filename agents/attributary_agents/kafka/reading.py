"""Reads topics from the beginning to their present end, and on from there, by a consumer of no group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaTimeoutError

from ..config.settings import KafkaConfig
from .batches import unread_batch
from .clients import consumer

logger = logging.getLogger(__name__)

SILENT_S = 15.0
"""Longest wait for something that the topics have, or for an answer of the brokers."""


class TopicReader:
    """Reads batches of records, each of one partition; see `topic_reader`."""

    def __init__(self, client: AIOKafkaConsumer) -> None:
        self._client = client

    async def present(self, last: int | None = None) -> AsyncIterator[list[Any]]:
        """Yield what the topics have now.

        Parameters
        ----------
        last
            Offsets at the end of each partition to read; None reads all.
        """
        places = list(self._client.assignment())
        try:
            async with asyncio.timeout(SILENT_S):
                ends = await self._client.end_offsets(places)
        except TimeoutError:
            raise KafkaTimeoutError(f"no broker told for {SILENT_S:.0f} s where the partitions end") from None
        if last is not None:
            begins = await self._client.beginning_offsets(places)
            for place, end in ends.items():
                self._client.seek(place, max(begins[place], end - last))
        # Positions and not counts: a compacted topic has offsets without a record.
        now = asyncio.get_running_loop().time
        while positions := await self._short_of(ends):
            deadline = now() + SILENT_S
            while not (fetched := await self._fetch()) and positions == await self._short_of(ends):
                if now() > deadline:
                    said = ", ".join(sorted(f"{place.topic}[{place.partition}]" for place in positions))
                    raise KafkaTimeoutError(f"nothing came of {said} for {SILENT_S:.0f} s")
            for batch in fetched:
                yield batch

    async def _short_of(self, ends: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where the partitions are read to that are not read to their ends."""
        try:
            async with asyncio.timeout(SILENT_S):  # upstream waits for ever for a leader that is away
                positions = {place: await self._client.position(place) for place in ends}
        except TimeoutError:
            raise KafkaTimeoutError(f"no broker told for {SILENT_S:.0f} s where the partitions begin") from None
        return {place: position for place, position in positions.items() if position < ends[place]}

    async def to_come(self) -> AsyncIterator[list[Any]]:
        """Yield what comes from here on, for ever."""
        while True:
            for batch in await self._fetch():
                yield batch

    async def _fetch(self, *places: TopicPartition, max_records: int | None = None) -> list[list[Any]]:
        fetched = await self._client.getmany(*places, timeout_ms=500, max_records=max_records)
        return [[record for record in batch if not self._passes_over(record)] for batch in fetched.values()]

    def _passes_over(self, record: Any) -> bool:
        if (unread := unread_batch(record.headers)) is None:
            return False
        logger.warning("%s[%d]: passed over: %s", record.topic, record.partition, unread.error())
        return True

    async def record_at(self, topic: str, partition: int, offset: int) -> Any | None:
        """Return the record at this offset; None where the topic does not have it."""
        place = TopicPartition(topic, partition)
        if place not in self._client.assignment():
            return None
        begins, ends = await self._client.beginning_offsets([place]), await self._client.end_offsets([place])
        if not begins[place] <= offset < ends[place]:
            return None
        self._client.seek(place, offset)
        while await self._client.position(place) <= offset:
            for records in await self._fetch(place, max_records=1):
                return next((record for record in records if record.offset == offset), None)
        return None


@asynccontextmanager
async def topic_reader(kafka: KafkaConfig, *topics: str) -> AsyncIterator[TopicReader]:
    """Start a reader of all partitions of the topics; stop it behind the block.

    Raises
    ------
    PreflightError
        The brokers cannot be reached, or refuse.
    """
    options = {"request_timeout_ms": int(SILENT_S * 1000)}
    async with consumer(kafka, *topics, **options) as client:  # without a group it assigns itself every partition
        yield TopicReader(client)
