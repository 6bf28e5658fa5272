"""All of a topic, from its beginning, for the command line: by a consumer of no group, which commits nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from ..config.settings import Config
from .clients import client_fault, client_options


class TopicReader:
    """Reads batches of records, each of one partition; see `topic_reader`."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    async def present(self) -> AsyncIterator[list[Any]]:
        """What the topic has now."""
        ends = await self._consumer.end_offsets(list(self._consumer.assignment()))
        # Positions and not counts: a compacted topic has offsets without a record.
        while any([await self._consumer.position(place) < end for place, end in ends.items()]):
            for batch in await self._next():
                yield batch

    async def to_come(self) -> AsyncIterator[list[Any]]:
        """What comes from here on, for ever."""
        while True:
            for batch in await self._next():
                yield batch

    async def _next(self) -> list[list[Any]]:
        return list((await self._consumer.getmany(timeout_ms=500)).values())


@asynccontextmanager
async def topic_reader(config: Config, topic: str) -> AsyncIterator[TopicReader]:
    """A reader of all partitions of the topic.

    Raises
    ------
    PreflightError
        The broker cannot be reached, or refuses.
    """
    consumer = AIOKafkaConsumer(
        topic,
        **client_options(config.kafka),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    try:
        await consumer.start()  # without a group it assigns itself every partition
        yield TopicReader(consumer)
    except KafkaError as error:
        raise await client_fault(config.kafka, error, topic) from None
    finally:
        await consumer.stop()
