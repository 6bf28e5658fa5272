"""Stores and reads the checkpoint of a partition: the last durable offset, and the counters up to it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from attributary_topics import REASONS

from ..errors import DamagedStateError, StateError

FORMAT = 2

logger = logging.getLogger(__name__)


@dataclass
class PartitionCounters:
    """Counts the records of a partition since its first one ever; the counters are part of the checkpoint.

    `used` counts the observations that were explained, and in the models topic the deployments that could be used.
    consumed = used + dead letters, always; `unavailable` counts offsets that were gone from the topic (retention)
    before they could be read, which are in none of the three.
    """

    consumed: int = 0
    used: int = 0
    unavailable: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)


def encode_checkpoint(offset: int, counters: PartitionCounters) -> bytes:
    """Return the bytes of a checkpoint: the last offset whose effects are durable, and the counters up to it."""
    return orjson.dumps(
        {
            "format": FORMAT,
            "offset": offset,
            "consumed": counters.consumed,
            "used": counters.used,
            "unavailable": counters.unavailable,
            "dead_letters": dict(counters.dead_letters),
        }
    )


def load_checkpoint(load: Callable[[bytes], bytes | None], key: bytes) -> tuple[PartitionCounters, int, bool]:
    """Return counters and offset of the stored checkpoint, and whether they are lost because it is damaged.

    The models lose nothing, for each has its own offset; only the counters begin again.
    """
    try:
        return *decode_checkpoint(load(key)), False
    except DamagedStateError as error:
        logger.error("%s: the counters begin again, the position is that of the consumer group", error)
        return *decode_checkpoint(None), True


def decode_checkpoint(blob: bytes | None) -> tuple[PartitionCounters, int]:
    """Return counters and offset of a stored checkpoint; zeros and -1 where there is none.

    Raises
    ------
    StateError
        The bytes are no checkpoint of this format.
    """
    counters = PartitionCounters(dead_letters=Counter(dict.fromkeys(REASONS, 0)))
    if blob is None:
        return counters, -1
    try:
        data: dict[str, Any] = orjson.loads(blob)
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r}")
        counters.consumed, counters.used = data["consumed"], data["used"]
        counters.unavailable = data["unavailable"]
        counters.dead_letters.update(data["dead_letters"])
        return counters, data["offset"]
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"a checkpoint in the state's changelog cannot be read ({error!r}): run the release that wrote it, or "
            "delete the changelog topic to start afresh from the observations"
        ) from None
