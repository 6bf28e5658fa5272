"""Reader of topics from their beginning to their end, and on from there.

Its consumer is of no group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, KafkaTimeoutError

from ..config.settings import KafkaConfig
from .batches import unread_batch
from .clients import consumer

logger = logging.getLogger(__name__)

SILENT_S = 15.0
"""Longest wait for something that the topics have, or for an answer of the brokers."""

ASKED_AFTER_S = 5.0
"""Time without a record after which the brokers are asked whether they answer at all, and longest wait for that."""

_FURTHER = 4


class TopicReader:
    """Reader of batches of records, each batch of a single partition.

    See `topic_reader`.
    """

    def __init__(self, client: AIOKafkaConsumer) -> None:
        self._client = client

    async def present(self, last: int | None = None) -> AsyncIterator[list[Any]]:
        """Yield the records that the topics have now.

        Parameters
        ----------
        last
            Offsets at the end of each partition to read; None reads all.
        """
        ends = await self._ends()
        if last is not None:
            begins = await self._client.beginning_offsets(list(ends))
            for place, end in ends.items():
                self._client.seek(place, max(begins[place], end - last))
        async for batch in self._up_to(ends):
            yield batch

    async def begin_at_time(self, time_ms: int) -> None:
        """Read each partition from the first record at this time or later.

        The time is in milliseconds since the epoch.
        """
        places = list(self._client.assignment())
        found = await self._client.offsets_for_times(dict.fromkeys(places, time_ms))
        ends = await self._ends()
        for place in places:
            self._client.seek(place, ends[place] if found[place] is None else found[place].offset)

    async def backwards(
        self, step: int, most: int, wanted: Callable[[int], bool] = lambda _: True
    ) -> AsyncGenerator[list[Any]]:
        """Yield the records that the topics have now, from the end backwards.

        Each list is of older records than the list before, in their order. What comes later is read from the present
        end on, when the generator is closed.

        Parameters
        ----------
        step
            Offsets of each partition in the first list; each further one has four times as many.
        most
            Offsets at the end of each partition beyond which nothing is read.
        wanted
            Whether a partition is still to be read; asked before each list.
        """
        ends = await self._ends()
        begins = await self._client.beginning_offsets(list(ends))
        least = {place: max(begins[place], end - most) for place, end in ends.items()}
        above = dict(ends)
        try:
            while wide := {at: end for at, end in above.items() if wanted(at.partition) and end > least[at]}:
                below = {place: max(least[place], end - step) for place, end in wide.items()}
                for place, begin in below.items():
                    self._client.seek(place, begin)
                yield [
                    record
                    async for batch in self._up_to(wide)
                    for record in batch
                    if record.offset < wide[TopicPartition(record.topic, record.partition)]
                ]
                above |= below
                step *= _FURTHER
        finally:
            for place, end in ends.items():
                self._client.seek(place, end)

    async def bounds(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return where each partition begins and ends now."""
        ends = await self._ends()
        begins = await self._client.beginning_offsets(list(ends))
        return {place: (begins[place], end) for place, end in ends.items()}

    async def between(self, slices: Mapping[TopicPartition, tuple[int, int]]) -> AsyncIterator[list[Any]]:
        """Yield the records of partitions from an offset up to before another."""
        for place, (begin, _) in slices.items():
            self._client.seek(place, begin)
        async for batch in self._up_to({place: end for place, (_, end) in slices.items()}):
            yield [one for one in batch if one.offset < slices[TopicPartition(one.topic, one.partition)][1]]

    async def _ends(self) -> dict[TopicPartition, int]:
        try:
            async with asyncio.timeout(SILENT_S):
                ends: dict[TopicPartition, int] = await self._client.end_offsets(list(self._client.assignment()))
        except TimeoutError:
            raise KafkaTimeoutError(f"no broker told for {SILENT_S:.0f} s where the partitions end") from None
        return ends

    async def _up_to(self, ends: Mapping[TopicPartition, int]) -> AsyncIterator[list[Any]]:
        """Yield records from the present positions up to the ends.

        Records behind the ends that came with them are yielded, too.
        """
        # Positions and not counts: a compacted topic has offsets without a record.
        now = asyncio.get_running_loop().time
        while positions := await self._short_of(ends):
            deadline = now() + SILENT_S
            while not (fetched := await self._fetch(*positions)) and positions == await self._short_of(ends):
                if now() > deadline:
                    said = ", ".join(sorted(f"{place.topic}[{place.partition}]" for place in positions))
                    raise KafkaTimeoutError(f"nothing came of {said} for {SILENT_S:.0f} s")
            for batch in fetched:
                yield batch

    async def _short_of(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where the partitions are read to that are not read to their ends."""
        try:
            async with asyncio.timeout(SILENT_S):  # upstream waits for ever for a leader that is away
                positions = {place: await self._client.position(place) for place in ends}
        except TimeoutError:
            raise KafkaTimeoutError(f"no broker told for {SILENT_S:.0f} s where the partitions begin") from None
        return {place: position for place, position in positions.items() if position < ends[place]}

    async def to_come(self, away: Callable[[bool], None] = lambda _: None) -> AsyncIterator[list[Any]]:
        """Yield the records still to come, for ever.

        While no broker answers it waits.

        Parameters
        ----------
        away
            Called with True where brokers do not answer any more, and with False when they do again.
        """
        now = asyncio.get_running_loop().time
        is_away, heard = False, now()
        while True:
            fetched = await self._fetch_or_wait()
            if fetched or now() - heard > ASKED_AFTER_S:
                if is_away is bool(answers := bool(fetched) or await self._answers()):
                    is_away = not answers
                    away(is_away)
                heard = now()
            for batch in fetched:
                yield batch

    async def _fetch_or_wait(self) -> list[list[Any]]:
        try:
            return await self._fetch()
        except KafkaError as error:
            if not error.retriable:
                raise
            await asyncio.sleep(1.0)
            return []

    async def _answers(self) -> bool:
        """Return whether the leaders of all partitions answer."""
        try:
            async with asyncio.timeout(ASKED_AFTER_S):
                await self._client.end_offsets(list(self._client.assignment()))
        except (KafkaError, OSError, TimeoutError):
            return False
        return True

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
    """Start a reader of all partitions of topics; stop it behind the block.

    Raises
    ------
    PreflightError
        The brokers cannot be reached, or refuse.
    """
    options = {"request_timeout_ms": int(SILENT_S * 1000)}
    async with consumer(kafka, *topics, **options) as client:  # without a group it assigns itself every partition
        yield TopicReader(client)
