"""What a group of workers has stored. The only place here that knows how the state lies in its changelog."""

import asyncio
from dataclasses import dataclass

from attributary_agents.config.settings import Config
from attributary_agents.errors import DamagedStateError
from attributary_agents.models.model_state import ModelState
from attributary_agents.state.admin import read_records
from attributary_agents.state.checkpoints import PartitionCounters, decode_checkpoint
from attributary_agents.state.codec import decode_state
from attributary_agents.state.deployment_log import decode_log
from attributary_agents.state.names import checkpoint_key, control_checkpoint_key, control_key
from attributary_agents.state.objects import object_store
from attributary_agents.state.seal import Seal
from attributary_agents.state.store import PartitionStore
from support.kafka import read_all


@dataclass
class Stored:
    """Every model's state unless it is damaged, and each partition's counters and last offset.

    Checkpoints are those of the observations, control checkpoints those of the control records; the offset is -1 where
    there is none.
    """

    models: dict[str, ModelState]
    checkpoints: dict[int, tuple[PartitionCounters, int]]
    control_checkpoints: dict[int, tuple[PartitionCounters, int]]


def stored(config: Config) -> Stored:
    """Read the state's changelog as a worker does that begins now."""
    return asyncio.run(_stored(config))


async def _stored(config: Config) -> Stored:
    records = await read_records(config)
    seal, objects = Seal(config.state.read_key()), object_store(config.state.url, config.kafka.group)
    found = Stored({}, {}, {})
    for number in range(config.kafka.partitions):
        store = PartitionStore(records, number, 0, _nothing_is_sent, seal, objects)
        found.checkpoints[number] = decode_checkpoint(store.load(checkpoint_key(number)))
        found.control_checkpoints[number] = decode_checkpoint(store.load(control_checkpoint_key(number)))
        for name in records.names(number):
            if (model_id := config.finder.id_of_key(name)) is None:
                continue
            await store.fetch(name)
            try:
                blob = store.load(name)
            except DamagedStateError:
                continue
            if blob is not None:
                assert model_id not in found.models, f"{model_id} is stored on two partitions"
                found.models[model_id] = decode_state(model_id, config.settings_of(model_id), blob)
    return found


def _nothing_is_sent(_partition: int, _key: bytes, _value: bytes | None) -> asyncio.Future[object]:
    raise AssertionError


def stored_deployments(config: Config) -> dict[tuple[int, int], int]:
    """Partition and offset of each control record that was ever stored, to the observation after which it holds.

    Every write of a log is read that the changelog still has and that fits one record; assert that none has moved one.
    """
    seal = Seal(config.state.read_key())
    found: dict[tuple[int, int], int] = {}
    for record in read_all(config.kafka.brokers[0], config.kafka.changelog):
        for model_id in config.models:
            if not (record.key or b"").startswith(control_key(model_id, record.partition) + b"\0") or not record.value:
                continue
            try:
                head, blob = seal.read(record.key, record.value)
            except DamagedStateError:
                continue  # a chunk, or nothing of ours
            if head.is_inline:
                for entry in decode_log(model_id, blob).entries:
                    place = record.partition, entry.offset
                    assert found.setdefault(place, entry.after) == entry.after, "written once and for all"
    return found
