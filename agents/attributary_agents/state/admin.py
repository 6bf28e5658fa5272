"""Reading of stored states outside of a worker, for the command line.

`writing` changes them. A worker's recovery reads the changelog itself, and takes `read_again` from here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from attributary_explainers.wording import show_names

from ..config.settings import Config
from ..config.templates import Finder
from ..errors import AttributaryError, DamagedStateError, StateError
from ..kafka.clients import client_log_muted
from ..kafka.readers import topic_reader
from .checkpoints import decode_checkpoint
from .codec import check_readable
from .deduplication import ReplayedLetters
from .files import ExportedState
from .names import checkpoint_key, control_checkpoint_key, wanted_names
from .objects import object_store
from .owners import Owners
from .records import StateRecords
from .seal import seal_of
from .store import PartitionStore, Send

logger = logging.getLogger(__name__)

READINGS = 3
"""Attempts to read a state: while workers write, compaction may remove what is about to be read for something newer."""


@dataclass
class ChangelogSize:
    """Bytes of a changelog, as read and with each key's newest record only."""

    read: int = 0
    newest: dict[tuple[int, bytes | None], int] = field(default_factory=dict)

    def count(self, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Count a record."""
        size = len(key or b"") + len(value or b"")
        self.read += size
        self.newest[partition, key] = size

    @property
    def live(self) -> int:
        """Bytes that a restart would read if only the newest records were left."""
        return sum(self.newest.values())


async def read_records(config: Config, also: Iterable[str] = (), size: ChangelogSize | None = None) -> StateRecords:
    """Read all records of the configured models from the state's changelog.

    Parameters
    ----------
    also
        Further models, which need not be configured.
    size
        What counts the records that are read.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    records = StateRecords(wanted_names(config.finder, also), seal_of(config))
    async with topic_reader(config.kafka, config.kafka.changelog) as reader:
        async for batch in reader.present():
            for record in batch:
                records.apply(record.partition, record.key, record.value)
                if size is not None:
                    size.count(record.partition, record.key, record.value)
    await read_again(config, records)
    return records


async def read_again(config: Config, records: StateRecords) -> None:
    """Read the changelog again for chunks passed over, then end the reading.

    It is read again only where a head has named such chunks since.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    if lacking := records.lacking():
        logger.info("partitions %s: large states, whose changelog is read a second time", sorted(lacking))
        async with topic_reader(config.kafka, config.kafka.changelog) as reader:
            async for batch in reader.present():
                for record in batch:
                    if record.partition in lacking:
                        records.apply_again(record.partition, record.key, record.value)
    records.drop_loose()


def partitions_of(records: StateRecords, model_id: str, config: Config) -> list[int]:
    """Return the partitions that store a state of the model.

    Where all is well there is one. Partitions that have foreign records alone under its name count only where no other
    has a state.
    """
    name, seal = model_id.encode(), seal_of(config)
    found = [n for n in range(config.kafka.partitions) if records.latest(n, name)]
    owned = [n for n in found if records.latest(n, name, Owners(records, n, seal).foreign(name))]
    return owned or found


def store_of(config: Config, records: StateRecords, partition: int, send: Send | None = None) -> PartitionStore:
    """Return a store of a partition's states.

    Its epoch is above all that there are. Without `send` it only reads.
    """
    objects = object_store(config.state.url, config.kafka.group)
    return PartitionStore(records, partition, 1, send or _nothing_is_sent, seal_of(config), objects)


def _nothing_is_sent(_partition: int, _key: bytes, _value: bytes | None) -> asyncio.Future[object]:
    raise AssertionError("this store is for reading")


def check_stored(config: Config) -> ChangelogSize:
    """Read the changelog; raise AttributaryError if a worker cannot start.

    The reason is in what is stored. Models are not loaded, and objects of `state.url` are not fetched. Returns the size
    of what has been read.
    """
    size = ChangelogSize()
    with client_log_muted():
        records = asyncio.run(read_records(config, size=size))
    try:
        for n in range(config.kafka.partitions):
            store = store_of(config, records, n)
            for checkpoint in (checkpoint_key(n), control_checkpoint_key(n)):
                with suppress(DamagedStateError):
                    decode_checkpoint(store.load(checkpoint))
            for name in records.names(n):
                if (model_id := config.finder.id_of_key(name)) is not None:
                    with suppress(DamagedStateError, KeyError):
                        check_readable(model_id, config.settings_of(model_id), store.load(name))
    except StateError as error:
        raise AttributaryError(f"what is stored cannot be used: {error}") from None
    return size


def replayed_letters(config: Config) -> list[ReplayedLetters]:
    """Return the dead letters that have been handled again.

    The last checkpoints of all partitions of both topics say so.

    Raises
    ------
    PreflightError
        The broker cannot be reached, or does not let this user read the changelog.
    """

    async def read() -> StateRecords:
        records = StateRecords(wanted_names(Finder({})), seal_of(config))
        async with topic_reader(config.kafka, config.kafka.changelog) as reader:
            async for batch in reader.present():
                for record in batch:
                    records.apply(record.partition, record.key, record.value)
        return records

    with client_log_muted():
        records, found = asyncio.run(read()), []
    for n in range(config.kafka.partitions):
        store = store_of(config, records, n)
        for name in (checkpoint_key(n), control_checkpoint_key(n)):
            with suppress(StateError):  # the worker says what is wrong with it
                found.append(decode_checkpoint(store.load(name))[0].replayed)
    return found


def export_state(config: Config, model_id: str) -> ExportedState:
    """Return the stored state of a model.

    Where workers run, it is the state of the last checkpoint.

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
            known = "" if config.find(model_id) is not None else f"; configured are {show_names(config.models)}"
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
