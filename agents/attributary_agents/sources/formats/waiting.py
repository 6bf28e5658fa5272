"""Endless retries for schemas that cannot be fetched now.

The pauses between attempts grow.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ...errors import SchemaUnavailableError
from ..records import OriginRecord
from .base import Decoded, Format

logger = logging.getLogger(__name__)


async def _do_nothing() -> None:
    pass


async def decode_patiently(
    format_: Format,
    record: OriginRecord,
    *,
    before: Callable[[], Awaitable[None]] = _do_nothing,
    first_s: float = 0.2,
    longest_s: float = 10.0,
) -> list[Decoded]:
    """Return the objects in a record, however long its schema takes.

    Meanwhile the record's partition waits.

    Parameters
    ----------
    before
        Called once where it has to be waited for, before that: whoever waits may be stopped meanwhile.
    first_s, longest_s
        Seconds between two attempts, at first and at last; up to a second is added at random, so that not all
        partitions and processes ask at the same time.

    Raises
    ------
    InvalidRecordError
        The record cannot be used: it is a dead letter.
    """
    found = format_.decode_now(record)
    if found is not None:
        return found
    import stamina
    from stamina.instrumentation import set_on_retry_hooks

    # Its own hooks would write a line for each attempt, and count in a registry of metrics that nobody reads.
    set_on_retry_hooks(())
    attempts = stamina.retry_context(
        on=SchemaUnavailableError,
        attempts=None,
        timeout=None,
        wait_initial=first_s,
        wait_max=longest_s,
        wait_jitter=min(1.0, longest_s),
    )
    where = f"{record.topic}, partition {record.partition}, offset {record.offset}"
    async for attempt in attempts:
        with attempt:
            try:
                found = await format_.decode(record)
            except SchemaUnavailableError as error:
                if attempt.num == 1:
                    logger.warning("%s waits for its schema: %s; it is asked for again", where, error)
                    await before()
                raise
            if attempt.num > 1:
                logger.info("%s waits no longer, after %d attempts", where, attempt.num)
            return found
    raise AssertionError("attempts end with the answer alone")
