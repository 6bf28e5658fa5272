"""Checkpoint of a partition: writing, reading, and its counters.

It holds the last durable offset, the counters up to it, and which states are stored. Each state is written before the
checkpoint that names it. So what is stored after a crash can be newer than the checkpoint says, and is never older: an
older one, or none, has been put there or deleted by somebody else.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from attributary_topics import REASONS

from ..errors import DamagedStateError, StateError
from .deduplication import Origins, ReplayedLetters

FORMAT, READ_FORMATS = 4, (2, 3, 4)
"""Format 2 names no states; of mapped records the formats before 4 know nothing, and would take repeats."""

logger = logging.getLogger(__name__)


@dataclass
class PartitionCounters:
    """Counters of a partition's records since its first record ever.

    They are part of the checkpoint. `used` counts the observations that were explained, and in the models topic the
    deployments that could be used. consumed = used + dead letters + dropped + repeats, always. Mapped records that are
    repeats or early (`origins`) are dropped; the repeats, `replayed.n_repeats`, are dead letters that were sent again
    more than once. `unavailable` counts offsets that were gone from the topic (retention) before they could be read,
    and `transactional` those that transactions take: their markers, and what they have aborted. Both are in none of
    these.
    """

    consumed: int = 0
    used: int = 0
    unavailable: int = 0
    transactional: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)
    replayed: ReplayedLetters = field(default_factory=ReplayedLetters)
    origins: Origins = field(default_factory=Origins)


class StoredAt(NamedTuple):
    """Offset and hash of a model's stored state, as a checkpoint names them.

    The hash is 16 digits of the SHA-256.
    """

    offset: int
    digest: str

    @classmethod
    def of(cls, offset: int, blob: bytes) -> StoredAt:
        """Name a state by the offset up to which it goes, and its bytes."""
        return cls(offset, hashlib.sha256(blob).hexdigest()[:16])

    def check(self, found: StoredAt | None, what: str) -> None:
        """Compare a stored state with the state that the checkpoint names.

        Raises
        ------
        DamagedStateError
            It is older, or another one, or gone.
        """
        if found is None:
            raise DamagedStateError(
                f"{what} is gone: the checkpoint names one up to offset {self.offset}. The changelog has lost it, or "
                "somebody has deleted it"
            )
        if found.offset < self.offset or (found.offset == self.offset and found.digest != self.digest):
            older = f"goes up to offset {found.offset}" if found.offset < self.offset else "is another one"
            raise DamagedStateError(
                f"{what} {older}, and the checkpoint names one up to offset {self.offset}. The changelog has lost the "
                "newer one, or somebody has put an older one in its place"
            )


def encode_checkpoint(offset: int, counters: PartitionCounters, stored: Mapping[str, StoredAt] | None = None) -> bytes:
    """Encode a checkpoint: last durable offset, counters, stored states.

    The effects of all records up to the offset are durable.

    Parameters
    ----------
    stored
        Model id to what is stored of it.
    """
    return orjson.dumps(
        {
            "format": FORMAT,
            "offset": offset,
            "consumed": counters.consumed,
            "used": counters.used,
            "unavailable": counters.unavailable,
            "transactional": counters.transactional,
            "dead_letters": dict(counters.dead_letters),
            "stored": {model_id: list(at) for model_id, at in (stored or {}).items()},
            **counters.replayed.encode(),
            **counters.origins.encode(),
        }
    )


def encode_copy(offset: int, counters: PartitionCounters) -> bytes | None:
    """Encode the copy of a checkpoint; None if no record was mapped.

    Without mapped records no copy is needed.
    """
    return encode_checkpoint(offset, counters) if counters.origins.encode() else None


def load_checkpoint(
    load: Callable[[bytes], bytes | None], key: bytes, copy_key: bytes | None = None
) -> tuple[PartitionCounters, int, bool]:
    """Return counters and offset of a checkpoint, and whether they are lost.

    They are lost where the checkpoint is damaged and has no copy. The models lose nothing, for each has its own offset;
    only the counters begin again, where there is no copy. One is written after each checkpoint and before its commit,
    where records were mapped: it is never behind the group.

    Parameters
    ----------
    copy_key
        Name of the checkpoint's copy; None: it has none.
    """
    fault = ""
    try:
        blob = load(key)
    except DamagedStateError as error:
        blob, fault = None, str(error)
    if blob is not None:
        return *decode_checkpoint(blob), False
    copy = None if copy_key is None else _load_copy(load, copy_key)
    if copy is not None:
        logger.error("%s: its copy takes its place, and nothing is lost", fault or "the stored checkpoint is gone")
        return *decode_checkpoint(copy), False
    if fault:
        logger.error("%s: the counters begin again, the position is that of the consumer group", fault)
    return *decode_checkpoint(None), bool(fault)


def _load_copy(load: Callable[[bytes], bytes | None], key: bytes) -> bytes | None:
    try:
        return load(key)
    except DamagedStateError as error:
        logger.error("%s: what a mapper of `sources` repeats is taken a second time", error)
        return None


def decode_checkpoint(blob: bytes | None) -> tuple[PartitionCounters, int]:
    """Decode a checkpoint's counters and offset.

    Without a checkpoint they are zeros and -1.

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
        if data["format"] not in READ_FORMATS:
            raise ValueError(f"format {data['format']!r}")
        counters.consumed, counters.used = data["consumed"], data["used"]
        counters.unavailable = data["unavailable"]
        counters.transactional = data.get("transactional", 0)  # those of earlier were counted as unavailable
        counters.dead_letters.update(data["dead_letters"])
        counters.replayed = ReplayedLetters.decode(data)
        counters.origins = Origins.decode(data)
        return counters, data["offset"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateError(
            f"another release has written the checkpoint in the state's changelog ({_told(error)}), and this one "
            f"reads the formats {' and '.join(map(str, READ_FORMATS))}. Run that release again; or begin afresh under "
            "another kafka.group, which begins at the first observation that the topic has; or, to keep the group, "
            "stop all its workers, delete its changelog topic and create it with `attributary topics create`: its "
            "models then begin afresh after the last observation that the group has handled (docs/delivery.md, "
            '"Another release")'
        ) from None


def _told(error: Exception) -> str:
    return f"its {error}" if isinstance(error, ValueError) and str(error).startswith("format ") else repr(error)


def load_stored(load: Callable[[bytes], bytes | None], key: bytes) -> dict[str, StoredAt]:
    """Return the stored states that a checkpoint names, by model id.

    Empty where no checkpoint can be read.
    """
    try:
        blob = load(key)
    except DamagedStateError:
        return {}  # `load_checkpoint` has said so
    if blob is None:
        return {}
    return {model_id: StoredAt(*at) for model_id, at in orjson.loads(blob).get("stored", {}).items()}


def with_stored(blob: bytes, model_id: str, at: StoredAt | None) -> bytes | None:
    """Change the stored state that a checkpoint names; return its bytes.

    Without `at` the checkpoint names no state of the model. Returns None where nothing changes.
    """
    counters, offset = decode_checkpoint(blob)
    before = load_stored(lambda _key: blob, b"")
    after = {name: one for name, one in before.items() if name != model_id} | ({} if at is None else {model_id: at})
    return None if after == before else encode_checkpoint(offset, counters, after)
