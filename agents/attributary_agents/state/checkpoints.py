"""A partition's counters, and its checkpoint in the state table."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from attributary_topics import REASONS

from ..errors import DamagedStateError, StateError

logger = logging.getLogger(__name__)


@dataclass
class PartitionCounters:
    """Counters of a partition since its first record ever: they are part of the checkpoint.

    consumed = explained + dead letters, always; `unavailable` counts offsets that were gone from the topic
    (retention) before they could be read, which are in none of the three. Of the models topic `explained` counts the
    records that could be used.
    """

    consumed: int = 0
    explained: int = 0
    unavailable: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)


def encode_checkpoint(offset: int, counters: PartitionCounters) -> bytes:
    """The checkpoint of a partition: the last offset whose effects are durable, and the counters up to it."""
    return orjson.dumps(
        {
            "format": 1,
            "offset": offset,
            "consumed": counters.consumed,
            "explained": counters.explained,
            "unavailable": counters.unavailable,
            "dead_letters": dict(counters.dead_letters),
        }
    )


def load_checkpoint(load: Callable[[bytes], bytes | None], key: bytes) -> tuple[PartitionCounters, int, bool]:
    """Counters and offset as `decode_checkpoint`, and whether they are lost because what is stored is damaged.

    The models are none the worse: each has its own offset. What is lost are the counters.
    """
    try:
        return *decode_checkpoint(load(key)), False
    except DamagedStateError as error:
        logger.error("%s: the counters begin again, the position is that of the consumer group", error)
        return *decode_checkpoint(None), True


def decode_checkpoint(blob: bytes | None) -> tuple[PartitionCounters, int]:
    """Counters and offset of a stored checkpoint; zeros and -1 where there is none.

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
        if data["format"] != 1:
            raise ValueError(f"format {data['format']!r}")
        counters.consumed, counters.explained = data["consumed"], data["explained"]
        counters.unavailable = data["unavailable"]
        counters.dead_letters.update(data["dead_letters"])
        return counters, data["offset"]
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"a checkpoint in the state's changelog cannot be read ({error!r}): run the release that wrote it, or "
            "delete the changelog topic to start afresh from the observations"
        ) from None
