"""Changes of stored states outside of a worker.

They are made only while no worker runs, under an epoch above all that there are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..config.settings import Config
from ..errors import PreflightError, StateError
from ..kafka.admin import count_members
from ..kafka.clients import client_log_muted, producer
from ..kafka.transactions import fence
from .admin import read_records, store_of
from .checkpoints import StoredAt, with_stored
from .names import checkpoint_key, control_checkpoint_key, control_key, merge_key
from .store import PartitionStore, Send

logger = logging.getLogger(__name__)


def check_no_workers(config: Config, *, written: bool = False) -> None:
    """Raise PreflightError while a worker of the group runs.

    It would write its own state over ours.

    Parameters
    ----------
    written
        Whether our state has just been written: a worker that began meanwhile may have read the one before.
    """
    group, n = config.kafka.group, count_members(config.kafka)
    if not n:
        return
    workers = "a worker" if n == 1 else f"{n} workers"
    if written:
        raise PreflightError(
            f"{workers} of the group {group} began meanwhile, and may go on from what was stored before: stop them, "
            "and repeat this command"
        )
    raise PreflightError(
        f"{workers} of the group {group} run: stop them first. One that was killed counts until "
        f"kafka.session_timeout_s ({config.kafka.session_timeout_s:g} s) is over"
    )


@asynccontextmanager
async def changelog_writer(config: Config) -> AsyncIterator[Send]:
    """Yield the send function for a `PartitionStore` outside of a worker.

    Raises
    ------
    PreflightError
        The broker cannot be reached, or refuses.
    """
    topic = config.kafka.changelog
    async with producer(config.kafka, topic, max_request_size=config.kafka.max_record_bytes) as client:

        async def send(partition: int, key: bytes, value: bytes | None) -> object:
            return await client.send_and_wait(topic, value, key, partition)

        yield send


def reset_state(config: Config, model_id: str) -> list[int]:
    """Delete a model's stored states; return the partitions that had any.

    Everything that any owner has stored of the model is deleted.

    Raises
    ------
    PreflightError
        A worker runs, or the broker cannot be reached.
    """
    check_no_workers(config)
    with client_log_muted():
        places = asyncio.run(_reset(config, model_id))
    check_no_workers(config, written=True)
    return places


async def fence_workers(config: Config) -> None:
    """End everything that workers have left open, before states are read.

    The states that are read are to be written, and a worker may have been frozen.

    Raises
    ------
    PreflightError
        The brokers refuse, or cannot be reached.
    """
    if config.is_exact:
        await fence(config, range(config.kafka.partitions))


async def _reset(config: Config, model_id: str) -> list[int]:
    await fence_workers(config)
    records = await read_records(config, [model_id])
    places = []
    async with changelog_writer(config) as send:
        for n in range(config.kafka.partitions):
            of_model = model_id.encode(), control_key(model_id, n), merge_key(model_id, n)
            names = [name for name in of_model if records.epochs(n, name)]
            if names:
                places.append(n)
            store = store_of(config, records, n, send)
            for checkpoint in (checkpoint_key(n), control_checkpoint_key(n)):
                await name_state(store, checkpoint, model_id, None)
            for name in names:
                await store.delete(name)
    return places


async def name_state(store: PartitionStore, checkpoint: bytes, model_id: str, at: StoredAt | None) -> None:
    """Let a stored checkpoint name another state of a model, or none.

    The next worker expects that state.
    """
    try:
        blob = store.load(checkpoint)
        renamed = None if blob is None else with_stored(blob, model_id, at)
    except StateError as error:
        logger.warning("%s: it stays as it is", error)
        return
    if renamed is not None:
        await store.put(checkpoint, renamed)
