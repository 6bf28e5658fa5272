"""Readers of topics: to their ends, from chosen offsets, in a group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    InvalidCommitOffsetSizeError,
    KafkaError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetMetadataTooLargeError,
    OffsetOutOfRangeError,
)

from ..config.settings import KafkaConfig
from ..errors import PreflightError
from .batches import readable
from .clients import consumer
from .topics.origins import OriginTopic, ask_with_ids
from .upstream.aiokafka_consumer import client_of, committed_with_notes

SILENT_S = 15.0
"""Longest wait for something that the topics have, or for an answer of the brokers."""

ASKED_AFTER_S = 5.0
"""Time without a record after which the brokers are asked whether they answer at all, and longest wait for that."""

GROUP_SILENT_S = 10.0
"""Longest silence of a process before its partitions are given to others; less where the configuration says less."""

MOST_NOTE_BYTES = 4000
"""Longest note: brokers take 4096 bytes, unless `offset.metadata.max.bytes` says otherwise."""

AT_ONCE = 200
"""Records of a poll of a group at most."""

_FURTHER = 4
_GROUP_POLL_MS = 500

Place = tuple[str, int]
"""Topic and partition."""

OnAssigned = Callable[[int, int, str], None]

FollowingError = (KafkaError, OSError, TimeoutError)
"""What is raised where brokers do not answer, or not what was asked."""


class TopicReader:
    """Reader of all partitions of topics; see `topic_reader`."""

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
        """Read each partition from the first record of this time or later."""
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
        """Yield records up to the ends, and any that came with them."""
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
        """Yield the records still to come; wait while no broker answers.

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
        return [readable(batch) for batch in fetched.values()]

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


class OffsetsGoneError(Exception):
    """Missing offset in a partition that was to be read from there."""


class TopicFollower:
    """Reader of chosen partitions from chosen offsets; see `topic_follower`."""

    def __init__(self, client: AIOKafkaConsumer) -> None:
        self._client = client

    async def find(self, names: Iterable[str]) -> dict[str, OriginTopic]:
        """Return the topics of these names that exist, without creating any."""
        async with asyncio.timeout(ASKED_AFTER_S):
            return await ask_with_ids(client_of(self._client), list(names))

    async def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        """Return where partitions begin and end now."""
        asked = [TopicPartition(*place) for place in places]
        async with asyncio.timeout(ASKED_AFTER_S):
            begins = await self._client.beginning_offsets(asked)
            ends = await self._client.end_offsets(asked)
        return {(one.topic, one.partition): (begins[one], ends[one]) for one in asked}

    async def offsets_at(self, places: Iterable[Place], time_ms: int) -> dict[Place, int | None]:
        """Return each partition's first offset of this time or later, or None."""
        asked = [TopicPartition(*place) for place in places]
        async with asyncio.timeout(ASKED_AFTER_S):
            found = await self._client.offsets_for_times(dict.fromkeys(asked, time_ms))
        return {(one.topic, one.partition): None if found.get(one) is None else int(found[one].offset) for one in asked}

    def follow(self, starts: Mapping[Place, int]) -> None:
        """Read these partitions from these offsets on, and no others any more."""
        self._client.assign([TopicPartition(*place) for place in starts])
        for place, offset in starts.items():
            self._client.seek(TopicPartition(*place), offset)

    async def fetch(self, wait_ms: int, max_records: int) -> list[list[Any]]:
        """Return the next records by partition, waiting at most `wait_ms`.

        Raises
        ------
        OffsetsGoneError
            As its class says.
        """
        try:
            fetched = await self._client.getmany(timeout_ms=wait_ms, max_records=max_records)
        except (OffsetOutOfRangeError, NoOffsetForPartitionError) as error:
            raise OffsetsGoneError(str(error)) from None
        return [batch for batch in map(readable, fetched.values()) if batch]

    async def positions(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the positions of partitions, beyond aborted records."""
        async with asyncio.timeout(ASKED_AFTER_S):
            return {place: await self._client.position(TopicPartition(*place)) for place in places}


@asynccontextmanager
async def topic_follower(kafka: KafkaConfig) -> AsyncIterator[TopicFollower]:
    """Connect a follower of topics; disconnect it behind the block.

    Raises
    ------
    PreflightError
        The brokers cannot be reached, or refuse, at the start or inside the block.
    """
    async with consumer(kafka, auto_offset_reset="none", request_timeout_ms=15_000) as client:
        yield TopicFollower(client)


class GroupFollower:
    """Reader in a consumer group that takes each record once.

    No process takes a record that another has taken, also after that was killed. Beside each offset a note is
    committed, in one step with it: what the next owner of the partition has to know. See `group_follower`.

    Parameters
    ----------
    on_assigned
        Called with a partition, its committed offset and the note beside it when it is given to this process, before
        any of its records; the note is empty where there is none.
    """

    def __init__(self, client: AIOKafkaConsumer, topic: str, on_assigned: OnAssigned) -> None:
        self._client = client
        self._topic = topic
        self._on_assigned = on_assigned
        self.is_new = False
        client.subscribe([topic], listener=_Listener(self))

    async def poll(self) -> list[list[Any]]:
        """Return the next records by partition, waiting at most half a second.

        A partition of which the group has committed nothing
        begins at its end, and that is committed at once: a process that is killed before it has taken anything does not
        begin at a later end.
        """
        if self.is_new:
            await self._begin({})
        fetched = await self._client.getmany(timeout_ms=_GROUP_POLL_MS, max_records=AT_ONCE)
        if self.is_new:  # given while it waited
            await self._begin(fetched)
        if self.is_new:
            return []
        return [readable(batch) for place, batch in fetched.items() if batch and place in self._client.assignment()]

    async def take(self, partition: int, offset: int, note: str) -> bool:
        """Commit a partition's offset; return whether the commit is known.

        The partition is read up to this offset. While no broker answers it waits. What is not known to be committed may
        be taken by another process: this one has lost the partition.
        """
        place = TopicPartition(self._topic, partition)
        try:
            try:
                await self._client.commit({place: (offset, note)})
            except (OffsetMetadataTooLargeError, InvalidCommitOffsetSizeError):
                await self._client.commit({place: (offset, "")})
        except (CommitFailedError, IllegalStateError):
            return False
        return True

    def has(self, partition: int) -> bool:
        """Return whether a partition belongs to this process, as far as it knows."""
        return TopicPartition(self._topic, partition) in self._client.assignment()

    async def _begin(self, fetched: dict[TopicPartition, list[Any]]) -> None:
        self.is_new = False
        places = sorted(self._client.assignment())
        known = await committed_with_notes(self._client, places)
        try:
            starts = {
                place: (fetched[place][0].offset if fetched.get(place) else await self._client.position(place), "")
                for place in places
                if place not in known
            }
            if starts:
                await self._client.commit(starts)
        except (CommitFailedError, IllegalStateError):  # they have been given to others meanwhile
            self.is_new = True
            return
        for place, (offset, note) in (known | starts).items():
            self._on_assigned(place.partition, offset, note)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, follower: GroupFollower) -> None:
        self._follower = follower

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._follower.is_new = bool(assigned)


@asynccontextmanager
async def group_follower(
    kafka: KafkaConfig, group: str, topic: str, on_assigned: OnAssigned
) -> AsyncIterator[GroupFollower]:
    """Join a consumer group at a topic's end; leave it behind the block.

    Parameters
    ----------
    on_assigned
        See `GroupFollower`.

    Raises
    ------
    PreflightError
        The brokers cannot be reached or refuse, at the start or inside the block.
    """
    options = {
        "group_id": group,
        "client_id": "attributary-webhooks",
        "auto_offset_reset": "latest",
        "session_timeout_ms": int(min(kafka.session_timeout_s, GROUP_SILENT_S) * 1000),
        "heartbeat_interval_ms": int(min(kafka.session_timeout_s, GROUP_SILENT_S) * 200),
        "metadata_max_age_ms": 60_000,
    }
    async with consumer(kafka, **options) as client:
        if topic not in await client.topics():  # to subscribe to it could make it, with settings of its own
            raise PreflightError(f"there is no topic {topic}: attributary topics create")
        yield GroupFollower(client, topic, on_assigned)
