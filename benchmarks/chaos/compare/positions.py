"""How far the group has committed its topics."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from attributary_agents.config.settings import Config


def positions(bootstrap: str, config: Config, topic: str) -> dict[int, tuple[int, int]]:
    """Partition of the topic to the group's committed offset (0 before the first) and the partition's end."""
    found = asyncio.run(_positions(bootstrap, config.kafka.group, [topic], config.kafka.partitions))
    return {tp.partition: place for tp, place in found.items()}


def is_read(bootstrap: str, group: str, topic: str, n: int) -> bool:
    """Whether a group has committed all of the n partitions of a topic; False while no broker answers."""
    try:
        found = asyncio.run(_positions(bootstrap, group, [topic], n))
    except (KafkaError, OSError, TimeoutError):
        return False
    return all(committed == end for committed, end in found.values())


def is_drained(bootstrap: str, config: Config) -> bool:
    """Whether the group has committed all of the observations and models topics; False while no broker answers."""
    kafka = config.kafka
    names = [kafka.topics.observations, kafka.topics.models]
    try:
        found = asyncio.run(_positions(bootstrap, kafka.group, names, kafka.partitions))
    except (KafkaError, OSError, TimeoutError):
        return False
    return all(committed == end for committed, end in found.values())


async def _positions(
    bootstrap: str, group: str, topics: Sequence[str], n: int
) -> dict[TopicPartition, tuple[int, int]]:
    partitions = [TopicPartition(topic, number) for topic in topics for number in range(n)]
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=5000)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, request_timeout_ms=5000)
    try:
        async with asyncio.timeout(15):
            await admin.start()
            await consumer.start()
            committed = await admin.list_consumer_group_offsets(group)
            ends = await consumer.end_offsets(partitions)
    finally:
        await admin.close()
        await consumer.stop()
    return {tp: (max(committed[tp].offset, 0) if tp in committed else 0, ends[tp]) for tp in partitions}
