"""Writer of the models' statuses, with a producer of its own.

A fault that holds it up holds up nothing else.
"""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from ..config.settings import KafkaConfig
from .clients import client_options
from .topics.answers import ask, nodes

WRITTEN_WITHIN_S = 30.0
"""Longest wait for the acknowledgement of statuses."""

_CLOSED_WITHIN_S = 2.0


class StatusTopic:
    """Writes to the topic of statuses; it connects when it is first asked to."""

    def __init__(self, kafka: KafkaConfig) -> None:
        self._kafka = kafka
        self._producer: AIOKafkaProducer | None = None

    async def is_there(self) -> bool:
        """Return whether there is such a topic.

        Raises
        ------
        KafkaError, OSError, TimeoutError
            No broker says so.
        """
        name = self._kafka.topics.status
        admin = AIOKafkaAdminClient(**client_options(self._kafka), request_timeout_ms=10_000)
        try:
            async with asyncio.timeout(WRITTEN_WITHIN_S):
                await admin.start()
                for node in await nodes(admin):
                    told = await ask(admin, node, [name])
                    if not told.fault:
                        # Not told yet is there: a topic that was just made has no leader for a moment.
                        return name not in told.unknown | told.hidden
        finally:
            await admin.close()
        raise ConnectionError("no broker answers")

    async def send(self, records: list[tuple[bytes, bytes]]) -> None:
        """Write keys and values.

        Raises
        ------
        KafkaError, OSError, TimeoutError
            They are not all written, or not known to be.
        """
        async with asyncio.timeout(WRITTEN_WITHIN_S):
            if self._producer is None:
                producer = AIOKafkaProducer(
                    **client_options(self._kafka), acks=1, linger_ms=20, client_id="attributary-status"
                )
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
            topic, client = self._kafka.topics.status, self._producer
            sent = [await client.send(topic, value, key) for key, value in records]
            await asyncio.gather(*sent)

    async def close(self) -> None:
        """Close the producer; unacknowledged statuses may be lost."""
        if self._producer is not None:
            try:
                async with asyncio.timeout(_CLOSED_WITHIN_S):
                    await self._producer.stop()
            except TimeoutError:
                await self._producer.client.close()
