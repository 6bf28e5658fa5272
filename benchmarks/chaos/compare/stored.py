"""What the group has stored on the broker. The only place here that knows how the state lies in its changelog."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from support.kafka import read_all

from attributary_agents.config.settings import Config
from attributary_agents.errors import DamagedStateError
from attributary_agents.models.model_state import ModelState
from attributary_agents.state.admin import read_records
from attributary_agents.state.checkpoints import PartitionCounters, decode_checkpoint
from attributary_agents.state.codec import decode_state
from attributary_agents.state.deployment_log import decode_log
from attributary_agents.state.names import checkpoint_key, control_key
from attributary_agents.state.objects import object_store
from attributary_agents.state.seal import Seal
from attributary_agents.state.store import PartitionStore


def stored_states(config: Config) -> dict[str, ModelState]:
    """Every stored state by its model id, as a worker that starts now would load it; damaged ones are left out."""
    found = {}
    for store in asyncio.run(_stores(config, [model_id.encode() for model_id in config.models])):
        for model_id, model in config.models.items():
            try:
                blob = store.load(model_id.encode())
            except DamagedStateError:
                continue
            if blob is not None:
                found[model_id] = decode_state(model_id, model, blob)
    return found


def stored_checkpoints(config: Config) -> dict[int, tuple[PartitionCounters, int]]:
    """Counters and offset of every partition's checkpoint; -1 where there is none."""
    stores = asyncio.run(_stores(config, []))
    return {store.partition: decode_checkpoint(store.load(checkpoint_key(store.partition))) for store in stores}


def stored_deployments(config: Config) -> dict[tuple[int, int], int]:
    """Partition and offset of each control record that was stored, to the observation after which it holds."""
    found: dict[tuple[int, int], int] = {}
    for record in read_all(config.kafka.brokers[0], config.kafka.changelog):
        for model_id in config.models:
            if record.key.startswith(control_key(model_id, record.partition) + b"\0") and record.value:
                try:
                    head, blob = Seal().read(record.key, record.value)
                except DamagedStateError:
                    continue  # a chunk, or nothing of ours
                if head.is_inline:
                    for entry in decode_log(model_id, blob).entries:
                        found[record.partition, entry.offset] = entry.after
    return found


async def _stores(config: Config, names: list[bytes]) -> list[PartitionStore]:
    records = await read_records(config)
    seal, objects = Seal(config.state.read_key()), object_store(config.state.url, config.kafka.group)
    stores = [PartitionStore(records, n, 0, _refuse, seal, objects) for n in range(config.kafka.partitions)]
    for store in stores:
        for name in names:
            await store.fetch(name)
    return stores


def _refuse(_partition: int, _key: bytes, _value: bytes | None) -> asyncio.Future[object]:
    raise AssertionError("nothing is written here")


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
