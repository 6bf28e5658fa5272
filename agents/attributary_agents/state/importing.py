"""Import of an exported state, here or in another group.

Nothing is counted twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from attributary_explainers import ExplainerError
from attributary_explainers.wording import show_names

from ..config.settings import Config
from ..errors import AttributaryError, StateError
from ..kafka.clients import client_log_muted
from ..kafka.observations import default_partition
from ..kafka.readers import topic_reader
from ..models.model_state import ModelState
from .admin import one_partition, read_records, store_of
from .checkpoints import StoredAt, load_checkpoint
from .codec import decode_state, describe, encode_state
from .deployment_log import decode_log
from .files import ExportedState
from .names import checkpoint_copy_key, checkpoint_key, control_key
from .records import StateRecords
from .writing import changelog_writer, check_no_workers, fence_workers, name_state


@dataclass(frozen=True)
class Import:
    """An import that has been checked and is not carried out yet.

    Attributes
    ----------
    partition, offset
        Place of the observation behind which the model goes on.
    n_observations
        Observations that the model has seen.
    replaces
        Observations that the replaced state has seen; None where no state is replaced, or where it is damaged.
    """

    model_id: str
    version: str
    partition: int
    offset: int
    n_observations: int
    replaces: int | None
    blob: bytes
    records: StateRecords


def plan_import(
    config: Config, model_id: str, exported: ExportedState, *, partition: int | None = None, as_other: bool = False
) -> Import:
    """Check everything that an import needs, and write nothing.

    Parameters
    ----------
    partition
        Partition of the model's observations; needed where neither the group's states nor the file tell it.
    as_other
        Whether the state of another model is taken.

    Raises
    ------
    AttributaryError
        A worker runs, the state is of another model or cannot be used as configured here, or the partition is not
        known or another one.
    """
    if config.find(model_id) is None:
        raise AttributaryError(f"{model_id} is not configured: name one of {show_names(config.models)}")
    if exported.model_id != model_id and not as_other:
        raise AttributaryError(f"the file is of the model {exported.model_id}, not {model_id}: take it with --as-other")
    if partition is not None and partition >= config.kafka.partitions:
        raise AttributaryError(f"--partition: expected less than kafka.partitions, {config.kafka.partitions}")
    check_no_workers(config)
    try:
        state = _decoded(config, model_id, exported)
        with client_log_muted():
            return asyncio.run(_plan(config, model_id, exported, state, partition))
    except (StateError, ExplainerError) as error:
        raise AttributaryError(" ".join(str(error).split())) from None


def _decoded(config: Config, model_id: str, exported: ExportedState) -> ModelState:
    state = decode_state(exported.model_id, config.settings_of(model_id), exported.blob)
    # Where its model cannot be loaded and the configuration says another one, that one would begin in its place.
    if state.n_observations != exported.header["observations"]:
        raise StateError(
            f"the model in the file can no longer be used here, and {model_id} is configured as another one: nothing "
            "would be left of the state"
        )
    state.model_id = model_id
    return state


async def _plan(
    config: Config, model_id: str, exported: ExportedState, state: ModelState, partition: int | None
) -> Import:
    await fence_workers(config)
    records = await read_records(config)
    present = one_partition(config, records, model_id)
    file = describe(exported.model_id, exported.blob)
    # In the topic that the state was learnt from its own position holds, whatever the group; not for another model.
    goes_on = exported.model_id == model_id and await _has_observation(config, state)
    number = _partition(config, model_id, partition, present, file.partition if goes_on else None)
    store = store_of(config, records, number)
    _, checkpoint, _ = load_checkpoint(store.load, checkpoint_key(number), checkpoint_copy_key(number))
    behind = [file] if goes_on and file.partition == number else []
    replaced = None
    if present is not None:
        try:
            await store.fetch(model_id.encode())
            replaced = describe(model_id, store.load(model_id.encode()) or b"")
            behind.append(replaced)  # it may be beyond the checkpoint after a crash: its events have been published
        except StateError:
            pass  # often why there is an import
    log = decode_log(model_id, store.load(control_key(model_id, number)))
    state.partition = number
    state.offset = max([checkpoint, *(one.offset for one in behind)])
    failed = {n: reason for one in behind for n, reason in one.failed_offsets.items() if n > checkpoint}
    state.failed_offsets = dict(sorted(failed.items()))
    # What has been deployed here before is not to replace it.
    state.current = replace(state.current, deployed=max(log.offset, file.deployed if goes_on else -1))
    blob = encode_state(state)
    decode_state(model_id, config.settings_of(model_id), blob)  # as the worker will, under the model's own id
    return Import(
        model_id,
        state.version,
        number,
        state.offset,
        state.n_observations,
        replaced.n_observations if replaced else None,
        blob,
        records,
    )


def _partition(config: Config, model_id: str, given: int | None, present: int | None, of_file: int | None) -> int:
    if given is not None and present is not None and given != present:
        raise AttributaryError(
            f"--partition {given}: the state of {model_id} is on partition {present}. Where its observations are on "
            f"{given} now, run `attributary models reset {model_id}` first"
        )
    for number in (given, present, of_file):
        if number is not None:
            return number
    usual = default_partition(model_id, config.kafka.partitions)
    raise AttributaryError(
        f"the group {config.kafka.group} has no state of {model_id} to tell the partition of its observations: say it "
        f"with --partition. Kafka's own clients send the key {model_id} to partition {usual} of "
        f"{config.kafka.partitions}"
    )


async def _has_observation(config: Config, state: ModelState) -> bool:
    """Return whether our topic has the state's last observation in its place.

    Then offsets mean the same. Where retention has deleted it, nothing is left that could be counted twice.
    """
    if state.offset < 0 or not 0 <= state.partition < config.kafka.partitions:
        return False
    topic = config.kafka.topics.observations
    async with topic_reader(config.kafka, topic) as reader:
        record = await reader.record_at(topic, state.partition, state.offset)
    if record is None or record.key != state.model_id.encode():
        return False
    return bool(record.timestamp == state.last_observation_ms or state.offset in state.failed_offsets)


def carry_out(config: Config, planned: Import) -> None:
    """Write the state; once this returns it is durable.

    Raises
    ------
    PreflightError
        A worker has begun meanwhile, or the broker cannot be reached.
    """
    check_no_workers(config)
    with client_log_muted():
        asyncio.run(_write(config, planned))
    check_no_workers(config, written=True)


async def _write(config: Config, planned: Import) -> None:
    async with changelog_writer(config) as send:
        store = store_of(config, planned.records, planned.partition, send)
        await store.put(planned.model_id.encode(), planned.blob)
        at = StoredAt.of(planned.offset, planned.blob)
        await name_state(store, checkpoint_key(planned.partition), planned.model_id, at)
