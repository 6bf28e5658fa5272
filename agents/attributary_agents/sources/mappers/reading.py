"""Reader of a section's topics, with bounded read-ahead and commits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError

from ...config.settings import Config
from ...config.sources import Attached
from ...kafka.clients import STARTED_WITHIN_S, STOPPED_WITHIN_S, client_options
from ...kafka.topics.origins import OriginTopic, ask_with_ids, no_such_topic
from ...kafka.upstream.aiokafka_consumer import client_of
from .merging import Merge
from .positions import OriginFaultError, Position, find_starts
from .units import positions_group

FETCH_BYTES = 262_144
"""What is fetched of a partition at a time, and held beside what is merged."""

_IDLE_MS, _BUSY_MS = 500, 20
_AT_ONCE = 1000


class OriginsChangedError(Exception):
    """A topic has got partitions, or was replaced, so a new run begins."""


class Reader:
    """Reader of the topics of a single section.

    Parameters
    ----------
    at
        The section's key, such as `sources.rentals`.
    """

    def __init__(self, config: Config, at: str, section: Attached, topics: list[str]) -> None:
        self.at, self.names = at, topics
        self._config, self._section = config, section
        self._client = AIOKafkaConsumer(
            **client_options(config.kafka),
            group_id=positions_group(config.kafka.group, at.partition(".")[2]),
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            max_partition_fetch_bytes=FETCH_BYTES,
        )
        self._topics: dict[str, OriginTopic] = {}
        self.starts: dict[TopicPartition, Position] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.said: list[str] = []

    async def start(self) -> None:
        """Connect, and find where to begin.

        Raises
        ------
        OriginFaultError
            A topic is not there, or is not what it was.
        KafkaError
            Brokers are away or refuse.
        """
        async with asyncio.timeout(STARTED_WITHIN_S):
            await self._client.start()
        self._topics = await self._ask()
        places = [TopicPartition(topic.name, number) for topic in self._topics.values() for number in topic.partitions]
        self._client.assign(places)
        async with asyncio.timeout(STARTED_WITHIN_S):
            self.starts, bounds, self.said = await find_starts(self._client, self.at, self._section.start, self._topics)
        for place, at in self.starts.items():
            self._client.seek(place, at.offset)
        self.ends = {place: bound.end for place, bound in bounds.items()}
        await self.commit(self.starts)  # `start` counts once

    async def _ask(self, node: int | None = None) -> dict[str, OriginTopic]:
        found = await ask_with_ids(client_of(self._client), self.names, node)
        for name in self.names:
            if name not in found:
                known = await self._client.topics()
                raise OriginFaultError(no_such_topic(self._config.kafka, f"{self.at}.topic", name, known))
        return found

    async def check_unchanged(self) -> None:
        """Raise OriginsChangedError if a topic or its partitions have changed."""
        if await self._ask() != self._topics:
            raise OriginsChangedError

    async def _check_read(self, places: Iterable[TopicPartition]) -> None:
        """Raise OriginsChangedError if the topic read from was replaced.

        An offset that the former topic had not reached yet exists in the new one: the fetch itself shows nothing. The
        brokers that were read from are asked, since another one may not know of the new topic yet.
        """
        for node in {client_of(self._client).cluster.leader_for_partition(place) for place in places}:
            if await self._ask(node) != self._topics:
                raise OriginsChangedError

    async def pump(self, merge: Merge[TopicPartition, ConsumerRecord], news: asyncio.Event) -> None:
        """Read for ever, except from full partitions; set `news` on each read.

        Ends of partitions are noted as well.
        """
        places = list(self.starts)
        while True:
            wanted = [place for place in places if not merge.is_full(place)]
            if not wanted:
                await asyncio.sleep(_BUSY_MS / 1000)
                continue
            timeout_ms = _IDLE_MS if len(wanted) == len(places) else _BUSY_MS
            try:
                got = await self._client.getmany(*wanted, timeout_ms=timeout_ms, max_records=_AT_ONCE)
            except (OffsetOutOfRangeError, NoOffsetForPartitionError):  # deleted meanwhile: the next run says what
                raise OriginsChangedError from None
            await self._check_read(got)
            for place, records in got.items():
                merge.extend(place, ((record, _size(record)) for record in records))
            await self._note(places, merge)
            news.set()
            if got:
                await asyncio.sleep(0)

    async def _note(self, places: Iterable[TopicPartition], merge: Merge[TopicPartition, ConsumerRecord]) -> None:
        for place in places:
            end = self._client.last_stable_offset(place)
            if end is None or end < 0:
                end = self._client.highwater(place)
            merge.note(place, await self._client.position(place), -1 if end is None else end)

    async def commit(self, positions: dict[TopicPartition, Position]) -> None:
        """Commit positions of these partitions, with the ids of their topics."""
        if positions:
            await self._client.commit({place: (at.offset, at.text) for place, at in positions.items()})

    async def stop(self) -> None:
        """Disconnect."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STOPPED_WITHIN_S):
                await self._client.stop()


def _size(record: ConsumerRecord) -> int:
    return 200 + len(record.key or b"") + len(record.value or b"")
