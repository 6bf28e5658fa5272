"""What a group of workers has stored, for tests."""

import asyncio
from dataclasses import dataclass

from attributary_agents.checkpoints import PartitionCounters, checkpoint_key, decode_checkpoint
from attributary_agents.config import Config
from attributary_agents.model_state import ModelState
from attributary_agents.object_store import object_store
from attributary_agents.state_admin import read_records
from attributary_agents.state_codec import decode_state
from attributary_agents.state_seal import Seal
from attributary_agents.state_store import PartitionStore


@dataclass
class Stored:
    """Every model's state, and each partition's counters and last offset."""

    models: dict[str, ModelState]
    checkpoints: dict[int, tuple[PartitionCounters, int]]


def stored(config: Config) -> Stored:
    """Read the state's changelog, as a worker does that begins now."""
    return asyncio.run(_stored(config))


async def _stored(config: Config) -> Stored:
    records = await read_records(config)
    seal, objects = Seal(config.state.read_key()), object_store(config.state.url, config.kafka.group)
    found = Stored({}, {})
    for number in range(config.kafka.partitions):
        store = PartitionStore(records, number, 0, _nothing_is_sent, seal, objects)
        checkpoint = store.load(checkpoint_key(number))
        if checkpoint is not None:
            found.checkpoints[number] = decode_checkpoint(checkpoint)
        for model_id in config.models:
            await store.fetch(model_id.encode())
            blob = store.load(model_id.encode())
            if blob is not None:
                assert model_id not in found.models, f"{model_id} is stored on two partitions"
                found.models[model_id] = decode_state(model_id, config.models[model_id], blob)
    return found


def _nothing_is_sent(_partition: int, _key: bytes, _value: bytes | None) -> asyncio.Future[object]:
    raise AssertionError
