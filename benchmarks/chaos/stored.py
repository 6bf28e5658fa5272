"""What the group has stored on the broker. The only place here that knows how the state lies in its changelog."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from tests.support.kafka import read_all

from attributary_agents.checkpoints import PartitionCounters, checkpoint_key, decode_checkpoint
from attributary_agents.config import Config
from attributary_agents.control_log import control_key, decode_log
from attributary_agents.model_state import ModelState
from attributary_agents.state_codec import decode_state


def stored_states(bootstrap: str, config: Config) -> dict[str, ModelState]:
    """Every stored state by its model id, as a worker that starts now would load it."""
    stored = _latest(read_all(bootstrap, config.kafka.changelog))
    return {
        model_id: decode_state(model_id, config.models[model_id], blob)
        for model_id in config.models
        if (blob := stored.get(model_id.encode())) is not None
    }


def stored_checkpoints(bootstrap: str, config: Config) -> dict[int, tuple[PartitionCounters, int]]:
    """Counters and offset of every partition's checkpoint; -1 where there is none."""
    stored = _latest(read_all(bootstrap, config.kafka.changelog))
    return {n: decode_checkpoint(stored.get(checkpoint_key(n))) for n in range(config.kafka.partitions)}


def stored_deployments(bootstrap: str, config: Config) -> dict[tuple[int, int], int]:
    """Partition and offset of each control record that was stored, to the observation after which it holds."""
    found: dict[tuple[int, int], int] = {}
    for record in read_all(bootstrap, config.kafka.changelog):
        for model_id in config.models:
            if record.key == control_key(model_id, record.partition):
                for entry in decode_log(model_id, record.value).entries:
                    found[record.partition, entry.offset] = entry.after
    return found


def _latest(records: list[ConsumerRecord]) -> Mapping[bytes, bytes]:
    return {record.key: record.value for record in records}


def positions(bootstrap: str, config: Config, topic: str) -> dict[int, tuple[int, int]]:
    """Partition of the topic to the group's committed offset (0 before the first) and the partition's end."""
    return asyncio.run(_positions(bootstrap, config, topic))


def is_drained(bootstrap: str, config: Config) -> bool:
    """Whether the group has committed all of the observations and models topics; False while no broker answers."""
    topics = config.kafka.topics
    try:
        found = [positions(bootstrap, config, topic) for topic in (topics.observations, topics.models)]
    except (KafkaError, OSError, TimeoutError):
        return False
    return all(committed == end for by_partition in found for committed, end in by_partition.values())


async def _positions(bootstrap: str, config: Config, topic: str) -> dict[int, tuple[int, int]]:
    partitions = [TopicPartition(topic, n) for n in range(config.kafka.partitions)]
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=5000)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, request_timeout_ms=5000)
    try:
        async with asyncio.timeout(15):
            await admin.start()
            await consumer.start()
            committed = await admin.list_consumer_group_offsets(config.kafka.group)
            ends = await consumer.end_offsets(partitions)
    finally:
        await admin.close()
        await consumer.stop()
    return {tp.partition: (max(committed[tp].offset, 0) if tp in committed else 0, ends[tp]) for tp in partitions}
