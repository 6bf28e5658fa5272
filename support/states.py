"""What a group of workers has stored, for tests."""

import asyncio
from dataclasses import dataclass

from attributary_agents.config.settings import Config
from attributary_agents.models.model_state import ModelState
from attributary_agents.state.admin import read_records
from attributary_agents.state.checkpoints import PartitionCounters, decode_checkpoint
from attributary_agents.state.codec import decode_state
from attributary_agents.state.names import checkpoint_key, control_checkpoint_key
from attributary_agents.state.objects import object_store
from attributary_agents.state.seal import Seal
from attributary_agents.state.store import PartitionStore
from support.kafka import read_all


@dataclass
class Stored:
    """Every model's state, and each partition's counters and last offset, of observations and control records."""

    models: dict[str, ModelState]
    checkpoints: dict[int, tuple[PartitionCounters, int]]
    control_checkpoints: dict[int, tuple[PartitionCounters, int]]


def stored(config: Config) -> Stored:
    """Read the state's changelog, as a worker does that begins now."""
    return asyncio.run(_stored(config))


async def _stored(config: Config) -> Stored:
    records = await read_records(config)
    seal, objects = Seal(config.state.read_key()), object_store(config.state.url, config.kafka.group)
    found = Stored({}, {}, {})
    for number in range(config.kafka.partitions):
        store = PartitionStore(records, number, 0, _nothing_is_sent, seal, objects)
        found.checkpoints[number] = decode_checkpoint(store.load(checkpoint_key(number)))
        found.control_checkpoints[number] = decode_checkpoint(store.load(control_checkpoint_key(number)))
        for model_id in config.models:
            await store.fetch(model_id.encode())
            blob = store.load(model_id.encode())
            if blob is not None:
                assert model_id not in found.models, f"{model_id} is stored on two partitions"
                found.models[model_id] = decode_state(model_id, config.models[model_id], blob)
    return found


def _nothing_is_sent(_partition: int, _key: bytes, _value: bytes | None) -> asyncio.Future[object]:
    raise AssertionError


def writes(config: Config, name: bytes) -> list[tuple[int, bytes]]:
    """Partition and bytes of every write under a name that the changelog still has, small enough for one record."""
    found = []
    for record in read_all(config.kafka.brokers[0], config.kafka.changelog):
        owned, _, part = (record.key or b"").rpartition(b"\0")
        if part == b"h" and owned.rpartition(b"\0")[0] == name and record.value is not None:
            found.append((record.partition, Seal(config.state.read_key()).read(record.key, record.value)[1]))
    return found
