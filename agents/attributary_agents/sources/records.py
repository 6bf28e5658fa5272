"""Records of foreign topics, and the records that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class OriginRecord:
    """A single record of a foreign topic, as Kafka has it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


@dataclass(slots=True)
class Mapped:
    """A single record of the observations topic, made of an origin record.

    Attributes
    ----------
    kind
        One of `RECORD_KINDS`.
    time_ms
        Event time, in milliseconds since 1970; Kafka's timestamp where the record says none.
    fields
        The value as it is written: x, y, y_pred and id, as far as there are any, and `time`, which is `time_ms`.
    """

    model_id: str
    kind: str
    time_ms: int
    fields: dict[str, Any]
