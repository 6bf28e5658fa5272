"""Assignment of units of sources to processes, by a consumer group.

The group's topic has no records: who has a partition of it maps the units that belong there. Two processes at once,
for a moment, are harmless: what both send is taken once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Collection

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import UnknownTopicOrPartitionError

from ...config.settings import Config
from ...errors import PreflightError
from ...kafka.clients import STARTED_WITHIN_S, client_options
from ...kafka.topics.origins import ask_with_ids
from ...kafka.upstream.aiokafka_consumer import client_of
from .units import claims_group

logger = logging.getLogger(__name__)

SESSION_MS = 10_000
"""A process that is silent for so long maps no longer; short, since to be wrong about that does no harm."""

Follow = Callable[[set[int], int], Awaitable[None]]


class Claims(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is untyped
    """Membership of this process in the group of mappers.

    Parameters
    ----------
    follow
        Called with the partitions that are ours, and how many there are, whenever that changes.
    """

    def __init__(self, config: Config, follow: Follow) -> None:
        self._config, self._follow = config, follow
        self._n_places = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Keep up the membership until `stop`.

        Raises
        ------
        PreflightError
            The topic is missing.
        KafkaError
            Brokers are away or refuse.
        """
        kafka = self._config.kafka
        topic = kafka.topics.sources
        client = AIOKafkaConsumer(
            **client_options(kafka),
            group_id=claims_group(kafka.group),
            client_id=f"{socket.gethostname()}-{os.getpid()}",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=SESSION_MS // 5,
            max_poll_interval_ms=2_000_000_000,
        )
        try:
            async with asyncio.timeout(STARTED_WITHIN_S):
                await client.start()
            found = await ask_with_ids(client_of(client), [topic])
            if topic not in found:
                raise PreflightError(f"missing topics: {topic} (make them with `attributary topics create`)")
            self._n_places = len(found[topic].partitions)
            client.subscribe([topic], listener=self)
            while not stop.is_set():
                try:
                    await client.getmany(timeout_ms=1000)
                except UnknownTopicOrPartitionError:  # it was deleted
                    raise PreflightError(f"the topic {topic} is gone: `attributary topics create` makes it") from None
        finally:
            await client.stop()

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Keep mapping until the new assignment: two mappers at once do no harm."""

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Map the units of the assigned partitions from now on."""
        await self._follow({place.partition for place in assigned}, self._n_places)
