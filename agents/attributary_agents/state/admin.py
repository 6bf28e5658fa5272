"""Reads stored states outside of a worker, for the command line; `writing` changes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ..config.settings import Config
from ..errors import AttributaryError, DamagedStateError, StateError
from ..kafka.clients import client_log_muted
from ..kafka.reading import topic_reader
from .files import ExportedState
from .names import wanted_names
from .objects import object_store
from .records import StateRecords
from .seal import Seal
from .store import PartitionStore, Send

READINGS = 3
"""Attempts to read a state: while workers write, compaction may remove what is about to be read for something newer."""


async def read_records(config: Config, also: Iterable[str] = ()) -> StateRecords:
    """Read all records of the configured models from the state's changelog.

    Parameters
    ----------
    also
        Further models, which need not be configured.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    records = StateRecords(wanted_names([*config.models, *also]))
    async with topic_reader(config.kafka, config.kafka.changelog) as reader:
        async for batch in reader.present():
            for record in batch:
                records.apply(record.partition, record.key, record.value)
    return records


def partitions_of(records: StateRecords, model_id: str, config: Config) -> list[int]:
    """Return the partitions on which a state of the model is stored: one, where all is well."""
    return [n for n in range(config.kafka.partitions) if records.latest(n, model_id.encode())]


def store_of(config: Config, records: StateRecords, partition: int, send: Send | None = None) -> PartitionStore:
    """Return a store of a partition's states, under an epoch above all that there are; without `send` it only reads."""
    objects = object_store(config.state.url, config.kafka.group)
    return PartitionStore(records, partition, 1, send or _nothing_is_sent, seal_of(config), objects)


def seal_of(config: Config) -> Seal:
    """Return the seal that signs and checks as the configuration says."""
    return Seal(config.state.read_key(), accept_unsigned=config.state.accept_unsigned)


def _nothing_is_sent(_partition: int, _key: bytes, _value: bytes | None) -> asyncio.Future[object]:
    raise AssertionError("this store is for reading")


def export_state(config: Config, model_id: str) -> ExportedState:
    """Return the stored state of a model: that of its last checkpoint, where workers run.

    Raises
    ------
    AttributaryError
        There is none, or it cannot be read.
    """
    with client_log_muted():
        return asyncio.run(_export(config, model_id))


async def _export(config: Config, model_id: str) -> ExportedState:
    topic = config.kafka.changelog
    for reading in range(READINGS):
        records = await read_records(config, [model_id])
        places = partitions_of(records, model_id, config)
        if not places:
            known = "" if model_id in config.models else f"; configured are {', '.join(config.models)}"
            raise AttributaryError(f"{topic} has no state of {model_id}: it has no checkpoint yet{known}")
        if len(places) > 1:
            raise AttributaryError(_on_several(topic, model_id, places))
        store = store_of(config, records, places[0])
        try:
            await store.fetch(model_id.encode())
            return ExportedState.of(model_id, store.load(model_id.encode()) or b"")
        except DamagedStateError as error:
            if reading == READINGS - 1:
                raise AttributaryError(f"{topic}: {error}") from None
        except StateError as error:
            raise AttributaryError(f"{topic}: {error}") from None
    raise AssertionError("the last reading returns or raises")


def _on_several(topic: str, model_id: str, places: list[int]) -> str:
    listed = " and ".join(map(str, places))
    return (
        f"{topic} has states of {model_id} on the partitions {listed}, where one producer has used another partitioner "
        f"than the others: delete them with `attributary models reset {model_id}`"
    )


def one_partition(config: Config, records: StateRecords, model_id: str) -> int | None:
    """Return the partition on which the model is stored; None where it is not.

    Raises
    ------
    AttributaryError
        It is stored on several.
    """
    places = partitions_of(records, model_id, config)
    if len(places) > 1:
        raise AttributaryError(_on_several(config.kafka.changelog, model_id, places))
    return places[0] if places else None
