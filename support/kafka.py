"""aiokafka for plain, synchronous tests."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

TIMEOUT_S = 60.0
MAX_BYTES = 64 * 1024 * 1024  # only the topic limits how large a record may be

Headers = Sequence[tuple[str, bytes]]
Record = tuple[bytes | None, bytes | None, Headers] | tuple[bytes | None, bytes | None, Headers, int]
"""Key, value, headers, and, where it is not the present one, the time in milliseconds."""


def create_topics(bootstrap: str, topics: Mapping[str, int], configs: Mapping[str, str] | None = None) -> None:
    """Create `topics` (name to number of partitions), all with `configs`; return once they can be written."""
    asyncio.run(_create_topics(bootstrap, topics, configs))


def alter_topic(bootstrap: str, name: str, settings: Mapping[str, str]) -> None:
    """Replace all settings of a topic by these."""
    asyncio.run(_alter_topic(bootstrap, name, settings))


def produce(
    bootstrap: str, topic: str, records: Iterable[Record], *, partition: int | None = None
) -> list[tuple[int, int]]:
    """Write `records` in their order; return the partition and offset of each.

    Without `partition` the key decides, and the order holds within each partition.
    """
    return asyncio.run(_produce(bootstrap, topic, records, partition))


def read_all(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """Read `topic` up to what its ends are now, sorted by partition and offset."""
    return asyncio.run(_read_all(bootstrap, topic))


def read_committed(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """Read what is committed of `topic`, as `read_all` reads it: up to the first open transaction of each partition."""
    return asyncio.run(_read_all(bootstrap, topic, "read_committed"))


async def _alter_topic(bootstrap: str, name: str, settings: Mapping[str, str]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, name, configs=dict(settings))
        for response in await admin.alter_configs({resource: resource}):
            if any(code for code, *_ in response.resources):
                raise RuntimeError(f"{name}: {response.resources}")
    finally:
        await admin.close()


async def _create_topics(bootstrap: str, topics: Mapping[str, int], configs: Mapping[str, str] | None) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        wanted = [
            NewTopic(name, partitions, 1, topic_configs=dict(configs or {})) for name, partitions in topics.items()
        ]
        for name, code, message in (await admin.create_topics(wanted)).topic_errors:
            if code:
                raise for_code(code)(f"{name}: {message}")
        deadline = time.monotonic() + TIMEOUT_S
        while not _led(await admin.describe_topics(list(topics)), topics):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{sorted(topics)} have no leaders after {TIMEOUT_S:.0f} s")
            await asyncio.sleep(0.01)
    finally:
        await admin.close()


def _led(descriptions: list[dict[str, Any]], topics: Mapping[str, int]) -> bool:
    led = {topic["topic"]: sum(partition["leader"] >= 0 for partition in topic["partitions"]) for topic in descriptions}
    return led == dict(topics)


async def _produce(
    bootstrap: str, topic: str, records: Iterable[Record], partition: int | None
) -> list[tuple[int, int]]:
    # Idempotent: a batch that has to be sent again neither overtakes the next one nor appears twice.
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, max_request_size=MAX_BYTES)
    await producer.start()
    try:
        sent = [
            await producer.send(topic, value, key, partition, *timestamp_ms, headers=list(headers))
            for key, value, headers, *timestamp_ms in records
        ]
        return [(done.partition, done.offset) for done in await asyncio.gather(*sent)]
    finally:
        await producer.stop()


async def _read_all(bootstrap: str, topic: str, isolation_level: str = "read_uncommitted") -> list[ConsumerRecord]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:  # a consumer would wait 40 s for a topic that does not exist
        if not any(found["partitions"] for found in await admin.describe_topics([topic])):
            raise LookupError(f"there is no topic {topic}")
    finally:
        await admin.close()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=MAX_BYTES,
        isolation_level=isolation_level,
    )
    await consumer.start()  # without a group it assigns itself every partition
    try:
        ends: dict[TopicPartition, int] = await consumer.end_offsets(list(consumer.assignment()))
        found: list[ConsumerRecord] = []
        deadline = time.monotonic() + TIMEOUT_S
        # Positions and not counts: transactions and compaction leave offsets without a record.
        while behind := {tp: end for tp, end in ends.items() if await consumer.position(tp) < end}:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} was read to {len(found)} records, still to reach: {behind}")
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                found += batch
    finally:
        await consumer.stop()
    found = [record for record in found if record.offset < ends[TopicPartition(topic, record.partition)]]
    return sorted(found, key=lambda record: (record.partition, record.offset))
