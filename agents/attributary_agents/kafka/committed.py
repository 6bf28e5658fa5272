"""Search for committed records: a partition's last, a range's first.

By fetches of its own, so that none of it moves a consumer, and nothing is read ahead. A partition may end in markers,
in aborted records, before an open transaction, or in offsets whose records have been compacted away: what counts is
what a reader of committed records is given.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    NoError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    for_code,
)
from aiokafka.protocol.fetch import FetchRequest

from .upstream.aiokafka_consumer import client_of
from .upstream.aiokafka_fetcher import committed_records

PARTITION_BYTES, ANSWER_BYTES = 2**20, 2**22
"""Bytes of a partition, and of all partitions of one broker, after which an answer ends; a batch is never cut."""

WIDER = 8
"""How much further back each look goes than the one before, where there was no committed record."""

_AGAIN_S = 0.05  # before what has not been answered is asked again


class _Answer(NamedTuple):
    """Answer of a broker about a partition from an offset on."""

    data: bytes
    aborted: Any
    """Producer and first offset of each aborted transaction that concerns the data."""
    readable: int
    """The offset that bounds what can be read now."""
    is_out_of_range: bool = False


class CommittedRecords:
    """Search for committed records on behalf of a read-committed consumer.

    Parameters
    ----------
    consumer
        Started; whatever is assigned to it stays where it is. To be used in the consumer's own event loop.
    within_s
        Seconds after which a question without an answer raises KafkaTimeoutError.
    """

    def __init__(self, consumer: AIOKafkaConsumer, within_s: float = 60.0) -> None:
        self._consumer = consumer
        self._client = client_of(consumer)
        self._within_s = within_s

    async def last(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of each partition's last committed record.

        Where a partition has none, it is the offset before its first. The last record is mostly at the end, or before
        one marker: it is looked for from the end backwards, further each time.

        Raises
        ------
        KafkaError
            The brokers refuse, or do not answer in time.
        """
        try:
            async with asyncio.timeout(self._within_s):
                return await self._last(list(places))
        except TimeoutError:
            raise KafkaTimeoutError(f"no broker told for {self._within_s:.0f} s where committed records end") from None

    async def first(self, place: TopicPartition, begin: int, end: int) -> int | None:
        """Return the offset of a range's first committed record, or None.

        The range goes from `begin` to before `end`. Where the topic cannot be read up to `end` yet, because another
        broker leads it now, that is waited for.

        Raises
        ------
        KafkaError
            The brokers refuse, or do not answer in time.
        """
        try:
            async with asyncio.timeout(self._within_s):
                return await self._first(place, begin, end)
        except TimeoutError:
            raise KafkaTimeoutError(f"no broker told for {self._within_s:.0f} s what {place} has at {begin}") from None

    async def _last(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        ends = await self._consumer.end_offsets(places)
        last = {place: -1 for place, end in ends.items() if end <= 0}
        ranges = {place: (end - 1, end) for place, end in ends.items() if end > 0}
        begins: dict[TopicPartition, int] = {}
        distance = 1
        while ranges:
            found = await self._last_within(ranges)
            last |= found
            ranges = {place: looked for place, looked in ranges.items() if place not in found}
            if ranges and not begins:
                begins = await self._consumer.beginning_offsets(list(ranges))
            last |= {place: begins[place] - 1 for place, (begin, _) in ranges.items() if begin <= begins[place]}
            distance *= WIDER
            ranges = {
                place: (max(ends[place] - distance, begins[place]), begin)
                for place, (begin, _) in ranges.items()
                if place not in last
            }
        return last

    async def _last_within(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int]:
        """Return the last committed offset of each range that has a record."""
        last: dict[TopicPartition, int] = {}
        positions = {place: begin for place, (begin, _) in ranges.items()}
        while positions:
            for place, answer in (await self._fetch(positions)).items():
                position, end = positions.pop(place), ranges[place][1]
                if answer.data:
                    records = committed_records(place, answer.data, answer.aborted, position)
                    for record in records:
                        last[place] = record.offset
                    following = _beyond(place, position, records.next_fetch_offset)
                else:
                    following = await self._behind_a_hole(place, position, end, answer)
                if following < end:
                    positions[place] = following
        return last

    async def _first(self, place: TopicPartition, begin: int, end: int) -> int | None:
        position = begin
        while position < end:
            for answer in (await self._fetch({place: position})).values():
                if not answer.data:
                    position = await self._behind_a_hole(place, position, end, answer)
                    continue
                records = committed_records(place, answer.data, answer.aborted, position)
                offset: int | None = next((record.offset for record in records), None)
                if offset is not None:
                    return offset if offset < end else None
                position = _beyond(place, position, records.next_fetch_offset)
        return None

    async def _behind_a_hole(self, place: TopicPartition, position: int, end: int, answer: _Answer) -> int:
        """Return the offset to go on from where a partition told no records."""
        if answer.is_out_of_range:
            first: int = (await self._consumer.beginning_offsets([place]))[place]
            if first <= position:
                raise OffsetOutOfRangeError({place: position})  # the topic ends before: it has been made again
            return first
        if answer.readable >= end:
            return end  # what was there has been compacted away
        await asyncio.sleep(_AGAIN_S)
        return position

    async def _fetch(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, _Answer]:
        """Ask the leaders for records at positions; return the answers so far."""
        of_leader: defaultdict[int, dict[TopicPartition, int]] = defaultdict(dict)
        for place, position in positions.items():
            leader = self._client.cluster.leader_for_partition(place)
            of_leader[-1 if leader is None else leader][place] = position
        if unled := of_leader.pop(-1, None):
            for place in unled:
                self._client.add_topic(place.topic)
            await self._look_for_leaders()
        answers = await asyncio.gather(*(self._ask(leader, asked) for leader, asked in of_leader.items()))
        return {place: answer for told in answers for place, answer in told.items()}

    async def _ask(self, leader: int, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, _Answer]:
        of_topic: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for place, position in positions.items():
            of_topic[place.topic].append((place.partition, position, PARTITION_BYTES))
        request = FetchRequest(0, 0, ANSWER_BYTES, READ_COMMITTED, list(of_topic.items()))
        try:
            response = await self._client.send(leader, request)
            told = self._read(response)
        except KafkaError as error:
            if not error.retriable:
                raise
            await self._look_for_leaders()
            return {}
        # An answer that is full leaves the data of the other partitions out, and one beyond a quota all partitions.
        # Where none has data, there is none: the first that has some is given a whole batch, however large.
        is_full = any(answer.data for answer in told.values())
        if not is_full and not told:
            await asyncio.sleep(max(response.throttle_time_ms / 1000, _AGAIN_S))
        return {place: answer for place, answer in told.items() if answer.data or answer.is_out_of_range or not is_full}

    def _read(self, response: Any) -> dict[TopicPartition, _Answer]:
        told: dict[TopicPartition, _Answer] = {}
        for topic, partitions in response.topics:
            for number, code, end, *rest in partitions:
                place = TopicPartition(topic, number)
                error = for_code(code)
                if error is OffsetOutOfRangeError:
                    told[place] = _Answer(b"", None, -1, is_out_of_range=True)
                elif error is not NoError:
                    raise error(place)
                else:
                    aborted = rest[2] if response.API_VERSION >= 11 else rest[-2]
                    told[place] = _Answer(rest[-1] or b"", aborted, end if rest[0] < 0 else min(rest[0], end))
        return told

    async def _look_for_leaders(self) -> None:
        self._client.force_metadata_update()
        await asyncio.sleep(_AGAIN_S)


def _beyond(place: TopicPartition, position: int, following: int) -> int:
    """Return the offset behind an answer's data, beyond where it begins.

    Brokers cut no batch. Where it is not beyond, RecordTooLargeError is raised.
    """
    if following <= position:
        raise RecordTooLargeError(f"{place} has a batch at {position} that the broker does not give as a whole")
    return following
