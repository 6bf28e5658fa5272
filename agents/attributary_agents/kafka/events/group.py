"""Follower of a topic in a consumer group that takes each record once.

No process takes a record again that another has taken, also after that process was killed.

Beside each offset a note is committed, in one step with it: what the next owner of the partition has to know.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    InvalidCommitOffsetSizeError,
    OffsetMetadataTooLargeError,
)

from ...config.settings import KafkaConfig
from ...errors import PreflightError
from ..batches import unread_batch
from ..clients import consumer

logger = logging.getLogger(__name__)

MOST_NOTE_BYTES = 4000
"""Longest note: brokers take 4096 bytes, unless `offset.metadata.max.bytes` says otherwise."""

SILENT_S = 10.0
"""Longest silence of a process before its partitions are given to others; less where the configuration says less."""

AT_ONCE = 200
"""Records of a poll at most."""

_POLL_MS = 500

Given = Callable[[int, int, str], None]


class GroupFollower:
    """Reader of the partitions that a consumer group gives to this process.

    See `group_follower`.

    Parameters
    ----------
    given
        Called with a partition, its committed offset and the note beside it when it is given to this process, before
        any of its records; the note is empty where there is none.
    """

    def __init__(self, client: AIOKafkaConsumer, topic: str, given: Given) -> None:
        self._client = client
        self._topic = topic
        self._given = given
        self._new = False
        client.subscribe([topic], listener=_Listener(self))

    async def poll(self) -> list[list[Any]]:
        """Return the next records, in a list for each partition.

        There is none where nothing has come for half a second. A partition of which the group has committed nothing
        begins at its end, and that is committed at once: a process that is killed before it has taken anything does not
        begin at a later end.
        """
        if self._new:
            await self._begin({})
        fetched = await self._client.getmany(timeout_ms=_POLL_MS, max_records=AT_ONCE)
        if self._new:  # given while it waited
            await self._begin(fetched)
        if self._new:
            return []
        return [_readable(batch) for place, batch in fetched.items() if batch and place in self._client.assignment()]

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
        self._new = False
        places = sorted(self._client.assignment())
        # Upstream has a public way to an offset that is committed, and none to the note beside it.
        found = await self._client._coordinator.fetch_committed_offsets(places)
        known = {
            place: (one.offset, str(one.metadata or ""))
            for place in places
            if (one := found.get(place)) is not None and one.offset >= 0
        }
        try:
            starts = {
                place: (fetched[place][0].offset if fetched.get(place) else await self._client.position(place), "")
                for place in places
                if place not in known
            }
            if starts:
                await self._client.commit(starts)
        except (CommitFailedError, IllegalStateError):  # they have been given to others meanwhile
            self._new = True
            return
        for place, (offset, note) in (known | starts).items():
            self._given(place.partition, offset, note)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, follower: GroupFollower) -> None:
        self._follower = follower

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._follower._new = bool(assigned)


@asynccontextmanager
async def group_follower(kafka: KafkaConfig, group: str, topic: str, given: Given) -> AsyncIterator[GroupFollower]:
    """Join a consumer group at a topic's end; leave it behind the block.

    Parameters
    ----------
    given
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
        "session_timeout_ms": int(min(kafka.session_timeout_s, SILENT_S) * 1000),
        "heartbeat_interval_ms": int(min(kafka.session_timeout_s, SILENT_S) * 200),
        "metadata_max_age_ms": 60_000,
    }
    async with consumer(kafka, **options) as client:
        if topic not in await client.topics():  # to subscribe to it could make it, with settings of its own
            raise PreflightError(f"there is no topic {topic}: attributary topics create")
        yield GroupFollower(client, topic, given)


def _readable(batch: list[Any]) -> list[Any]:
    """Return the readable records of a batch, and log the others."""
    found = []
    for record in batch:
        if (unread := unread_batch(record.headers)) is None:
            found.append(record)
        else:
            logger.warning("%s[%d]: passed over: %s", record.topic, record.partition, unread.error())
    return found
